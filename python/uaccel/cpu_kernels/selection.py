"""How layers are computed on a board: by which kernels, and who picks among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.board import Board
from uaccel.cpu_kernels.choice import Selector
from uaccel.cpu_kernels.costs import Estimated
from uaccel.cpu_kernels.records import Measured, read_records
from uaccel.cpu_kernels.target import PORTABLE, Target


@dataclass(frozen=True)
class Selection:
    """The CPU that kernels are for, who picks among those that it can run, and what that favours."""

    target: Target = PORTABLE
    selector: Selector = field(default_factory=Estimated)
    favour: Favour = Favour.balanced

    @classmethod
    def on(cls, target: Target, favour: Favour = Favour.balanced) -> Selection:
        """By what was measured of other layers, on this CPU or one like it."""
        return cls(target, Estimated.on(target, favour=favour), favour)


ANY_CPU: Final = Selection()
"""Kernels for any CPU."""


def selection_for(board: Board, records: Path | None = None, favour: Favour = Favour.balanced) -> Selection:
    """By what was measured where ``records`` are given, else by estimates."""
    target = target_of(board)
    if records is None:
        return Selection.on(target, favour)
    estimated = Estimated.on(target, favour=favour)
    return Selection(target, Measured(read_records(records, target.cpu), estimated, favour), favour)


def target_of(board: Board) -> Target:
    kind = [] if board.cpu.arch == "native" else ["embedded"]
    kind += ["rv32"] if board.cpu.arch == "rv32" else []
    return Target.of(board.cpu.name, {*board.cpu.features, *kind})
