"""Conditions that several operators share."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.tflite.convert import need_constant, need_dtype
from uaccel.frontend.tflite.reader import Tensor


def need_sum_in_32_bits(data: Tensor, count: int) -> None:
    """The reference sums in 32 bits and adds half the count to round; beyond that its result means nothing."""
    limit = (2**31 - 1) // (1 - int(np.iinfo(data.info.dtype).min))
    need(
        count <= limit,
        f"the sum of {count} {data.info.dtype} elements overflows 32 bits; at most {limit} are possible",
    )


def need_equal_quantisation(data: Tensor, output: Tensor, tolerance: float = 0.0) -> None:
    """For operators that pass elements on as they are stored."""
    equal = abs(data.scale - output.scale) <= tolerance and data.zero_point == output.zero_point
    given, wanted = output.required_quantisation, data.required_quantisation
    need(
        equal,
        f"the output's quantisation ({given}) differs from the input's ({wanted}); this operator cannot rescale",
    )


def need_quantisation(output: Tensor, scale: float, zero_point: int, tolerance: float = 0.0) -> None:
    """For operators that compute one quantisation alone; ``tolerance`` is a share of the scale."""
    fits = abs(output.scale - scale) <= tolerance * scale and output.zero_point == zero_point
    wanted = f"scale 1/{round(1 / scale)}, zero point {zero_point}"
    need(fits, f"the output's quantisation is {output.required_quantisation}, wanted {wanted}")


def axis_numbers(axes: Tensor, data: Tensor) -> list[int]:
    """The constant axes of ``data``, counted from the front."""
    need_dtype(axes, ("int32", "int64"), "axes")
    rank = len(data.info.shape)
    values = [int(axis) for axis in need_constant(axes, "axes").reshape(-1)]
    for axis in values:
        need(-rank <= axis < rank, f"axis {axis} is not an axis of {data.info}")
    return [axis % rank for axis in values]
