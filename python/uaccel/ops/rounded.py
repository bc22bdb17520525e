"""The end of an operator whose real result is rounded once, half to even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.base import Attributes


@dataclass(frozen=True, kw_only=True)
class RoundedOnce(Attributes):
    """Totals are results times ``2**shift``; those within ``tolerance`` of the middle of two integers count as ties."""

    shift: int
    tolerance: int
    output_zero_point: int
    clamp_min: int
    clamp_max: int

    def finish(self, total: Any, dtype: str) -> Any:
        rounded = exact.round_half_even(total, self.shift, self.tolerance)
        return exact.finish(rounded, self.output_zero_point, self.clamp_min, self.clamp_max, dtype)
