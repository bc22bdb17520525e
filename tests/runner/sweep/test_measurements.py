"""What layers took, in the unit that records count."""

from __future__ import annotations

import pytest

from uaccel.runner.layer_costs import LayerCosts, Spent
from uaccel.runner.sweep.tune import round_of

CPU = Spent(0, "on the CPU", 100, 150, None)
OWN = Spent(0, "on a core that counts its cycles", 100, 150, None, own=True)
DEVICE = Spent(1, "on an accelerator", 10, 20, None, device=1000)
WAITED = Spent(1, "an accelerator whose cycles the core waited for", 10, 1020, None, device=1000, own=True)
TIMED = Spent(1, "by a clock", None, None, 77, device=1000)
CASES = {
    "estimated": ((CPU, DEVICE), False, "estimated cycles", {0: 150, 1: 1020}),
    "the core's own, which hold the accelerator's": ((OWN, WAITED), False, "cycles", {0: 150, 1: 1020}),
    "as the file counts": ((OWN, WAITED), True, "instructions", {0: 100, 1: 1010}),
    "by a clock": ((TIMED,), False, "nanoseconds", {1: 1077}),
    "a layer of which nothing is told": ((OWN,), False, "cycles", {0: 150, 2: 0}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_layers_took(case: str) -> None:
    spent, by_instructions, unit, costs = CASES[case]
    taken = round_of(list(costs), LayerCosts(spent, ""), by_instructions=by_instructions)
    assert (taken.unit, taken.costs) == (unit, costs)
