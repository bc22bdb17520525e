"""Checks the types, shapes and quantisations of an operator's tensors, in words for users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tflite

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import at_run_time, shape_text
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Array


def is_int8(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype == "int8"


def need_constant(tensor: Tensor, role: str) -> Array:
    if tensor.data is None:
        raise at_run_time(role, tensor.name)
    return tensor.data


def need_dtype(tensor: Tensor, allowed: Sequence[str], role: str) -> None:
    if tensor.info.dtype not in allowed:
        raise ModelError(f'{role} "{tensor.name}" is {tensor.info.dtype}, supported is {" or ".join(allowed)}')


def need_asked_type(operator: Operator, option: str) -> None:
    """The output has the type of integers that the option names, which runtimes go by, where it names one."""
    output = operator.outputs[0]
    need_dtype(output, ("int32", "int64"), "output")
    asked = {tflite.TensorType.INT32: "int32", tflite.TensorType.INT64: "int64"}.get(operator.option(option))
    said = f'output "{output.name}" is {output.info.dtype}, and its option {option} says {asked}'
    need(asked in (None, output.info.dtype), said)


def need_possible_shift(data: Tensor, shift: int) -> None:
    """Refuses shifts above 7: the reference's form for 64-bit sums shifts right by 15 - shift, at least 8 bits."""
    possible = data.info.dtype != "int16" or shift <= 7
    need(possible, f"the output's scale is finer than the products' by 2**{shift}; 16-bit activations allow 2**7")


def need_sum_in_32_bits(data: Tensor, count: int) -> None:
    """Refuses sums that may overflow the reference's 32 bits: each element is at most 128 (or 32,768) from 0.

    Half the count, which it adds to round, is covered by the 1 more that the bound allows each element.
    """
    limit = (2**31 - 1) // (1 - int(np.iinfo(data.info.dtype).min))
    what = f"the sum of {count} {data.info.dtype} elements overflows 32 bits"
    need(count <= limit, f"{what}; at most {limit} are possible")


def need_equal_quantisation(data: Tensor, output: Tensor, tolerance: float = 0.0) -> None:
    """Refuses different quantisations, for operators that copy the stored elements."""
    equal = abs(data.scale - output.scale) <= tolerance and data.zero_point == output.zero_point
    given, wanted = output.required_quantisation, data.required_quantisation
    differs = f"the output's quantisation ({given}) differs from the input's ({wanted})"
    need(equal, f"{differs}; this operator cannot rescale")


def need_quantisation(output: Tensor, scale: float, zero_point: int, tolerance: float = 0.0) -> None:
    """Refuses any but one output quantisation; ``tolerance`` is a fraction of the scale."""
    fits = abs(output.scale - scale) <= tolerance * scale and output.zero_point == zero_point
    wanted = f"scale 1/{round(1 / scale)}, zero point {zero_point}"
    need(fits, f"the output's quantisation is {output.required_quantisation}, wanted {wanted}")


def need_one_scale(*tensors: Tensor) -> None:
    for tensor in tensors:
        fits = tensor.quantisation is None or not tensor.quantisation.per_channel
        need(fits, f'"{tensor.name}" has a scale for each slice along an axis; this operator takes one for the tensor')


def axis_numbers(axes: Tensor, data: Tensor) -> list[int]:
    """The constant axes of ``data``, counted from the front."""
    need_dtype(axes, ("int32", "int64"), "axes")
    rank = len(data.info.shape)
    values = [int(axis) for axis in need_constant(axes, "axes").reshape(-1)]
    for axis in values:
        need(-rank <= axis < rank, f"axis {axis} is not an axis of {data.info}")
    return [axis % rank for axis in values]


def need_count(operator: Operator, option: str, count: int, what: str) -> None:
    """Refuses an option that states another count of inputs or outputs than the operator has."""
    stated = operator.option(option)
    need(stated == count, f"its option {option} is {stated}, and it has {count} {what}; the file is damaged")


def need_shape(output: Tensor, shape: Sequence[int]) -> None:
    """Refuses an output whose declared shape does not follow from the inputs."""
    has = f'output "{output.name}" has shape {shape_text(output.info.shape)}'
    need(output.info.shape == tuple(shape), f"{has}, the inputs give {shape_text(shape)}")


def need_same_type(data: Tensor, output: Tensor) -> None:
    types = f'input "{data.name}" is {data.info.dtype} and output "{output.name}" is {output.info.dtype}'
    need(data.info.dtype == output.info.dtype, f"{types}; this operator cannot convert")


def need_output(data: Tensor, output: Tensor, shape: Sequence[int]) -> None:
    """Refuses an output of another type than the input's, or of another shape."""
    need_same_type(data, output)
    need_shape(output, shape)
