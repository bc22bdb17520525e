"""Layers whose weights come at run time, or have a zero point: their C is printed from their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.base import Site, register
from uaccel.ops.conv2d import Conv2d, output_stage
from uaccel.ops.depthwise_conv2d import DepthwiseConv2d
from uaccel.ops.fully_connected import FullyConnected, FullyConnectedAttrs
from uaccel.ops.kernel import Kernel
from uaccel.ops.transpose_conv2d import TransposeConv2d
from uaccel.tvm_api import te

GIVEN = ("input", "given_weights", "bias", "multiplier", "shift")
"""No pass takes the second for a constant."""


@register
class GivenConv2d(Conv2d):
    """A convolution whose weights are no constant."""

    name = "conv2d_given"
    arguments = GIVEN
    channels = None

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        return ()

    def macs(self, site: Site[Any]) -> int:
        return site.output.elements * (site.operands[1].info.elements // site.output.shape[3])


@register
class GivenDepthwiseConv2d(DepthwiseConv2d):
    """A depthwise convolution whose weights are no constant."""

    name = "depthwise_conv2d_given"
    arguments = GIVEN
    channels = None

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        return ()


@register
class GivenTransposeConv2d(TransposeConv2d):
    """A transposed convolution whose weights are no constant."""

    name = "transpose_conv2d_given"
    arguments = GIVEN

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        return ()


@dataclass(frozen=True)
class GivenFullyConnectedAttrs(FullyConnectedAttrs):
    """``weight_zero_point`` is taken from every weight."""

    weight_zero_point: int = 0


@register
class GivenFullyConnected(FullyConnected):
    """Fully connected with weights that are no constant, or that have a zero point."""

    name = "fully_connected_given"
    attributes = GivenFullyConnectedAttrs
    arguments = GIVEN
    channels = None

    def meaning(self, inputs: Sequence[Any], attrs: FullyConnectedAttrs) -> Any:
        data, weights, bias, multiplier, shift = inputs
        rows, depth = (int(extent) for extent in data.shape)
        k, acc_dtype = te.reduce_axis((0, depth), name="k"), str(bias.dtype)
        points = (attrs.input_zero_point, getattr(attrs, "weight_zero_point", 0))
        zero, weight_zero = (exact.const(point, acc_dtype) for point in points)

        def element(row: Any, unit: Any) -> Any:
            value = data(row, k).astype(acc_dtype) - zero
            return te.sum(value * (weights(unit, k).astype(acc_dtype) - weight_zero), axis=k)

        acc = te.compute((rows, weights.shape[0]), element, name="accumulated")
        return output_stage(acc, bias, multiplier, shift, attrs, str(data.dtype))

    def kernels(self, site: Site[FullyConnectedAttrs]) -> Sequence[Kernel]:
        return ()

    def macs(self, site: Site[FullyConnectedAttrs]) -> int:
        return site.output.elements * site.operands[0].info.shape[1]
