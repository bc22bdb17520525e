"""Transposed convolution in float, NHWC, weights OHWI: its C is printed from its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.transpose_conv2d import accumulated
from uaccel.tvm_api import te


@dataclass(frozen=True)
class TransposeConv2dFloatAttrs(Attributes):
    """As of the quantised one."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]


@register
class TransposeConv2dFloat(IntegerOperator[TransposeConv2dFloatAttrs]):
    """Each input pixel adds a weighted window to the output."""

    name = "transpose_conv2d_float"
    arguments = ("input", "weights")

    def infer(self, inputs: Sequence[TensorInfo], attrs: TransposeConv2dFloatAttrs) -> TensorInfo:
        data, weights = inputs
        require(len(data.shape) == 4 and len(weights.shape) == 4, f"{self.name}: input and weights have rank 4")
        require(data.shape[3] == weights.shape[3], f"{self.name}: input {data} does not fit weights {weights}")
        return TensorInfo((data.shape[0], *attrs.size, weights.shape[0]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: TransposeConv2dFloatAttrs) -> Any:
        data, weights = inputs
        sums = accumulated(data, weights, attrs, str(data.dtype))
        return te.compute(sums.shape, lambda *index: sums(*index), name=self.name)

    def macs(self, site: Site[TransposeConv2dFloatAttrs]) -> int:
        """As if no window were cut off at the border."""
        channels, height, width, _ = site.operands[1].info.shape
        return site.operands[0].info.elements * channels * height * width
