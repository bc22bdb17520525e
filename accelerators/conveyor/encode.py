"""One call of an operator as a command of the device: its fields, and its constants as the device reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.accelerator import OpCall

from .commands import cycles

DEPTHWISE = "uaccel.depthwise_conv2d"
FULLY_CONNECTED = "uaccel.fully_connected"
POOLS = {"uaccel.average_pool2d": "average", "uaccel.max_pool2d": "largest"}
VIEW = "relax.reshape"


Held = str | NDArray[Any]
"""A tensor by its name, or what a constant holds."""


@dataclass(frozen=True)
class Encoded:
    """A command without places."""

    operation: str
    fields: Mapping[str, int]
    tensors: Mapping[str, Held]

    @property
    def cycles(self) -> int:
        return cycles(self.operation, self.fields)


def encode(call: OpCall) -> Encoded:
    """The command for a call that the checks have let pass."""
    if call.op == "uaccel.add":
        return _addition(call)
    if call.op in POOLS:
        attrs = call.attrs
        fields = {**_window(call, attrs.window, attrs), "clamp_min": attrs.clamp_min, "clamp_max": attrs.clamp_max}
        return Encoded(POOLS[call.op], fields, {"input": _source(call, 0), "output": call.results[0]})
    return _convolution(call)


def fields_of(call: OpCall) -> Mapping[str, int]:
    return encode(call).fields


def _convolution(call: OpCall) -> Encoded:
    """Depthwise ones are convolutions of as many groups as there are channels, fully connected layers of one pixel."""
    attrs, filters = call.attrs, _filters(call)
    dense = call.op == FULLY_CONNECTED
    fields = {
        **(_dense(call) if dense else _window(call, filters.shape[1:3], attrs)),
        "dilation_height": 1 if dense else attrs.dilation[0],
        "dilation_width": 1 if dense else attrs.dilation[1],
        "groups": 1 if dense else call.operands[0].info.shape[3] // filters.shape[3],
        "input_zero_point": attrs.input_zero_point,
        "output_zero_point": attrs.output_zero_point,
        "clamp_min": attrs.clamp_min,
        "clamp_max": attrs.clamp_max,
    }
    constants = {"channels": _channels(call, filters), "filters": filters}
    return Encoded("convolve", fields, {"input": _source(call, 0), **constants, "output": call.results[0]})


def _filters(call: OpCall) -> NDArray[Any]:
    """One after the other: OHWI, where I counts the channels of a group."""
    weights = call.operands[1].value
    if call.op == DEPTHWISE:
        return np.ascontiguousarray(weights.transpose(2, 0, 1)[..., None])
    return weights[:, None, None, :] if call.op == FULLY_CONNECTED else weights


def _channels(call: OpCall, filters: NDArray[Any]) -> NDArray[Any]:
    """Bias, multiplier and shift for each output channel; the input's zero point is in the bias already."""
    bias, multiplier, shift = (operand.value.astype(np.int64) for operand in call.operands[2:5])
    correction = call.attrs.input_zero_point * filters.reshape(len(filters), -1).astype(np.int64).sum(axis=1)
    return np.stack([bias - correction, multiplier, shift], axis=1).astype("<i4")


def _window(call: OpCall, kernel: tuple[int, ...], attrs: Any) -> dict[str, int]:
    data, output = call.operands[0].info.shape, call.output.shape
    return {
        **dict(zip(("batch", "in_height", "in_width", "in_channels"), data, strict=True)),
        **dict(zip(("out_height", "out_width", "out_channels"), output[1:], strict=True)),
        "kernel_height": kernel[0],
        "kernel_width": kernel[1],
        "stride_height": attrs.strides[0],
        "stride_width": attrs.strides[1],
        "pad_top": attrs.padding[0],
        "pad_left": attrs.padding[1],
    }


def _dense(call: OpCall) -> dict[str, int]:
    (rows, depth), units = call.operands[0].info.shape, call.output.shape[1]
    ones = ("in_height", "in_width", "out_height", "out_width", "kernel_height", "kernel_width")
    fields = {"batch": rows, "in_channels": depth, "out_channels": units} | dict.fromkeys(ones, 1)
    return fields | {"stride_height": 1, "stride_width": 1, "pad_top": 0, "pad_left": 0}


def _addition(call: OpCall) -> Encoded:
    """A constant is repeated ahead of time until it has the result's shape."""
    tensors: dict[str, Held] = {"output": call.results[0]}
    for index, role in enumerate(("first", "second")):
        constant = call.operands[index].constant
        tensors[role] = _source(call, index) if constant is None else np.broadcast_to(constant, call.output.shape)
    fields = {"elements": call.output.elements} | asdict(call.attrs)
    return Encoded("add", fields, tensors)


def _source(call: OpCall, index: int) -> str:
    source = call.sources[index]
    if source is None:
        raise ValueError(f"operand {index} of {call} is a constant, wanted a tensor")
    return source
