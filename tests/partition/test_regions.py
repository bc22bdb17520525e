"""Adjacent claims become one region wherever no cycle arises: chains, diamonds, and whatever hypothesis thinks of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partition.random_relax import OPERATORS, models
from support.models.partitioned import (
    accelerator,
    assert_same_meaning,
    chain,
    compile_on,
    engines,
    model_of,
    operation,
    whole,
)
from uaccel.model import ImportedModel
from uaccel.partition import Wishes, partition
from uaccel.partition.claims import RESULT, BindingGraph, choose, constraints_of, find_claims, graph_of
from uaccel.partition.regions import Group, groups_of, layer_names
from uaccel.tvm_api import FunctionBlock, relax

OP = relax.op


def regions(model: ImportedModel, *asked: Any) -> list[list[str]]:
    """The layers of each region, in the order in which they run; and all stages mean the same."""
    compiled = compile_on(model, list(asked))
    assert_same_meaning(model, compiled.stages)
    return [[covered.name for covered in layer.covers] for layer in compiled.program.layers if layer.on_accelerator]


def test_a_chain_is_one_region() -> None:
    assert regions(chain("tanh", "exp", "sin"), whole("a", "tanh", "exp", "sin")) == [["tanh_0", "exp_1", "sin_2"]]


def test_what_the_cpu_computes_parts_regions() -> None:
    found = regions(chain("tanh", "exp", "sqrt", "exp", "tanh"), whole("a", "tanh", "exp"))
    assert found == [["tanh_0", "exp_1"], ["exp_3", "tanh_4"]]


def test_accelerators_do_not_merge_with_each_other() -> None:
    assert regions(chain("tanh", "exp", "exp"), whole("a", "tanh"), whole("b", "exp")) == [
        ["tanh_0"],
        ["exp_1", "exp_2"],
    ]


def test_what_has_a_lowering_of_its_own_does_not_merge() -> None:
    mixed = accelerator("a", operation("tanh", lower=None), operation("exp"), stream=whole("x", "tanh").stream)
    assert regions(chain("tanh", "tanh", "exp", "exp"), mixed) == [["tanh_0", "tanh_1"], ["exp_2"], ["exp_3"]]


def diamond(left: str, right: str) -> ImportedModel:
    """tanh; two ways from it; add of both."""

    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        top = block.emit(OP.tanh(inputs[0]), "top")
        one = block.emit(getattr(OP, left)(top), "left")
        other = block.emit(getattr(OP, right)(top), "right")
        return block.emit(OP.add(one, other), "bottom")

    return model_of(body)


def test_what_would_wait_for_itself_is_not_merged() -> None:
    """The groups alone; nothing is compiled."""
    graph, groups = grouped(diamond("exp", "cos"), [whole("a", "tanh", "exp", "add")])
    names = [[graph.name(index) for index in sorted(group.members) if graph.is_operator(index)] for group in groups]
    assert [layers for layers in names if layers] == [["top", "left"], ["right"], ["bottom"]]


@pytest.mark.slow
def test_a_diamond() -> None:
    able = whole("a", "tanh", "exp", "add")
    assert regions(diamond("exp", "exp"), able) == [["top", "left", "right", "bottom"]]
    assert regions(diamond("exp", "cos"), able) == [["top", "left"], ["bottom"]], "through the CPU there is a cycle"
    assert regions(diamond("cos", "exp"), able) == [["top", "right"], ["bottom"]]
    assert regions(diamond("cos", "cos"), able) == [["top"], ["bottom"]]


def test_a_region_with_several_results_and_its_name() -> None:
    def body(block: FunctionBlock, inputs: list[Any]) -> Any:
        top = block.emit(OP.tanh(inputs[0]), "top")
        exp = block.emit(OP.exp(top), "exp")
        return relax.Tuple([block.emit(OP.cos(top), "cos"), exp])

    model = model_of(body)
    compiled = compile_on(model, [whole("a", "tanh", "exp")])
    region = compiled.program.layers[0]
    assert (region.name, [value.name for value in region.outputs]) == ("top_to_exp", ["top", "exp"])
    assert {decision.region for decision in compiled.partitioned.decisions} == {"top_to_exp", ""}
    (call,) = compiled.partitioned.calls.values()
    assert [tensor.name for tensor in call.region.outputs] == ["top", "exp"]
    assert call.region.interior == ()
    assert_same_meaning(model, compiled.stages)


def ways(graph: BindingGraph, start: set[int]) -> set[int]:
    """What can be reached."""
    found: set[int] = set()
    waiting = list(start)
    while waiting:
        for user in graph.users[waiting.pop()]:
            if user != RESULT and user not in found:
                found.add(user)
                waiting.append(user)
    return found


def is_convex(graph: BindingGraph, members: frozenset[int]) -> bool:
    """No way leads out and in again."""
    return not ways(graph, ways(graph, set(members)) - members) & members


def grouped(model: ImportedModel, asked: list[Any]) -> tuple[BindingGraph, list[Group]]:
    graph = graph_of(model.module, layer_names(model))
    claims = find_claims(graph, asked)
    taken = choose(graph, claims, constraints_of(graph, asked, Wishes()), "preference")
    return graph, groups_of(graph, taken)


ABLE = st.sets(st.sampled_from(OPERATORS), min_size=1)
slow = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@slow
@given(models(), ABLE, ABLE)
def test_groups_can_run_and_none_could_be_merged(model: ImportedModel, mine: set[str], other: set[str]) -> None:
    graph, groups = grouped(model, [whole("a", *sorted(mine)), whole("b", *sorted(other))])
    assert sorted(index for group in groups for index in group.members) == list(range(len(graph.bindings)))
    done: set[int] = set()
    for group in groups:
        assert is_convex(graph, group.members)
        assert {use for index in group.members for use in graph.uses[index]} - group.members <= done
        done |= group.members
    for one in groups:
        for two in groups:
            adjacent = any(graph.users[index] & two.members for index in one.members)
            if one is not two and adjacent and one.merges_with(two):
                around = ways(graph, ways(graph, set(one.members)) - two.members - one.members)
                assert around & two.members, "merged they would be fewer"


@pytest.mark.slow
@settings(slow, max_examples=25)
@given(models(), ABLE, ABLE)
def test_every_stage_means_what_the_model_does(model: ImportedModel, mine: set[str], other: set[str]) -> None:
    compiled = compile_on(model, [whole("a", *sorted(mine)), whole("b", *sorted(other))], cpu_fallback=True)
    assert_same_meaning(model, compiled.stages)
    covered = [entry.name for layer in compiled.program.layers for entry in layer.covers]
    offloaded = [layer for layer, engine in engines(compiled.partitioned).items() if engine != "cpu"]
    assert sorted(covered) == sorted(offloaded)


def test_a_long_chain_takes_no_long_time() -> None:
    """Regions of hundreds of layers: nothing recurses, nothing is tried again and again."""
    names = ["tanh", "exp", "negative", "cos"] * 60
    done = partition(chain(*names), [whole("a", "tanh", "exp", "negative")], Wishes())
    assert len({decision.region for decision in done.decisions}) == 61
