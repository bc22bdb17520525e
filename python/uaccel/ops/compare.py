"""Defines comparisons of quantised tensors, which are brought to a common scale as the reference rounds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops.binary import BinaryOperator, rescaled
from uaccel.ops.operator import Attributes, require
from uaccel.tvm_api import tirx

# The attribute ``kind`` is a place in this list.
KINDS: Final = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


class CompareAttrs(Attributes):
    """Each input is raised by ``left_shift`` bits and scaled; ``kind`` is the comparison's place in ``KINDS``."""

    kind: int
    left_shift: int
    zero_point1: int
    multiplier1: int
    shift1: int
    zero_point2: int
    multiplier2: int
    shift2: int


class Compare(BinaryOperator[CompareAttrs]):
    """Computes input1 (==, !=, >, >=, <, <=) input2, of int8."""

    name = "compare"
    hides_differences = True

    def infer(self, inputs: Sequence[TensorInfo], attrs: CompareAttrs) -> TensorInfo:
        require(inputs[0].dtype == "int8", f"compare: input is {inputs[0].dtype}, wanted int8")
        require(0 <= attrs.kind < len(KINDS), f"compare: {attrs.kind} is no comparison")
        return TensorInfo(super().infer(inputs, attrs).shape, "bool")

    def either(self, value: Any, attrs: CompareAttrs, number: str) -> Any:
        return rescaled(value, attrs, number)

    def combine(self, x: Any, y: Any, attrs: CompareAttrs, dtype: str) -> Any:
        answers = (tirx.all(x <= y, x >= y), tirx.any(x < y, x > y), x > y, x >= y, x < y, x <= y)
        return answers[attrs.kind]
