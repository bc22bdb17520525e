"""Bindings whose value nobody reads are dropped, so that no layer computes for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.tvm_api import relax


@dataclass(frozen=True)
class RemoveDeadCode:
    """Before: any module. After: every binding is read by another one or by the result."""

    name: str = "remove_dead_code"

    def __call__(self, module: Any) -> Any:
        return relax.transform.DeadCodeElimination(["main"])(module)
