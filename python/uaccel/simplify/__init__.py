"""Passes over the imported module that keep its meaning: one a file, a frozen dataclass with its options as fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from uaccel.simplify.drop_channels import DropChannels
from uaccel.simplify.fold_constants import FoldConstants
from uaccel.simplify.remove_dead_code import RemoveDeadCode

__all__ = ["PASSES", "DropChannels", "FoldConstants", "Pass", "RemoveDeadCode", "simplify"]


class Pass(Protocol):
    """Takes a normalised module, gives a normalised module that computes the same."""

    @property
    def name(self) -> str: ...
    def __call__(self, module: Any) -> Any: ...


PASSES: Sequence[Pass] = (RemoveDeadCode(), FoldConstants(), DropChannels())


def simplify(module: Any) -> Any:
    """All passes in order."""
    for step in PASSES:
        module = step(module)
    return module
