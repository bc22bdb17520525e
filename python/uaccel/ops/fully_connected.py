"""Fully connected: rows of the input times the transposed weights, any input rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Channels, IntegerOperator, Site, register, require
from uaccel.ops.conv2d import accumulator_suffix, folded_constants, output_stage, scale_step
from uaccel.ops.int4 import is_int4, packed
from uaccel.ops.kernel import Argument, Input, Kernel, Output, portable, same
from uaccel.ops.rounding import TFLITE, check_rounding
from uaccel.tvm_api import te


@dataclass(frozen=True)
class FullyConnectedAttrs(Attributes):
    """``weight_bits`` as of a convolution."""

    input_zero_point: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int
    rounding: str = TFLITE
    weight_bits: int = 8


@register
class FullyConnected(IntegerOperator[FullyConnectedAttrs]):
    """Input [rows, depth], weights [units, depth]; the front ends flatten other ranks with a reshape."""

    name = "fully_connected"
    arguments = ("input", "weights", "bias", "multiplier", "shift")
    channels: ClassVar[Channels | None] = Channels.MIXED

    def infer(self, inputs: Sequence[TensorInfo], attrs: FullyConnectedAttrs) -> TensorInfo:
        data, weights = inputs[0], inputs[1]
        check_rounding(attrs, self.name)
        require(len(data.shape) == 2 and len(weights.shape) == 2, "fully_connected: input and weights have rank 2")
        require(data.shape[1] == weights.shape[1], f"fully_connected: input {data} does not fit weights {weights}")
        return TensorInfo((data.shape[0], weights.shape[0]), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: FullyConnectedAttrs) -> Any:
        data, weights, bias, multiplier, shift = inputs
        rows, depth = (int(extent) for extent in data.shape)
        k = te.reduce_axis((0, depth), name="k")
        acc_dtype = str(bias.dtype)
        zero = exact.const(attrs.input_zero_point, acc_dtype)

        def element(row: Any, unit: Any) -> Any:
            value = data(row, k).astype(acc_dtype) - zero
            return te.sum(value * weights(unit, k).astype(acc_dtype), axis=k)

        acc = te.compute((rows, weights.shape[0]), element, name="accumulated")
        return output_stage(acc, bias, multiplier, shift, attrs, str(data.dtype))

    def kernels(self, site: Site[FullyConnectedAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        weights = site.operands[1].value
        parameters = {
            "rows": data.shape[0],
            "depth": data.shape[1],
            "units": site.output.shape[1],
            **same(attrs, "output_zero_point", "clamp_min", "clamp_max"),
            "scale_step": scale_step(site),
        }
        function = f"uaccel_fully_connected_{accumulator_suffix(site)}"
        arguments: tuple[Argument, ...] = (Input(0), *folded_constants(site, weights), Output(0))
        kernel = portable(function, "uaccel_fully_connected", parameters, arguments)
        return [packed(kernel, weights) if is_int4(site) else kernel]
