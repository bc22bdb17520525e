"""Plans are searched in a time that grows with the network, and by an estimate that is near what is simulated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accelerator.streams.drawn import chain, linked_networks
from accelerator.streams.toy import MACHINE, with_banks
from uaccel.accelerator.streams import planner
from uaccel.accelerator.streams.emitter import CommandEmitter, TilingProblem, best
from uaccel.accelerator.streams.tiling import Home
from uaccel.accelerator.streams.timeline import Estimate
from uaccel.streams import LATENCY, Bus, Command, Machine, Memory, Network, Outside, cycles_alone, plan_network, why_not

BUS = Bus(word=4, burst=8, ram=Outside(4, 0), constants=Outside(6, 1))


def simulated(machine: Machine, network: Network, patch: pytest.MonkeyPatch) -> int:
    """How many commands are simulated while a network is planned, before it is polished, which has a bound."""
    count = 0
    run = Estimate.run

    def counted(self: Estimate, command: Command, waits: Iterable[int]) -> None:
        nonlocal count
        count += 1
        run(self, command, waits)

    with patch.context() as within:
        within.setattr(Estimate, "run", counted)
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


@settings(max_examples=60, deadline=None)
@given(linked_networks(most=8), st.sampled_from([80, 200]), st.sampled_from([1, 2]))
def test_a_layer_alone_costs_what_its_plan_takes(network: Network, memory: int, banks: int) -> None:
    """Without a bus the estimate is no estimate."""
    machine = with_banks(replace(MACHINE, activations=Memory(memory, banks)), banks)
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    for layer in network.layers:
        alone = Network((layer,), layer.inputs, (layer.output,))
        assert cycles_alone(machine, layer) == plan_network(machine, alone).timeline.total


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
