"""What kernels may use of the CPU they are compiled for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Target:
    """``cpu`` is its maker's name for it.

    ``features`` are those of a board file, ``embedded`` for every board, ``rv32`` for RISC-V.
    """

    cpu: str = ""
    features: frozenset[str] = frozenset()

    @classmethod
    def of(cls, cpu: str, features: Iterable[str]) -> Target:
        return cls(cpu, frozenset(features))

    def has(self, requires: Iterable[str]) -> bool:
        return self.features.issuperset(requires)


PORTABLE = Target()
"""Any CPU."""

EMBEDDED: Final = ("embedded",)
"""Any CPU of a board. On the computer itself the portable kernels serve, which take no scratch memory."""
