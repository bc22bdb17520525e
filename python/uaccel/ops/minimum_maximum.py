"""The smaller and the larger of two tensors' stored values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uaccel.ops.base import Attributes, register
from uaccel.ops.broadcast import BinaryOperator
from uaccel.ops.kernel import ParameterValue
from uaccel.tvm_api import tirx


@dataclass(frozen=True)
class MinimumMaximumAttrs(Attributes):
    """None: the reference compares what is stored, whatever the scales."""


class _Choice(BinaryOperator[MinimumMaximumAttrs]):
    header = "uaccel_minimum_maximum.h"

    def parameters(self, attrs: MinimumMaximumAttrs) -> Mapping[str, ParameterValue]:
        return {}


@register
class Minimum(_Choice):
    """min(input1, input2)."""

    name = "minimum"
    hides_differences = True
    kernel = "uaccel_minimum"

    def combine(self, x: Any, y: Any, attrs: MinimumMaximumAttrs, dtype: str) -> Any:
        return tirx.min(x, y)


@register
class Maximum(_Choice):
    """max(input1, input2)."""

    name = "maximum"
    hides_differences = True
    kernel = "uaccel_maximum"

    def combine(self, x: Any, y: Any, attrs: MinimumMaximumAttrs, dtype: str) -> Any:
        return tirx.max(x, y)
