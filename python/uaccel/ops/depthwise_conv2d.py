"""Depthwise convolution, NHWC, weights HWC with any channel multiplier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Channels, IntegerOperator, Site, register, require
from uaccel.ops.behind import site_behind
from uaccel.ops.conv2d import (
    Conv2dAttrs,
    accumulator_suffix,
    folded_constants,
    infer_window,
    output_stage,
    padded,
    window_parameters,
)
from uaccel.ops.int4 import is_int4, packed
from uaccel.ops.kernel import Argument, Input, Kernel, Output, portable
from uaccel.tvm_api import te, tirx


@register
class DepthwiseConv2d(IntegerOperator[Conv2dAttrs]):
    """Output channel o reads input channel o // multiplier; ``groups`` is the number of input channels."""

    name = "depthwise_conv2d"
    arguments = ("input", "weights", "bias", "multiplier", "shift")
    channels: ClassVar[Channels | None] = Channels.APART

    def infer(self, inputs: Sequence[TensorInfo], attrs: Conv2dAttrs) -> TensorInfo:
        data, weights = inputs[0], inputs[1]
        require(len(data.shape) == 4 and len(weights.shape) == 3, "depthwise_conv2d: input rank 4, weights rank 3")
        height, width, channels = weights.shape
        require(channels % data.shape[3] == 0, f"depthwise_conv2d: {channels} channels from {data}")
        return infer_window(data, (height, width), attrs, channels, "depthwise_conv2d")

    def meaning(self, inputs: Sequence[Any], attrs: Conv2dAttrs) -> Any:
        data, weights, bias, multiplier, shift = inputs
        kernel_h, kernel_w, channels = (int(extent) for extent in weights.shape)
        times = channels // int(data.shape[3])
        source = padded(data, attrs)
        acc_dtype = str(bias.dtype)
        ky, kx = te.reduce_axis((0, kernel_h), name="ky"), te.reduce_axis((0, kernel_w), name="kx")
        zero = exact.const(attrs.input_zero_point, acc_dtype)

        def element(n: Any, y: Any, x: Any, c: Any) -> Any:
            row = y * attrs.strides[0] + ky * attrs.dilation[0]
            column = x * attrs.strides[1] + kx * attrs.dilation[1]
            value = source(n, row, column, tirx.floordiv(c, times)).astype(acc_dtype) - zero
            return te.sum(value * weights(ky, kx, c).astype(acc_dtype), axis=[ky, kx])

        info = TensorInfo(tuple(int(e) for e in data.shape), str(data.dtype))
        shape = infer_window(info, (kernel_h, kernel_w), attrs, channels, "depthwise_conv2d").shape
        acc = te.compute(shape, element, name="accumulated")
        return output_stage(acc, bias, multiplier, shift, attrs, str(data.dtype))

    def kernels(self, site: Site[Conv2dAttrs]) -> Sequence[Kernel]:
        weights = site.operands[1].value
        kernel_h, kernel_w, channels = weights.shape
        function = f"uaccel_depthwise_conv2d_{accumulator_suffix(site)}"
        constants = folded_constants(site, weights.reshape(-1, channels).T, packed=weights)
        parameters = window_parameters(site, (kernel_h, kernel_w))
        arguments: tuple[Argument, ...] = (Input(0), *constants, Output(0))
        kernel = portable(function, "uaccel_depthwise_conv2d", parameters, arguments, behind=site_behind(site))
        rows = weights.reshape(-1, channels)
        return [packed(kernel, rows) if is_int4(site) else kernel]

    def macs(self, site: Site[Conv2dAttrs]) -> int:
        return site.output.elements * int(np.prod(site.operands[1].info.shape[:2]))
