"""Which options are worth measuring: the best by estimate, and what nobody can estimate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uaccel.kernels import Estimated, Option, RankedSelector, Work, pick
from uaccel.kernels.choice import CYCLES
from uaccel.util.favour import Favour

WORK = Work(macs=1000, outputs=10)
COSTS = {name: {"p c t": mac} for name, mac in (("a", 3.0), ("b", 1.0), ("c", 2.0))}
A, B, C, STRANGE, ODD = (Option(name, (name,)) for name in ("a", "b", "c", "strange", "odd"))
LOWERINGS = [Option(name) for name in ("first", "second", "third")]


@pytest.mark.parametrize(
    ("options", "most", "favour", "worth"),
    [
        ([A, B, C], None, Favour.balanced, "b c a"),
        ([A, B, C], 1, Favour.balanced, "b"),
        ([A, B, C], 2, Favour.speed, "b c"),
        ([A, B, C], 9, Favour.ram, "b c a"),
        ([A, B, C], 1, Favour.size, "c b a"),
        ([A, STRANGE, B, ODD, C], 1, Favour.balanced, "a strange odd"),
        ([STRANGE, A, B, C], 2, Favour.balanced, "strange b c"),
        (LOWERINGS, 1, Favour.balanced, "first second third"),
        ([A], 2, Favour.balanced, "a"),
    ],
)
def test_what_is_worth_measuring(options: list[Option], most: int | None, favour: Favour, worth: str) -> None:
    estimated = Estimated(COSTS, CYCLES, favour)
    options = [replace(option, flash=9 if option is B else 5) for option in options]
    ranked = RankedSelector(estimated, most=most)
    choice = pick(ranked, "site", options, WORK)
    assert " ".join(ranked.worth(choice)) == worth
    assert choice.picked == pick(estimated, "site", options, WORK).picked, "the first is what is taken unmeasured"
    turns = [pick(replace(ranked, number=n), "site", options, WORK) for n in range(len(worth.split()) + 1)]
    labels = [turn.options[turn.picked] for turn in turns]
    assert labels == [*worth.split(), worth.split()[0]], "each has its turn, then the best by estimate again"
