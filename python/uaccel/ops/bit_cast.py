"""The bits of numbers, read as numbers of another type of the same width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, register, require
from uaccel.tvm_api import te, tirx


@dataclass(frozen=True)
class BitCastAttrs(Attributes):
    dtype: str


@register
class BitCast(IntegerOperator[BitCastAttrs]):
    """C is printed from its meaning."""

    name = "bit_cast"
    arguments = ("input",)
    elementwise = Elementwise.FIRST

    def infer(self, inputs: Sequence[TensorInfo], attrs: BitCastAttrs) -> TensorInfo:
        result = TensorInfo(inputs[0].shape, attrs.dtype)
        require(result.itemsize == inputs[0].itemsize, f"bit_cast: {inputs[0]} as {result}, which is of other width")
        return result

    def meaning(self, inputs: Sequence[Any], attrs: BitCastAttrs) -> Any:
        (data,) = inputs
        return te.compute(exact.info(data).shape, lambda *i: tirx.reinterpret(attrs.dtype, data(*i)), name=self.name)
