"""What must be known of a board to estimate cycles on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.board import Board
from uaccel.cycles.estimate import Region


@dataclass(frozen=True)
class Timing:
    """``slow``: memories that code waits for."""

    core: str
    objdump: str
    slow: Sequence[Region] = ()

    @classmethod
    def of(cls, board: Board) -> Timing:
        slow = [Region(memory.origin, memory.end, memory.wait_states) for memory in board.memories]
        return cls(board.cpu.name, f"{board.cpu.toolchain}-objdump", [region for region in slow if region.wait_states])

    def to_json(self) -> dict[str, Any]:
        return {"core": self.core, "objdump": self.objdump, "slow": [list(region) for region in self.slow]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Timing:
        return cls(data["core"], data["objdump"], [Region(*row[:3]) for row in data["slow"]])
