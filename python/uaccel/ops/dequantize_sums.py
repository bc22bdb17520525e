"""What sums of products mean, where a model does not quantise them again: one float output stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, operand_arguments, register, require
from uaccel.ops.kernel import Kernel, Output, portable
from uaccel.tvm_api import te


@dataclass(frozen=True)
class DequantizeSumsAttrs(Attributes):
    """``axis`` is that of the channels."""

    axis: int


@register
class DequantizeSums(IntegerOperator[DequantizeSumsAttrs]):
    """(sums + bias, which wraps) * scale + rest, in single precision."""

    name = "dequantize_sums"
    arguments = ("sums", "bias", "scale", "rest")
    channel_axis = "axis"

    def infer(self, inputs: Sequence[TensorInfo], attrs: DequantizeSumsAttrs) -> TensorInfo:
        sums, *others = inputs
        rank = len(sums.shape)
        require(sums.dtype == "int32" and rank >= 2, f"dequantize_sums: {sums}, wanted int32 of rank 2 or more")
        require(0 <= attrs.axis < rank, f"dequantize_sums: axis {attrs.axis} of {sums}")
        dtypes = ("int32", "float32", "float32")
        wanted = [TensorInfo((sums.shape[attrs.axis],), dtype) for dtype in dtypes]
        require(
            others == wanted, f"dequantize_sums: {', '.join(map(str, others))}, wanted {', '.join(map(str, wanted))}"
        )
        return TensorInfo(sums.shape, "float32")

    def meaning(self, inputs: Sequence[Any], attrs: DequantizeSumsAttrs) -> Any:
        sums, bias, scale, rest = inputs

        def element(*index: Any) -> Any:
            c = index[attrs.axis]
            total = exact.i32(exact.wrap32(exact.i64(sums(*index)) + exact.i64(bias(c))))
            return total.astype("float32") * scale(c) + rest(c)

        return te.compute(sums.shape, element, name=self.name)

    def kernels(self, site: Site[DequantizeSumsAttrs]) -> Sequence[Kernel]:
        axis, shape = site.attrs.axis, site.output.shape
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        parameters = {"outer": outer, "channels": shape[axis], "inner": inner}
        arguments = (*operand_arguments(site.operands, self.arguments), Output(0))
        function = struct = "uaccel_dequantize_sums"
        return [portable(function, struct, parameters, arguments, inplace=(0,))]
