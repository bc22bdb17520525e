"""The register of kernels for Relax's own operators that move bytes, whatever the element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel

LayoutRule = Callable[[Any, tuple[Operand, ...], tuple[TensorInfo, ...]], "Sequence[Kernel]"]

RULES: dict[str, LayoutRule] = {}


def layout(*names: str) -> Callable[[LayoutRule], LayoutRule]:
    """Register how the Relax operators ``relax.<name>`` are computed; an empty answer means the TIR fallback."""

    def add(rule: LayoutRule) -> LayoutRule:
        RULES.update({f"relax.{name}": rule for name in names})
        return rule

    return add
