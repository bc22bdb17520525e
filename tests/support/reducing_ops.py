"""Rows of operators that make few elements of many, or many of few: each from the numbers that matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from support.many import Row
from support.single_op import Activation, Constant
from support.tflite_writer import OptionValue

Shape = tuple[int, ...]
Quantised = tuple[float, int]
Options = dict[str, OptionValue]
Inputs = list[Activation | Constant | None]

SOFTMAX_OUTPUT: dict[tuple[str, str], Quantised] = {
    ("int8", "int8"): (1 / 256, -128),
    ("int8", "int16"): (1 / 65536, -32768),
    ("int16", "int16"): (1 / 32768, 0),
}


def activation(shape: Sequence[int], dtype: str, quantised: Quantised) -> Activation:
    """int16 is symmetric, whatever the zero point."""
    scale, zero_point = quantised
    return Activation(tuple(shape), dtype, scale, 0 if dtype == "int16" else zero_point)


def pool(
    kind: str,
    shape: Shape,
    window: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: str = "SAME",
    *,
    dtype: str = "int8",
    act: str = "NONE",
    quantised: Quantised = (0.05, -3),
) -> Row:
    """``kind``: AVERAGE or MAX."""
    spare = [e if padding == "SAME" else e - w + 1 for e, w in zip(shape[1:3], window, strict=True)]
    out = [-(-e // s) for e, s in zip(spare, stride, strict=True)]
    options: Options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "filter_height": window[0],
        "filter_width": window[1],
        "fused_activation": act,
    }
    data = activation(shape, dtype, quantised)
    return Row(f"{kind}_POOL_2D", [data], [activation((shape[0], *out, shape[3]), dtype, quantised)], options)


def softmax(
    shape: Shape, scale: float = 0.1, beta: float = 1.0, *, dtype: str = "int8", output_dtype: str = "int8"
) -> Row:
    """``scale`` is one step of 8 bits: 256 of 16 bits."""
    output = Activation(shape, output_dtype, *SOFTMAX_OUTPUT[dtype, output_dtype])
    scale = scale / 256 if dtype == "int16" else scale
    return Row("SOFTMAX", [activation(shape, dtype, (scale, 5))], [output], {"beta": beta})


def reduce(
    operator: str,
    shape: Shape,
    axes: int | Sequence[int],
    keep_dims: bool = True,
    *,
    dtype: str = "int8",
    given: Quantised = (0.1, 3),
    wanted: Quantised = (0.1, 3),
) -> Row:
    numbers = np.asarray(axes, np.int32)
    resolved = tuple(sorted({int(axis) % len(shape) for axis in numbers.reshape(-1)}))
    out = np.zeros(shape, np.int8).sum(axis=resolved, keepdims=keep_dims).shape
    inputs: Inputs = [activation(shape, dtype, given), Constant(numbers)]
    return Row(operator, inputs, [activation(out, dtype, wanted)], {"keep_dims": keep_dims})


def resize(
    operator: str,
    shape: Shape,
    size: tuple[int, int],
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    dtype: str = "int8",
) -> Row:
    inputs: Inputs = [activation(shape, dtype, (0.1, 3)), Constant(np.array(size, np.int32))]
    options: Options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    return Row(operator, inputs, [activation((shape[0], *size, shape[3]), dtype, (0.1, 3))], options)


def arg_extreme(operator: str, shape: Shape, axis: int, *, dtype: str = "int8", output_dtype: str = "int32") -> Row:
    out = tuple(extent for number, extent in enumerate(shape) if number != axis % len(shape))
    inputs: Inputs = [activation(shape, dtype, (0.1, 3)), Constant(np.array(axis, np.int32))]
    return Row(operator, inputs, [Activation(out, output_dtype)], {"output_type": output_dtype})
