"""Calls CMSIS-NN's convolutions and pools."""

from __future__ import annotations

import math
from typing import Any, Final

from uaccel.accelerator import Lowered, Region
from uaccel.peer.text import Caller, across, suffix

BLOCK: Final = 124  # Channels that the depthwise function for Helium takes at once.
LANES: Final = 16

# Convolutions.


def no_window(region: Region) -> str | None:
    """Says what is wrong with the types of a convolution; None where nothing is."""
    data, weights, bias, *scales = region.operands
    if data.info.dtype not in ("int8", "int16") or weights.info.dtype != "int8":
        return f"{data.info.dtype} times {weights.info.dtype}, and it computes int8 and int16 with weights of int8"
    if any(one.constant is None for one in (weights, bias, *scales)):
        return "its weights are computed at run time, wanted constants"
    bits = getattr(region.attrs, "weight_bits", 8)
    return None if bits == 8 else f"weights of {bits} bits, wanted 8"


def no_convolution(region: Region) -> str | None:
    grouped = region.attrs.groups != 1 and region.output.dtype == "int16"
    return no_window(region) or ("groups of int16, and it has none" if grouped else None)


def no_depthwise(region: Region) -> str | None:
    narrow = region.output.dtype == "int16" and region.operands[2].info.dtype != "int64"
    return no_window(region) or ("int16 with a bias of int32, wanted int64" if narrow else None)


def no_transposed(region: Region) -> str | None:
    wide = region.output.dtype != "int8"
    return no_window(region) or ("int16, and it computes int8" if wide else None)


def scaled(caller: Caller) -> None:
    """Adds weights, bias, and the multiplier and shift of each channel."""
    region = caller.region
    caller.operand(1, "weights")
    caller.operand(2, "bias")
    for index, name in ((3, "multiplier"), (4, "shift")):
        caller.constant(name, region.operands[index].value.astype("int32"))
    caller.local("cmsis_nn_per_channel_quant_params", "quant", "{(int32_t *)multiplier, (int32_t *)shift}")


def of_images(region: Region, filters: tuple[int, ...]) -> Caller:
    """Begins the call of a convolution: its constants, and the extents of input, filter, bias and output."""
    caller = Caller(region)
    caller.operand(0, "input")
    scaled(caller)
    for name, extents in (
        ("input_dims", region.operands[0].info.shape),
        ("filter_dims", filters),
        ("bias_dims", (1, 1, 1, region.output.shape[3])),
        ("output_dims", region.output.shape),
    ):
        caller.static("cmsis_nn_dims", name, *extents)
    return caller


def offsets(attrs: Any) -> tuple[int, int]:
    """What is added to the input and to the output."""
    return -attrs.input_zero_point, attrs.output_zero_point


CLAMP: Final = ("clamp_min", "clamp_max")
ARGUMENTS: Final = "&params, &quant, &input_dims, input, &filter_dims, weights, &bias_dims, {}, &output_dims, output"
EXTENTS: Final = "&params, &input_dims, &filter_dims, &output_dims"


def clamp(attrs: Any) -> tuple[int, ...]:
    return tuple(getattr(attrs, name) for name in CLAMP)


def windowed(caller: Caller, function: str, bias: str = "bias") -> Lowered:
    """A call of a convolution's wrapper, which chooses the function for the layer's extents."""
    caller.local("cmsis_nn_context", "context", f"{{scratch, {caller.scratch}}}")
    call = f"arm_{function}(&context, {ARGUMENTS.format(bias)})"
    return caller.made(call, f"arm_{function}_get_buffer_size({EXTENTS})")


def columns(terms: int, itemsize: int) -> int:
    """Bytes of four windows side by side, each filled up to whole vectors."""
    return 4 * itemsize * LANES * math.ceil(terms / LANES)


def convolution(region: Region) -> Lowered:
    attrs, data = region.attrs, region.operands[0].info
    filters = region.operands[1].info.shape
    caller = of_images(region, filters)
    lies = (across(attrs.strides), across(attrs.padding), across(attrs.dilation))
    caller.static("cmsis_nn_conv_params", "params", *offsets(attrs), *lies, clamp(attrs))
    caller.scratch = columns(filters[1] * filters[2] * data.shape[3], max(data.itemsize, 2))
    if data.dtype == "int8":
        return windowed(caller, "convolve_wrapper_s8")
    narrow = region.operands[2].info.dtype == "int32"
    caller.local("cmsis_nn_bias_data", "sums", f"{{bias, {str(narrow).lower()}}}")
    return windowed(caller, "convolve_wrapper_s16", "&sums")


def depthwise(region: Region) -> Lowered:
    attrs, data = region.attrs, region.operands[0].info
    height, width, channels = region.operands[1].info.shape
    caller = of_images(region, (1, height, width, channels))
    lies = (across(attrs.strides), across(attrs.padding), across(attrs.dilation))
    numbers = (*offsets(attrs), channels // data.shape[3], *lies, clamp(attrs))
    caller.static("cmsis_nn_dw_conv_params", "params", *numbers)
    taps, most = height * width, max(BLOCK, data.shape[3])
    alone = columns(taps, 1) + taps * channels if data.shape[3] == 1 else 0
    caller.scratch = 4 * most * taps * data.itemsize + LANES + alone
    return windowed(caller, f"depthwise_conv_wrapper_{suffix(data.dtype)}")


def transposed(region: Region) -> Lowered:
    """The second context holds the filter turned round, where the wrapper computes an ordinary convolution."""
    attrs, data, filters = region.attrs, region.operands[0].info, region.operands[1].info
    channels, height, width, depth = filters.shape
    caller = of_images(region, filters.shape)
    lies = (across(attrs.strides), across(attrs.padding), (0, 0), (1, 1))
    caller.static("cmsis_nn_transpose_conv_params", "params", *offsets(attrs), *lies, clamp(attrs))
    rows, row = max(height, attrs.strides[0]), (data.shape[2] - 1) * attrs.strides[1] + max(width, *attrs.strides)
    first = max(columns(height * width * depth, 2), 4 * row * rows * channels)
    caller.scratch = first + filters.elements
    caller.local("cmsis_nn_context", "context", f"{{scratch, {first}}}")
    turned = f"{{(int8_t *)scratch + {first}, {filters.elements}}}"
    caller.local("cmsis_nn_context", "reversed", turned)
    call = f"arm_transpose_conv_wrapper_s8(&context, &reversed, {ARGUMENTS.format('bias')})"
    return caller.made(call, f"arm_transpose_conv_s8_get_buffer_size({EXTENTS}) + {filters.elements}")


# Pools.


def pool(region: Region) -> Lowered:
    attrs, data = region.attrs, region.operands[0].info
    caller = Caller(region)
    caller.operand(0, "input")
    caller.static("cmsis_nn_dims", "input_dims", *data.shape)
    caller.static("cmsis_nn_dims", "filter_dims", 1, *attrs.window, 1)
    caller.static("cmsis_nn_dims", "output_dims", *region.output.shape)
    lies = (across(attrs.strides), across(attrs.padding))
    caller.static("cmsis_nn_pool_params", "params", *lies, clamp(attrs))
    caller.scratch = 4 * data.shape[3]
    caller.local("cmsis_nn_context", "context", f"{{scratch, {caller.scratch}}}")
    mean = region.root.op.endswith("average_pool2d")
    function = f"arm_{'avgpool' if mean else 'max_pool'}_{suffix(data.dtype)}"
    call = f"{function}(&context, &params, &input_dims, input, &filter_dims, &output_dims, output)"
    return caller.made(call, f"{function}_get_buffer_size({region.output.shape[2]}, {data.shape[3]})" if mean else "")
