"""How layers are computed on a board: by which kernels, and who picks among them."""

from __future__ import annotations

from pathlib import Path

from uaccel.board import Board
from uaccel.lower.how import How
from uaccel.variants import Estimated, Measured, Target, read_records


def how_for(board: Board, records: Path | None = None) -> How:
    """By what was measured where ``records`` are given, else by estimates."""
    target = target_of(board)
    if records is None:
        return How.on(target)
    return How(target, Measured(read_records(records, target.cpu), Estimated.on(target)))


def target_of(board: Board) -> Target:
    kind = [] if board.cpu.arch == "native" else ["embedded"]
    kind += ["rv32"] if board.cpu.arch == "rv32" else []
    return Target.of(board.cpu.name, {*board.cpu.features, *kind})
