"""Matrix product of floats with constant weights, bias, another tensor and activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Site, register, require
from uaccel.ops.conv2d_float import Conv2dFloatAttrs, conv2d_kernel
from uaccel.ops.float_sums import FloatSumAttrs, FloatSums, check_sums, finished, is_kernels
from uaccel.ops.kernel import Kernel
from uaccel.tvm_api import te


@register
class FullyConnectedFloat(FloatSums):
    """Rows by the rows of the weights."""

    name = "fully_connected_float"
    attributes = FloatSumAttrs

    def infer(self, inputs: Sequence[TensorInfo], attrs: FloatSumAttrs) -> TensorInfo:
        data, weights = inputs[:2]
        fits = len(data.shape) == len(weights.shape) == 2 and data.shape[1] == weights.shape[1]
        require(fits, f"{self.name}: input {data} does not fit weights {weights}")
        return check_sums(inputs, attrs, TensorInfo((data.shape[0], weights.shape[0]), data.dtype), self.name)

    def meaning(self, inputs: Sequence[Any], attrs: FloatSumAttrs) -> Any:
        data, weights, bias, *more = inputs
        k = te.reduce_axis((0, int(weights.shape[1])), name="k")
        shape = (int(data.shape[0]), int(weights.shape[0]))
        sums = te.compute(shape, lambda n, c: te.sum(data(n, k) * weights(c, k), axis=k), name="sums")
        return finished(sums, bias, more, attrs, self.name)

    def kernels(self, site: Site[FloatSumAttrs]) -> Sequence[Kernel]:
        return [conv2d_kernel(as_pixels(site))] if is_kernels(site) else ()


def as_pixels(site: Site[FloatSumAttrs]) -> Site[Any]:
    """The same as a convolution over so many pixels as there are rows."""

    def image(info: TensorInfo) -> TensorInfo:
        return replace(info, shape=(1, 1, *info.shape))

    data, weights, bias, *more = site.operands
    kernel = weights.value.reshape(weights.info.shape[0], 1, 1, -1)
    attrs = site.attrs
    plain = Conv2dFloatAttrs(attrs.activation, attrs.lower, attrs.upper, (1, 1), (0, 0, 0, 0), (1, 1), 1)
    operands = (
        replace(data, info=image(data.info)),
        replace(weights, info=replace(weights.info, shape=kernel.shape), constant=kernel),
        bias,
        *(replace(operand, info=image(operand.info)) for operand in more),
    )
    return Site(plain, operands, (image(site.output),))
