"""Layers that pass rows to each other compute what they mean in bands of any height, and where they cost less."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accelerator.streams.drawn import chain, linked_networks, random_input
from accelerator.streams.toy import BLOCK, MACHINE, Mix, expected, play, with_banks
from uaccel.accelerator import OBJECTIVES
from uaccel.accelerator.streams.chain import Chain, Links, StreamRegion, chains_of, emit_chain, linked, stretches
from uaccel.accelerator.streams.constants import StreamConstants
from uaccel.accelerator.streams.emitter import CommandEmitter
from uaccel.accelerator.streams.machine import Machine
from uaccel.accelerator.streams.planner import Planned
from uaccel.accelerator.streams.tiling import Home, Residents, Slots
from uaccel.accelerator.streams.timeline import timeline
from uaccel.errors import InternalError
from uaccel.streams import LATENCY, Memory, Network, Shape, Window, plan_network, why_not

ROOMY = replace(MACHINE, activations=Memory(400, 2), weights=Memory(40, 2))


def region_of(machine: Machine, network: Network) -> StreamRegion:
    """Nothing stays on chip."""
    homes = {name: Home(number, 0) for number, name in enumerate((*network.inputs, *network.outputs), 1)}
    inside = frozenset(layer.output for layer in network.layers if layer.output not in network.outputs)
    return StreamRegion(machine, network.layers, inside, Residents({}, {}), homes, LATENCY)


def chains(machine: Machine, network: Network) -> Iterator[Chain]:
    """All that there are of the whole network."""
    region = region_of(machine, network)
    if (0, len(network.layers)) in stretches(region):
        yield from (chain for _, chain in chains_of(region, 0, len(network.layers)))


def planned(machine: Machine, network: Network, chain: Chain) -> Planned:
    constants = StreamConstants()
    emitter = CommandEmitter(machine, region_of(machine, network).homes, constants)
    emit_chain(emitter, chain)
    stream = emitter.synchronised()
    return Planned((chain,), {}, stream, timeline(machine, stream), bytes(constants.data), 0)


@settings(max_examples=100, deadline=None)
@given(linked_networks(), st.sampled_from([60, 120, 400]), st.sampled_from([1, 2]), st.data())
def test_a_chain_computes_what_its_layers_mean(network: Network, memory: int, banks: int, data: st.DataObject) -> None:
    """Strides, paddings, additions of what came before, and bands of any height."""
    machine = with_banks(replace(ROOMY, activations=Memory(memory, banks)), banks)
    found = list(chains(machine, network))
    if not found:
        return
    some = data.draw(st.sampled_from(found))
    x = random_input(network)
    values = expected(network, {"x": x})
    assert play(machine, network, planned(machine, network, some), {"x": x}) == [
        values[name].tobytes() for name in network.outputs
    ]


@settings(max_examples=25, deadline=None)
@given(linked_networks(most=8), st.sampled_from([80, 120, 200]), st.sampled_from([1, 2]), st.sampled_from(OBJECTIVES))
def test_what_is_planned_computes_what_the_layers_mean(
    network: Network, memory: int, banks: int, objective: str
) -> None:
    """Chains beside each other and beside what stays, or goes to memory and comes back."""
    machine = with_banks(replace(MACHINE, activations=Memory(memory, banks)), banks)
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    x = random_input(network)
    found = plan_network(machine, network, objective)
    values = expected(network, {"x": x})
    assert play(machine, network, found, {"x": x}) == [values[name].tobytes() for name in network.outputs]


def test_random_networks_have_chains() -> None:
    """So that the test above is one."""
    seen = 0

    @settings(max_examples=100, deadline=None, database=None)
    @given(linked_networks())
    def count(network: Network) -> None:
        nonlocal seen
        seen += any(True for _ in chains(ROOMY, network))

    count()
    assert seen >= 50


@pytest.mark.parametrize("banks", [1, 2])
def test_what_lies_between_never_leaves_the_chip(banks: int) -> None:
    """9 rows of 30 bytes do not fit, and 3 rows of them do: input, output and a number for each block move."""
    network = chain(3, 30, 3, rows=9)
    found = plan_network(with_banks(MACHINE, banks), network)
    (step,) = found.steps
    assert isinstance(step, Chain)
    assert found.residents == {}
    assert found.scratch == 0
    assert found.cost.bytes == 9 * 3 + 9 * 3 + 10 + 1


def test_what_stays_and_what_passes_share_no_byte() -> None:
    """The first result waits on chip, while two layers pass rows of the second one, and is added in the end."""
    (first, *rest) = chain(3, 3, 30, 3, 3, rows=9).layers
    last = replace(rest[-1], inputs=("t3", "t1"), shapes=(rest[-1].shape, first.shape))
    network = Network((first, *rest[:-1], last), ("t0",), ("t4",))
    found = plan_network(MACHINE, network)
    assert [isinstance(step, Chain) for step in found.steps] == [False, True, False]
    assert set(found.residents) == {"t1", "t3"}
    x = random_input(network)
    assert play(MACHINE, network, found, {"t0": x}) == [expected(network, {"t0": x})["t4"].tobytes()]


def test_layers_that_overlap_compute_the_rows_that_both_bands_read() -> None:
    """A window of three rows over one of three: a band of two rows needs four of the first layer, of six."""
    window, shape = Window((3, 1), padding=(1, 0)), Shape(1, 8, 1, 3)
    layers = tuple(Mix(f"l{n}", (f"t{n}",), (shape,), f"t{n + 1}", shape, 1, 1, window) for n in range(2))
    bands = list(Links(layers).bands(2))
    assert [rows["t1"] for rows in bands] == [range(3), range(1, 5), range(3, 7), range(5, 8)]
    assert [rows["t0"] for rows in bands] == [range(4), range(6), range(2, 8), range(4, 8)]


def one(name: str, source: str, result: str, shape: Shape, read: Shape | None = None) -> Mix:
    blocks = -(-shape.channels // BLOCK)
    return Mix(name, (source,), (read or shape,), result, shape, blocks, 1)


FLAT, TALL = Shape(1, 2, 2, 3), Shape(1, 4, 1, 3)
A, B = one("a", "x", "y", FLAT), one("b", "y", "z", FLAT)


@pytest.mark.parametrize(
    ("layers", "others", "whether"),
    [
        ([A, B], [], True),
        ([A, B], [one("c", "x", "w", FLAT)], True),
        ([A, B], [one("c", "y", "w", FLAT)], False),
        ([A, one("b", "y", "z", TALL, TALL)], [], False),
        ([A, one("b", "x", "z", FLAT)], [], False),
        ([one("a", "x", "y", Shape(2, 2, 2, 3)), one("b", "y", "z", Shape(2, 2, 2, 3))], [], False),
    ],
    ids=["chain", "input read by others", "middle read by others", "other rows", "two sources", "two images"],
)
def test_who_can_pass_rows(layers: list[Mix], others: list[Mix], whether: bool) -> None:
    assert linked(layers, others) == whether


@settings(max_examples=12 if os.environ.get("UACCEL_THOROUGH") is None else 40, deadline=None)
@given(linked_networks(), st.sampled_from(OBJECTIVES))
def test_chains_cost_no_more(network: Network, objective: str) -> None:
    """Than the same layers one by one, by the model of time."""
    machine = replace(MACHINE, activations=Memory(120, 2))
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    with_them = plan_network(machine, network, objective).cost
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uaccel.accelerator.streams.planner.with_chains", lambda region, decided: list(decided))
        without = plan_network(machine, network, objective).cost
    assert with_them.key(objective) <= without.key(objective)


def test_rows_without_room_are_an_error_of_ours() -> None:
    network = chain(3, 3, 3)
    some = next(chains(ROOMY, network))
    short = replace(some, places={**some.places, "t1": Slots((0,), 2)})
    with pytest.raises(InternalError, match=r"^rows 0:4 of t1 have no room in Slots\(addresses=\(0,\), room=2\)"):
        planned(ROOMY, network, short)
