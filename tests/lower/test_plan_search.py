"""Whole plans, with accelerators that exist in Python only: which are compared, and which wins, for which reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from support.models.partitioned import accelerator, chain, engines, operation, reasons, run, whole
from uaccel.accelerator import Accelerator, Lowered, Region
from uaccel.errors import AcceleratorError
from uaccel.kernels import Estimated, Records, RecordsSelector, Turn
from uaccel.kernels.choice import Selection
from uaccel.kernels.registry import PORTABLE
from uaccel.lower.from_relax import lower
from uaccel.lower.plan_search import Plans, _blended, _runs, cheapest, far_off
from uaccel.partition import Subgraph, Wishes, question_of

MODEL = chain("tanh", "exp", "tanh", "exp", "tanh", "exp")


def told(cycles: float, instructions: float) -> Callable[[Region], Lowered]:
    return lambda region: Lowered((run(region),), cycles=cycles * len(region.calls), instructions=instructions)


def stream(name: str, cycles: float, start: float, *operators: str) -> Accelerator:
    """Takes ``cycles`` an operator, and the CPU ``start`` for each region."""
    made = whole(name, *operators)
    return Accelerator(
        name,
        made.description,
        [operation(entry, lower=None, cost=lambda _: cycles) for entry in operators],
        made.headers,
        stream=told(cycles, start),
        folder=made.folder,
    )


def library(name: str, cycles: float, start: float, *operators: str) -> Accelerator:
    return accelerator(name, *(operation(o, lower=told(cycles, start), cost=lambda _: cycles) for o in operators))


def plans(accelerators: Sequence[Accelerator], wishes: Wishes | None = None, model: Any = MODEL) -> Plans:
    return cheapest(question_of(model, accelerators, wishes or Wishes("cost")), Selection())


def compared(found: Plans) -> dict[str, int]:
    return {plan.name: plan.to_json()["total"] for plan in found.compared}


def chosen(found: Plans) -> str:
    (name,) = (plan.name for plan in found.compared if plan.chosen)
    return name


def test_a_merged_region_is_not_split_for_a_layer_that_is_cheaper_alone() -> None:
    """Layer by layer the other one saves 10 cycles each time; as a whole each split costs a start."""
    whole_one = stream("whole_one", 40, 200, "tanh", "exp")
    tempting = library("tempting", 30, 200, "exp")
    found = plans([whole_one, tempting])
    assert set(engines(found.best).values()) == {"whole_one"}
    totals = compared(found)
    assert totals[chosen(found)] == 6 * 40 + 200
    assert found.compared[-1].refused == "its layers promise no gain"
    assert totals["cpu"] > totals["tempting"] > totals[chosen(found)]
    assert reasons(found.best, "exp_1") == {"tempting": ["the whole is estimated to be cheaper with whole_one here"]}


def test_layers_go_elsewhere_where_the_whole_gets_cheaper() -> None:
    slow_at_exp = accelerator(
        "slow", operation("tanh", lower=told(10, 10), cost=lambda _: 10), operation("exp", lower=told(9000, 10))
    )
    good_at_exp = library("good", 10, 10, "exp")
    found = plans([slow_at_exp, good_at_exp])
    assert list(engines(found.best).values()) == ["slow", "good"] * 3
    assert compared(found)[chosen(found)] == 6 * 20


def test_the_cpu_alone_may_win() -> None:
    found = plans([library("far_away", 10, 1e6, "tanh", "exp")])
    assert set(engines(found.best).values()) == {"cpu"}
    assert chosen(found) == "cpu"
    assert reasons(found.best, "exp_1") == {"far_away": ["the whole is estimated to be cheaper with the CPU here"]}


WISHES = [
    Wishes("cost", pins=(("exp_1", "b"),)),
    Wishes("cost", pins=(("exp_*", "cpu"),)),
    Wishes("cost", forbidden=(("tanh_0", "a"), ("tanh_2", "cpu"))),
    Wishes("cost", subgraphs=(Subgraph("exp_1", "exp_3", "b"),)),
]


@pytest.mark.parametrize("wishes", WISHES, ids=range(len(WISHES)))
def test_wishes_hold_in_every_plan(wishes: Wishes) -> None:
    found = plans([stream("a", 5, 10, "tanh", "exp"), library("b", 500, 9000, "tanh", "exp")], wishes)
    got = engines(found.best)
    for name, engine in wishes.pins:
        assert all(got[layer] == engine for layer in got if layer.startswith(name.rstrip("*")))
    for name, engine in wishes.forbidden:
        assert got[name] != engine
    if wishes.subgraphs:
        assert [got[layer] for layer in ("exp_1", "tanh_2", "exp_3")] == ["b"] * 3
    free = set(got) - {"exp_1", "tanh_0", "tanh_2", "exp_3", "exp_5"}
    assert {got[layer] for layer in free} == {"a"}


def test_a_plan_that_the_vendor_refuses_is_left_out_and_told() -> None:
    def refuses(region: Region) -> Lowered:
        if len(region.calls) == 6:
            raise AcceleratorError("six are too many; forbid one of them")
        return told(5, 10)(region)

    able = [operation(entry, lower=None, cost=lambda _: 5) for entry in ("tanh", "exp")]
    picky = accelerator("picky", *able, stream=refuses)
    found = plans([picky, library("b", 10, 10, "exp")])
    refused = found.compared[0]
    assert (refused.refused, refused.to_json()["total"]) == ("six are too many; forbid one of them", None)
    assert not refused.chosen
    with pytest.raises(AcceleratorError, match="six are too many; forbid one of them"):
        plans([picky], Wishes("cost", pins=(("*", "picky"),)))


def test_what_fails_is_not_left_out() -> None:
    def fails(region: Region) -> Lowered:
        raise ValueError("no such table")

    with pytest.raises(AcceleratorError, match="given tanh_0, failed: ValueError: no such table"):
        plans([library("good", 1, 1, "tanh", "exp"), accelerator("bad", operation("tanh", lower=fails))])


def test_regions_are_lowered_once() -> None:
    asked: list[str] = []

    def lowered(region: Region) -> Lowered:
        asked.append(" ".join(call.name for call in region.calls))
        return told(50, 200)(region)

    able = [operation(entry, lower=None, cost=lambda _: 50) for entry in ("tanh", "exp")]
    found = plans([accelerator("a", *able, stream=lowered), library("b", 30, 200, "exp")])
    assert len(found.compared) <= 12
    assert len(asked) == len(set(asked))
    lower(found.best, "again", known=found.known)
    assert len(asked) == len(set(asked))


def test_measuring_kernels_changes_no_plan() -> None:
    question = question_of(MODEL, [library("far_away", 10, 1e6, "tanh")], Wishes("cost"))
    found = [cheapest(question, Selection(PORTABLE, pick)) for pick in (Turn(0), Turn(1), Estimated.on(PORTABLE))]
    assert len({str(plan.compared) for plan in found}) == 1


def test_what_was_measured_counts_and_what_was_far_off_is_told() -> None:
    question = question_of(MODEL, [library("a", 100, 50, "tanh", "exp")], Wishes("cost"))
    plain = cheapest(question, Selection())
    assert set(engines(plain.best).values()) == {"a"}
    program = lower(plain.best, "m", known=plain.known)
    sites = {layer.choice.site: {layer.choice.options[0]: 160} for layer in program.layers if layer.choice is not None}
    assert len(sites) == 2, "layers that are alike share one"
    near = Selection(PORTABLE, RecordsSelector(Records("", sites, "instructions")))
    assert list(far_off(program, near)) == []
    dear = {site: dict.fromkeys(costs, 999_999) for site, costs in sites.items()}
    off = Selection(PORTABLE, RecordsSelector(Records("", dear, "instructions")))
    first = next(iter(far_off(program, off)))
    assert (first.layer, first.estimate, first.measured) == ("tanh_0", 150, 999_999)
    assert set(engines(cheapest(question, off).best).values()) == {"cpu"}
    seconds = Selection(PORTABLE, RecordsSelector(Records("", sites, "nanoseconds")))
    assert list(far_off(program, seconds)) == [], "times are nothing to compare instructions with"


def test_the_way_through_the_layers_changes_engines_where_it_pays() -> None:
    layers = [{"cpu": 9e4, "a": 10.0}, {"cpu": 0.0}, {"cpu": 100.0, "a": 90.0}, {"cpu": 5e3, "a": 9e9}]
    assert _blended(layers) == ["a", "a", "a", "cpu"]
    assert _runs([1, None, 2, 0, 3, -1, 4]) == [(0, 1, 1), (2, 5, 5), (6, 7, 4)]
