"""Planned streams compute what the layers mean, whatever the shapes and the memories; on the toy machine."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accelerator.streams.drawn import chain, linked_networks, networks, random_input
from accelerator.streams.toy import BLOCK, MACHINE, Mix, expected, play, with_banks
from uaccel.accelerator import OBJECTIVES
from uaccel.accelerator.machine import Tiling
from uaccel.accelerator.streams.tiling import choose_residents, count, lives, parts, smallest_pieces
from uaccel.errors import AcceleratorError
from uaccel.streams import ENERGY, LATENCY, Memory, Network, Shape, Window, plan_network, why_not


@settings(max_examples=80, deadline=None)
@given(networks(), st.sampled_from([80, 200, 2000]), st.sampled_from([1, 2]), st.sampled_from(OBJECTIVES))
def test_streams_compute_what_the_layers_mean(network: Network, memory: int, banks: int, objective: str) -> None:
    machine = with_banks(replace(MACHINE, activations=Memory(memory, banks)), banks)
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    x = random_input(network)
    planned = plan_network(machine, network, objective)
    values = expected(network, {"x": x})
    found = play(machine, network, planned, {"x": x})
    assert found == [values[name].tobytes() for name in network.outputs]


@pytest.mark.parametrize("memory", [48, 60, 80, 120, 200])
def test_a_layer_may_read_a_tensor_twice_in_two_ways(memory: int) -> None:
    """As ``convolution(x) + x`` does: windows of it, and what is added."""
    machine, shape = with_banks(replace(MACHINE, activations=Memory(memory, 2)), 2), Shape(1, 8, 6, 3)
    layer = Mix("both", ("x", "x"), (shape, shape), "y", shape, 1, 1, Window(kernel=(3, 3), padding=(1, 1)))
    network = Network((layer,), ("x",), ("y",))
    x = random_input(network)
    found = play(machine, network, plan_network(machine, network), {"x": x})
    assert found == [expected(network, {"x": x})["y"].tobytes()]


def test_what_fits_stays_on_chip() -> None:
    network = chain(3, 3, 3, 3)
    planned = plan_network(MACHINE, network)
    assert set(planned.residents) == {"t1", "t2"}
    assert planned.scratch == 0
    assert planned.cost.bytes == 2 * 24 + 3  # in, out, and a number a layer
    kinds = [command.kind for command in planned.stream.commands]
    assert kinds.count("store") == kinds.count("load") - 3


def test_what_does_not_fit_passes_through_memory() -> None:
    """Of two images, whose rows no layer passes to the next."""
    network = chain(3, 30, 3, rows=9, images=2)
    planned = plan_network(MACHINE, network)
    assert planned.residents == {}
    assert planned.scratch == 2 * 9 * 30
    labels = [label for label in planned.labels if "store t1" in label or "load t1" in label]
    assert any("load" in label for label in labels)
    assert any("store" in label for label in labels)


def test_transfers_hide_behind_computation() -> None:
    """With a second bank the engines work side by side; without one they wait for each other."""
    network = chain(3, 30, rows=20)
    two, one = (plan_network(with_banks(MACHINE, banks), network).timeline for banks in (2, 1))
    assert two.total < sum(two.busy.values())
    assert two.total < one.total


def test_energy_moves_no_more_bytes_and_latency_takes_no_more_cycles() -> None:
    network = chain(3, 30, 3, rows=9)
    fast, frugal = (plan_network(MACHINE, network, objective).cost for objective in (LATENCY, ENERGY))
    assert frugal.bytes <= fast.bytes
    assert fast.cycles <= frugal.cycles


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (
            Mix("wide", ("x",), (Shape(1, 1, 1, 97),), "y", Shape(1, 1, 1, 1), 1, 1),
            "its smallest part needs 98 bytes of activations on chip, and there are 96",
        ),
        (
            replace(Mix("ok", ("x",), (Shape(1, 1, 1, 9),), "y", Shape(1, 1, 1, 1), 1, 1), steps=40),
            None,
        ),
    ],
)
def test_a_layer_that_cannot_be_cut_small_enough_is_refused_in_words(layer: Mix, reason: str | None) -> None:
    assert why_not(MACHINE, layer) == reason


def test_planning_what_its_check_would_refuse_is_an_error() -> None:
    layer = Mix("wide", ("x",), (Shape(1, 1, 1, 97),), "y", Shape(1, 1, 1, 1), 1, 1)
    with pytest.raises(AcceleratorError, match=r"^no part of wide fits the machine; its check should have refused it$"):
        plan_network(MACHINE, Network((layer,), ("x",), ("y",)))


@given(
    st.tuples(*(st.integers(1, 6) for _ in range(4))),
    st.tuples(*(st.integers(1, 6) for _ in range(4))),
    st.booleans(),
)
def test_parts_are_the_whole_and_each_once(
    extents: tuple[int, int, int, int], sizes: tuple[int, int, int, int], stay: bool
) -> None:
    images, rows, columns, blocks = extents
    layer = Mix(
        "l", ("x",), (Shape(images, rows, columns, 1),), "y", Shape(images, rows, columns, blocks * BLOCK), blocks, 4
    )
    tiling = Tiling(min(sizes[0], rows), min(sizes[1], columns), min(sizes[2], blocks), min(sizes[3], 4), stay, True)
    seen = [
        (part.image, row, column, block, step)
        for part in parts(layer, tiling)
        for row in part.rows
        for column in part.columns
        for block in part.blocks
        for step in part.steps
    ]
    assert len(seen) == len(set(seen)) == images * rows * columns * blocks * 4
    assert len(list(parts(layer, tiling))) == count(layer, tiling)


@settings(max_examples=50, deadline=None)
@given(networks(), st.integers(0, 60))
def test_tensors_that_stay_share_no_byte_while_they_live(network: Network, reserve: int) -> None:
    alive = lives(network.layers)
    smallest = [smallest_pieces(MACHINE, layer) for layer in network.layers]
    residents = choose_residents(MACHINE, smallest, alive, reserve)
    for number in range(len(network.layers)):
        there = [life for life in residents.lives.values() if life.first <= number <= life.last]
        used = [byte for begin, end in residents.taken(number, number + 1) for byte in range(begin, end)]
        assert len(used) == sum(life.bytes for life in there)
        assert set(used) <= set(range(MACHINE.activations.bytes))
        assert len(set(used)) == len(used)


class Alike(Mix):
    """A layer whose plans hold for others of its shapes."""

    alike_by = ("shapes", "shape", "blocks", "steps", "window")


def renamed(network: Network, prefix: str) -> Network:
    """The same region in another place of a model."""
    layers = []
    for layer in network.layers:
        made = {field.name: getattr(layer, field.name) for field in fields(layer)}
        named = [f"{prefix} {name}" for name in layer.inputs]
        layers.append(
            Alike(**{**made, "name": prefix + layer.name, "inputs": (*named,), "output": f"{prefix} {layer.output}"})
        )
    inputs, outputs = ([f"{prefix} {name}" for name in names] for names in (network.inputs, network.outputs))
    return Network(tuple(layers), (*inputs,), (*outputs,))


@settings(max_examples=60, deadline=None)
@given(networks() | linked_networks(), st.sampled_from([80, 200]))
def test_regions_that_are_alike_are_planned_once(network: Network, memory: int) -> None:
    """The second is what its own plan would be, and computes what its layers mean; another output is another region."""
    machine = replace(MACHINE, activations=Memory(memory, 2), known={})
    assume(network.layers and not any(why_not(machine, layer) for layer in network.layers))
    first, second = renamed(network, "a"), renamed(network, "b")
    planned = [plan_network(machine, one) for one in (first, second)]

    def regions() -> int:
        return sum(isinstance(key, tuple) and key[0] == "region" for key in machine.known)

    assert regions() == 1
    assert planned[1].cost == planned[0].cost == plan_network(replace(machine, known={}), second).cost
    more = replace(second, outputs=tuple(dict.fromkeys(layer.output for layer in second.layers)))
    for one in (second, more):
        x = {"b x": random_input(network)}
        values = expected(one, x)
        found = play(machine, one, plan_network(machine, one), x)
        assert found == [values[name].tobytes() for name in one.outputs]
    assert regions() == 1 + (more.outputs != second.outputs)
