"""What a stream costs, and what it shall cost least of."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.accelerator.description import OBJECTIVES

LATENCY, ENERGY = OBJECTIVES
"""Cycles, or bytes moved between memory and chip; of two that are equal in it the better one in the other."""


Key = tuple[int, int]
"""Of costs for an objective: less is better."""


@dataclass(frozen=True)
class Cost:
    cycles: int
    bytes: int

    def key(self, objective: str) -> Key:
        """For comparing."""
        return (self.cycles, self.bytes) if objective == LATENCY else (self.bytes, self.cycles)
