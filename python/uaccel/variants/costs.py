"""What a kernel is expected to take, from measurements of others of its shape: the choice without records.

``costs.json`` beside this module holds, for each kernel function, what one multiply-accumulate, one output and one
call take in instructions; ``scripts/fit_costs.py`` makes it from records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from uaccel.variants.choice import Option, Work

Coefficients = Mapping[str, float]
"""``mac``, ``output``, ``call``."""


@lru_cache(maxsize=1)
def shipped_costs() -> Mapping[str, Coefficients]:
    path = Path(__file__).with_name("costs.json")
    costs: Mapping[str, Coefficients] = json.loads(path.read_text(encoding="utf-8"))["functions"]
    return costs


@dataclass(frozen=True)
class Estimated:
    """The cheapest by estimate; the first of those that there is no estimate for, before all others."""

    costs: Mapping[str, Coefficients] = field(default_factory=shipped_costs)

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        estimates = [self.of(option, work) for option in options]
        best = min(range(len(options)), key=estimates.__getitem__)
        return best, f"about {estimates[best]:.0f} instructions estimated" if estimates[best] else "the first that fits"

    def of(self, option: Option, work: Work) -> float:
        known = [self.costs[function] for function in option.functions if function in self.costs]
        return sum(c["mac"] * work.macs + c["output"] * work.outputs + c["call"] for c in known)
