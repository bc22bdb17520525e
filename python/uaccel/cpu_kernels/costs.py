"""What a kernel is expected to take, from measurements of others of its shape: the choice without records.

``costs.json`` beside this module holds, for each CPU that was measured and each kernel function, what one
multiply-accumulate, one output and one call take: in instructions (``cpus``), and where the core's timings are known in
estimated cycles (``cycles``). ``code`` has the bytes of each function and of those that it calls.
``scripts/fit_costs.py`` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.choice import Option, Work
from uaccel.cpu_kernels.target import Target

Coefficients = Mapping[str, float]
"""``mac``, ``output``, ``call``."""
MEASURED: Final = (("helium", "cortex-m55"), ("dsp", "cortex-m4"), ("rvv", "rv32imacv"), ("rv32", "rv32imac"))
"""Which CPU speaks for others with a feature; the last resort is one that has none of them."""
PLAIN: Final = "cortex-m3"
COSTS: Final = Path(__file__).with_name("costs.json")
INSTRUCTIONS: Final = "instructions"
CYCLES: Final = "estimated cycles"
TIMED: Final = "cortex-m"
"""Begins the names of cores that are chosen for by cycles."""
SLOWER: Final = 2
"""How many times the fastest kernel's estimate a smaller one may take."""
SINGLE: Final = "_float32"
"""Ends the names of kernels that round in single precision: the last step differs, not the loops that take the time."""


@lru_cache(maxsize=1)
def shipped_costs() -> Mapping[str, Mapping[str, Mapping[str, Coefficients]]]:
    """By unit, CPU and function."""
    stored = json.loads(COSTS.read_text(encoding="utf-8"))
    return {INSTRUCTIONS: stored["cpus"], CYCLES: stored["cycles"]}


@lru_cache(maxsize=1)
def shipped_code() -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """By CPU, function and symbol."""
    stored: dict[str, Any] = json.loads(COSTS.read_text(encoding="utf-8"))
    code: Mapping[str, Mapping[str, Mapping[str, int]]] = stored["code"]
    return code


@dataclass(frozen=True)
class Estimated:
    """The cheapest by estimate, or the first option where there is one without."""

    costs: Mapping[str, Coefficients] = field(default_factory=dict)
    unit: str = INSTRUCTIONS
    favour: Favour = Favour.balanced
    code: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By function the bytes of each symbol that it needs."""

    @classmethod
    def on(cls, target: Target, unit: str = "", favour: Favour = Favour.balanced) -> Estimated:
        """In ``unit``, or in cycles where the core's are known."""
        kin = next((cpu for feature, cpu in MEASURED if feature in target.features), PLAIN)
        for wanted in (unit,) if unit else (CYCLES, INSTRUCTIONS) if target.cpu.startswith(TIMED) else (INSTRUCTIONS,):
            costs = shipped_costs()[wanted]
            found = costs.get(target.cpu) or costs.get(kin)
            if found:
                code = shipped_code()
                return cls(found, wanted, favour, code.get(target.cpu) or code.get(kin) or {})
        return cls(favour=favour)

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        estimates = [self.of(option, work) for option in options]
        if self.favour is Favour.size:
            return smallest(options, estimates)
        if any(estimate is None for estimate in estimates):
            return 0, "the first that fits"
        best = min(range(len(options)), key=lambda number: estimates[number] or 0)
        return best, f"about {estimates[best]:,.0f} {self.unit}"

    def of(self, option: Option, work: Work) -> float | None:
        """In the unit; None where a function was never measured."""
        functions = [function.removesuffix(SINGLE) for function in option.functions]
        if not functions or any(function not in self.costs for function in functions):
            return None
        known = [self.costs[function] for function in functions]
        macs = work.macs * option.effort
        return sum(c["mac"] * macs + c["output"] * work.outputs + c["call"] for c in known)


def smallest(options: Sequence[Option], estimates: Sequence[float | None]) -> tuple[int, str]:
    """The fewest bytes of constants among those that are known to be not much slower than the fastest."""
    known = {number: estimate for number, estimate in enumerate(estimates) if estimate is not None}
    bound = SLOWER * min(known.values(), default=0)
    small = [number for number, estimate in known.items() if estimate <= bound]
    if None in estimates:
        small = [number for number in small if options[number].flash < options[0].flash]
    if not small:
        return 0, "the first that fits"
    best = min(small, key=lambda number: (options[number].flash, known[number]))
    return best, f"{options[best].flash:,} bytes of constants"
