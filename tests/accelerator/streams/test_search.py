"""Plans are searched in a time that grows with the network, and by an estimate that is near what is simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accelerator.streams.drawn import chain, linked_networks
from accelerator.streams.toy import MACHINE, with_banks
from uaccel.accelerator.machine import Timeline
from uaccel.accelerator.streams import planner
from uaccel.accelerator.streams.bus import shared
from uaccel.accelerator.streams.commands import Synchronised, Synchroniser, Waiting
from uaccel.accelerator.streams.emitter import CommandEmitter, TilingProblem, best
from uaccel.accelerator.streams.tiling import Home, count
from uaccel.streams import LATENCY, Bus, Command, Machine, Memory, Network, Outside, cycles_alone, plan_network, why_not

BUS = Bus(word=4, burst=8, ram=Outside(4, 0), constants=Outside(6, 1))


def simulated(machine: Machine, network: Network, patch: pytest.MonkeyPatch) -> int:
    """How many commands are emitted to try them while a network is planned, before it is polished, which has a
    bound."""
    count = 0
    take = Synchroniser.take

    def counted(self: Synchroniser, command: Command) -> list[Waiting]:
        nonlocal count
        count += 1
        return take(self, command)

    with patch.context() as within:
        within.setattr(Synchroniser, "take", counted)
        within.setattr(planner, "POLISHED", 0)
        plan_network(machine, network)
    return count


@pytest.mark.parametrize("machine", [MACHINE, replace(MACHINE, bus=BUS)], ids=["without a bus", "with a bus"])
@pytest.mark.parametrize("memory", [64, 96])
def test_twice_the_layers_take_twice_the_search(machine: Machine, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(machine, activations=Memory(memory, 2))
    counts = [simulated(machine, chain(*[3, 6, 4] * layers, rows=12), monkeypatch) for layers in (4, 8, 16)]
    assert counts[0] > 0
    for less, more in ((0, 1), (1, 2)):
        assert counts[more] < 2.5 * counts[less], counts


@pytest.mark.parametrize("layers", [6, 24])
def test_polishing_ends_by_its_count(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try emits a step between its neighbours, perhaps in two ways, and the last one may exceed the bound. Behind
    them the whole region is simulated twice."""
    machine, network = replace(MACHINE, bus=BUS, activations=Memory(96, 2)), chain(*[3, 6, 4] * layers, rows=12)
    played: list[int] = []
    simulated = shared

    def counted(machine: Machine, stream: Synchronised, bus: Bus) -> Timeline:
        played.append(len(stream.commands))
        return simulated(machine, stream, bus)

    monkeypatch.setattr(planner, "shared", counted)
    monkeypatch.setattr(planner, "confirmed", lambda _region, _decided, steps: steps)
    monkeypatch.setattr(planner, "POLISHED", 1500)
    plan_network(machine, network)
    *tries, _, _, before, after = played
    assert len(tries) > 3
    assert sum(tries) <= 1500
    assert max(tries) < min(before, after)


@settings(max_examples=60, deadline=None)
@given(linked_networks(most=8), st.sampled_from([80, 200]), st.sampled_from([1, 2]))
def test_a_layer_alone_costs_what_its_plan_takes(network: Network, memory: int, banks: int) -> None:
    """Without a bus, where it has few parts. Of more parts only the best tiling by estimate is simulated, and the plan
    may find a better one."""
    machine = with_banks(replace(MACHINE, activations=Memory(memory, banks)), banks)
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    for layer in network.layers:
        taken = plan_network(machine, Network((layer,), layer.inputs, (layer.output,))).timeline.total
        homes = {name: Home(number, 0) for number, name in enumerate((*layer.inputs, layer.output), 1)}
        problem = TilingProblem(layer, (None,) * len(layer.inputs), None, (), homes)
        parts = count(layer, best(machine, problem, LATENCY)[0].tiling)
        assert taken <= cycles_alone(machine, layer) <= taken * (1 if parts <= planner.FEW else 2)


@settings(max_examples=40, deadline=None)
@given(linked_networks(most=6), st.integers(0, 5), st.sampled_from([60, 200]))
def test_what_is_tried_leaves_no_trace(network: Network, begin: int, memory: int) -> None:
    machine = replace(MACHINE, activations=Memory(memory, 2))
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    homes = {name: Home(1, 0) for layer in network.layers for name in (*layer.inputs, layer.output)}
    problems = [TilingProblem(layer, (None,) * len(layer.inputs), None, (), homes) for layer in network.layers]
    plans = [best(machine, problem, LATENCY)[0] for problem in problems]
    tried, alone = CommandEmitter(machine, homes), CommandEmitter(machine, homes)
    for number, plan in enumerate(plans):
        tried.layer(plan)
        alone.layer(plan)
        if number == begin:
            trial = tried.copy()
            for other in plans:
                trial.layer(other)
    assert (tried.cost(), tried.commands) == (alone.cost(), alone.commands)


@settings(max_examples=40, deadline=None)
@given(linked_networks(most=4), st.lists(st.integers(0, 100), min_size=2, max_size=4))
def test_what_was_found_beside_other_tensors_changes_no_answer(network: Network, addresses: list[int]) -> None:
    machine = replace(MACHINE, activations=Memory(200, 2))
    for layer in network.layers:
        homes = {name: Home(1, 0) for name in (*layer.inputs[1:], layer.output)}
        for address in addresses:
            inputs = (address, *(None,) * (len(layer.inputs) - 1))
            asked = TilingProblem(layer, inputs, None, ((address, address + layer.shapes[0].bytes),), homes)
            anew = replace(asked, layer=replace(layer))
            found, wanted = best(machine, asked, LATENCY), best(replace(machine, known={}), anew, LATENCY)
            assert [(one.tiling, one.inputs, one.output, one.estimated) for one in found] == [
                (one.tiling, one.inputs, one.output, one.estimated) for one in wanted
            ]
