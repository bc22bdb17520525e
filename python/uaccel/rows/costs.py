"""What rows are expected to take: the kernels' calls, the rows that move, and the order of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from uaccel.cpu_kernels import Estimated, Option, Work, kernel_options
from uaccel.cpu_kernels.target import Target
from uaccel.ops.kernel import Kernel

UNKNOWN: Final[Mapping[str, float]] = {"mac": 6.0, "output": 12.0, "call": 300.0}
"""Of kernels that were never measured."""
MOVED: Final = 0.75
"""For each byte that moves within a buffer or comes in."""
DISPATCH: Final = 30.0
"""For each call, and each step."""


@dataclass(frozen=True)
class Costs:
    estimated: Estimated

    @classmethod
    def on(cls, target: Target) -> Costs:
        return cls(Estimated.on(target))

    def of(self, kernel: Kernel, work: Work) -> float:
        known = self.estimated.of(_option(kernel), work)
        if known is not None:
            return known
        return UNKNOWN["mac"] * work.macs + UNKNOWN["output"] * work.outputs + UNKNOWN["call"]


def _option(kernel: Kernel) -> Option:
    return kernel_options([kernel])[0]
