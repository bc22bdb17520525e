"""A board's CPU, as kernels are chosen for it."""

from __future__ import annotations

from uaccel.board.types import Board
from uaccel.variants import Target


def target_of(board: Board) -> Target:
    features = {*board.cpu.features, *(["rv32"] if board.cpu.arch == "rv32" else [])}
    return Target.of(board.cpu.name, features)
