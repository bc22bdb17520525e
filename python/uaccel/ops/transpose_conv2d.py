"""Transposed convolution, NHWC, weights OHWI: each input pixel adds a weighted window to the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.conv2d import accumulator_suffix, output_stage, scale_constants, scale_step
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, portable, same, sides
from uaccel.ops.rounding import TFLITE, check_rounding
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class TransposeConv2dAttrs(Attributes):
    """``size`` is the output's height and width. ``padding``, top and left, is cut off the windows' sum."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    input_zero_point: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    rounding: str = TFLITE


class Window(Protocol):
    """Of the attributes what says where windows lie."""

    @property
    def size(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def padding(self) -> tuple[int, ...]: ...


def accumulated(data: Any, weights: Any, attrs: Window, dtype: str, zero_point: int = 0) -> Any:
    """The windows' sum."""
    info = exact.info(data)
    channels, kernel_h, kernel_w, depth = (int(extent) for extent in weights.shape)
    taps = [te.reduce_axis((0, e), name=n) for e, n in ((kernel_h, "ky"), (kernel_w, "kx"), (depth, "ci"))]
    zero, nothing = tirx.const(zero_point, dtype), tirx.const(0, dtype)

    def source(position: Any, tap: Any, axis: int) -> tuple[Any, Any]:
        """The input row or column that this tap reaches the output position from, and whether there is one."""
        scaled = position + attrs.padding[axis] - tap
        stride, extent = attrs.strides[axis], info.shape[1 + axis]
        index = tirx.floordiv(scaled, stride)
        return index, tirx.all(tirx.floormod(scaled, stride) == 0, index >= 0, index < extent)

    def element(n: Any, y: Any, x: Any, o: Any) -> Any:
        ky, kx, ci = taps
        (row, has_row), (column, has_column) = source(y, ky, 0), source(x, kx, 1)
        value = data(n, row, column, ci).astype(dtype)
        product = (value - zero if zero_point else value) * weights(o, ky, kx, ci).astype(dtype)
        return te.sum(tirx.if_then_else(tirx.all(has_row, has_column), product, nothing), axis=taps)

    return te.compute((info.shape[0], *attrs.size, channels), element, name="accumulated")


@register
class TransposeConv2d(IntegerOperator[TransposeConv2dAttrs]):
    """Transposed convolution with int32 accumulation (int64 for 16 bits) and per-channel requantisation."""

    name = "transpose_conv2d"
    arguments = ("input", "weights", "bias", "multiplier", "shift")

    def infer(self, inputs: Sequence[TensorInfo], attrs: TransposeConv2dAttrs) -> TensorInfo:
        data, weights = inputs[0], inputs[1]
        check_rounding(attrs, self.name)
        require(len(data.shape) == 4 and len(weights.shape) == 4, f"{self.name}: input and weights have rank 4")
        require(data.shape[3] == weights.shape[3], f"{self.name}: input {data} does not fit weights {weights}")
        return TensorInfo((data.shape[0], *attrs.size, weights.shape[0]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: TransposeConv2dAttrs) -> Any:
        data, weights, bias, multiplier, shift = inputs
        acc = accumulated(data, weights, attrs, str(bias.dtype), attrs.input_zero_point)
        return output_stage(acc, bias, multiplier, shift, attrs, str(data.dtype))

    def kernels(self, site: Site[TransposeConv2dAttrs]) -> Sequence[Kernel]:
        attrs, data, weights = site.attrs, site.operands[0].info, site.operands[1].value
        parameters = {
            "batch": data.shape[0],
            **sides("in", data.shape[1:3]),
            "in_channels": data.shape[3],
            **sides("out", attrs.size),
            "out_channels": weights.shape[0],
            **sides("kernel", weights.shape[1:3]),
            **sides("stride", attrs.strides),
            "pad_top": attrs.padding[0],
            "pad_left": attrs.padding[1],
            **same(attrs, "input_zero_point", "output_zero_point", "clamp_min", "clamp_max"),
            "scale_step": scale_step(site),
        }
        function = f"uaccel_transpose_conv2d_{accumulator_suffix(site)}"
        arguments: tuple[Argument, ...] = (Input(0), *_constants(site), Output(0))
        return [portable(function, "uaccel_transpose_conv2d", parameters, arguments)]

    def macs(self, site: Site[TransposeConv2dAttrs]) -> int:
        """As if no window were cut off at the border."""
        channels, height, width, _ = site.operands[1].info.shape
        return site.operands[0].info.elements * channels * height * width


def _constants(site: Site[TransposeConv2dAttrs]) -> tuple[Constant, ...]:
    """The zero point stays out of the bias: output pixels differ in how many taps reach them."""
    weights, bias, multiplier, shift = (operand.value for operand in site.operands[1:5])
    return (Constant("weights", weights), Constant("bias", bias), *scale_constants(multiplier, shift))
