"""Rows of operators that make few elements of many, or many of few: each from the numbers that matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from support.models.many import Row
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue

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


def transpose_conv(
    shape: tuple[int, int, int, int] = (1, 3, 4, 2),
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (2, 2),
    padding: str = "SAME",
    *,
    size: tuple[int, int] | None = None,
    channels: int = 3,
    dtype: str = "int8",
    bias: str | None = "int32",
    act: str = "NONE",
    weight_scales: tuple[float, ...] = (0.01,),
    given: Quantised = (0.1, 3),
    wanted: Quantised = (0.2, -5),
) -> Row:
    """``size``: the output's, where it is not the usual one."""
    generator = np.random.default_rng(7)
    if size is None:
        extents = zip(shape[1:3], kernel, stride, strict=True)
        height, width = (e * s if padding == "SAME" else (e - 1) * s + k for e, k, s in extents)
        size = (height, width)
    weights = generator.integers(-127, 128, (channels, *kernel, shape[3])).astype(np.int8)
    out = (shape[0], *size, channels)
    inputs: Inputs = [
        Constant(np.array(out, np.int32)),
        Constant(weights, scales=weight_scales),
        activation(shape, dtype, given),
    ]
    if bias:
        values = generator.integers(-1000, 1000, channels).astype(bias)
        inputs.append(Constant(values, scales=tuple(given[0] * scale for scale in weight_scales)))
    options: Options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    options["fused_activation_function"] = act
    return Row("TRANSPOSE_CONV", inputs, [activation(out, dtype, wanted)], options)


def batch_matmul(
    lhs: Shape,
    rhs: Shape,
    *,
    adj_x: bool = False,
    adj_y: bool = False,
    constant: str = "",
    dtype: str = "int8",
    given: tuple[Quantised, Quantised] = ((0.1, 3), (0.05, -7)),
    wanted: Quantised = (0.4, 9),
) -> Row:
    """``constant``: lhs, rhs or neither. 16 bits mean products 2**14 times as large."""
    generator = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    inputs: Inputs = []
    for name, shape, (scale, zero_point) in zip(("lhs", "rhs"), (lhs, rhs), given, strict=True):
        if name == constant:
            values = generator.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
            inputs.append(Constant(values, (scale,), (0 if dtype == "int16" else zero_point,)))
        else:
            inputs.append(activation(shape, dtype, (scale, zero_point)))
    batch = np.broadcast_shapes(lhs[:-2], rhs[:-2])
    out = (*batch, lhs[-1] if adj_x else lhs[-2], rhs[-2] if adj_y else rhs[-1])
    factor = 1 << 14 if dtype == "int16" else 1
    output = activation(out, dtype, (wanted[0] * factor, wanted[1]))
    return Row("BATCH_MATMUL", inputs, [output], {"adj_x": adj_x, "adj_y": adj_y})


def log_softmax(shape: Shape, scale: float = 0.1) -> Row:
    return Row("LOG_SOFTMAX", [activation(shape, "int8", (scale, 4))], [Activation(shape, "int8", 1 / 16, 127)])


def l2_normalization(shape: Shape, zero_point: int = 4) -> Row:
    given = activation(shape, "int8", (0.1, zero_point))
    return Row("L2_NORMALIZATION", [given], [Activation(shape, "int8", 1 / 128, 0)])
