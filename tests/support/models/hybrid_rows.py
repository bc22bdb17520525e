"""Layers of floats whose weights are bytes, as rows of `many`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from support.models.many import Row
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue
from support.models.windows import Window, spread_scales

__all__ = ["ROWS", "conv", "dense", "depthwise", "product"]

Options = Mapping[str, OptionValue]
Given = Activation | Constant | None


def _bytes(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """No -128: the converter writes none, and LiteRT's x86 kernels take it for 128."""
    return np.random.default_rng(shape).integers(-127, 128, shape).astype(np.int8)


def _bias(count: int) -> Constant:
    return Constant(np.random.default_rng(count).normal(size=count).astype(np.float32))


def dense(
    shape: tuple[int, ...],
    units: int,
    scales: Sequence[float] = (0.02,),
    *,
    bias: bool = True,
    bits: int = 8,
    asymmetric: bool = False,
    **more: OptionValue,
) -> Row:
    weights = Constant(_bytes(units, shape[-1]) // (16 if bits == 4 else 1), tuple(scales), bits=bits)
    options: Options = {"asymmetric_quantize_inputs": asymmetric, "keep_num_dims": len(shape) > 2, **more}
    inputs: list[Given] = [Activation(shape, "float32"), weights, _bias(units) if bias else None]
    return Row("FULLY_CONNECTED", inputs, [Activation((*shape[:-1], units), "float32")], options)


def conv(case: Window) -> Row:
    return _window("CONV_2D", case, _bytes(case.channels, *case.kernel, case.input[3] // case.groups), 0, {})


def depthwise(case: Window) -> Row:
    options: Options = {"depth_multiplier": case.channels // case.input[3]}
    return _window("DEPTHWISE_CONV_2D", case, _bytes(1, *case.kernel, case.channels), 3, options)


def _window(
    operator: str, case: Window, weights: np.ndarray[tuple[int, ...], np.dtype[np.int8]], axis: int, more: Options
) -> Row:
    options: Options = {
        "padding": case.padding,
        "stride_h": case.stride[0],
        "stride_w": case.stride[1],
        "dilation_h_factor": case.dilation[0],
        "dilation_w_factor": case.dilation[1],
        "fused_activation_function": case.activation,
    }
    constants = [Constant(weights, case.weight_scales, axis=axis), _bias(case.channels)]
    result = (case.input[0], case.output_extent(0), case.output_extent(1), case.channels)
    inputs: list[Given] = [Activation(case.input, "float32"), *constants]
    return Row(operator, inputs, [Activation(result, "float32")], {**options, **more})


def product(
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    result: tuple[int, ...],
    scales: Sequence[float] = (0.02,),
    *,
    axis: int = 0,
    asymmetric: bool = False,
    **turned: OptionValue,
) -> Row:
    inputs: list[Given] = [Activation(shape, "float32"), Constant(_bytes(*weights), tuple(scales), axis=axis)]
    options: Options = {"asymmetric_quantize_inputs": asymmetric, **turned}
    return Row("BATCH_MATMUL", inputs, [Activation(result, "float32")], options)


ROWS: Mapping[str, Row] = {
    "dense": dense((1, 40), 10),
    "dense, no bias": dense((3, 17), 5, bias=False),
    "dense, scales by channel": dense((2, 33), 6, spread_scales(6), fused_activation_function="RELU"),
    "dense, zero points": dense((4, 24), 7, asymmetric=True, fused_activation_function="RELU6"),
    "dense, zero points, scales by channel": dense((2, 9), 3, spread_scales(3), asymmetric=True),
    "dense, rank 3": dense((2, 3, 8), 4, fused_activation_function="RELU_N1_TO_1"),
    "dense, four bits": dense((2, 16), 5, spread_scales(5), bits=4),
    "conv": conv(Window(activation="RELU6")),
    "conv, two images": conv(Window(input=(2, 5, 7, 3), channels=5, stride=(2, 1))),
    "conv, dilation": conv(Window(dilation=(2, 1), padding="VALID")),
    "conv, scales by channel": conv(Window(input=(2, 6, 5, 4), weight_scales=spread_scales(6), activation="RELU")),
    "conv, scales by channel, strides": conv(
        Window(stride=(2, 3), kernel=(3, 2), padding="VALID", weight_scales=spread_scales(6))
    ),
    "conv, scales by channel, dilation": conv(Window(dilation=(2, 2), weight_scales=spread_scales(6))),
    "conv, groups": conv(Window(groups=2, weight_scales=spread_scales(6))),
    "conv, groups, equal scales": conv(Window(groups=2, weight_scales=(0.03,) * 6)),
    "pointwise": conv(Window(kernel=(1, 1), weight_scales=spread_scales(6))),
    "depthwise": depthwise(Window(channels=4, weight_scales=spread_scales(4), activation="RELU")),
    "depthwise, times two": depthwise(Window(input=(2, 5, 6, 3), weight_scales=spread_scales(6), stride=(2, 2))),
    "depthwise, dilation": depthwise(Window(channels=4, weight_scales=spread_scales(4), dilation=(2, 2))),
    "product": product((2, 3, 8), (1, 8, 5), (2, 3, 5)),
    "product, turned weights": product((4, 7), (5, 7), (4, 5), spread_scales(5), adj_y=True, asymmetric=True),
    "product, turned input": product((2, 7, 3), (7, 4), (2, 3, 4), adj_x=True, asymmetric=True),
    "product, scales by channel": product((3, 9), (9, 4), (3, 4), spread_scales(4), axis=1),
    "depthwise, one channel": depthwise(Window(input=(1, 6, 5, 1), channels=1)),
}
