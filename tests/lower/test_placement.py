"""Where the values of a program lie: nothing that is still needed is overwritten, inputs and outputs included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.lower.placement import Place, Placement, place
from uaccel.lower.program import Layer, Program, Value
from uaccel.memory import Pool
from uaccel.model import Origin, TensorInfo, TensorSpec
from uaccel.ops.kernel import Kernel
from uaccel.util.text import CPU

SIZES = (4, 8, 12)


@dataclass
class Writer:
    """Writes a program down, layer by layer."""

    values: list[Value] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def value(self, size: int) -> Value:
        spec = TensorSpec(f"v{len(self.values)}", TensorInfo((size,), "int8"))
        self.values.append(Value(spec.name, spec))
        return self.values[-1]

    def layer(
        self,
        inputs: tuple[Value, ...],
        size: int,
        *,
        inplace: bool = False,
        view: bool = False,
        scratch: int = 0,
        behind: Mapping[int, int] | None = None,
    ) -> Value:
        output, index = self.value(size), len(self.layers)
        over = tuple(range(len(inputs))) if inplace else ()
        kernel = Kernel(
            "view" if view else "portable", (), scratch=scratch, inplace=over, view=view, behind=behind or {}
        )
        origin = Origin(index, "OP", output.name)
        self.layers.append(Layer(index, f"l{index}", "op", CPU, "", origin, inputs, (output,), kernel))
        return output

    def program(self, inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Program:
        return Program("model", cast("Any", None), inputs, outputs, tuple(self.layers))


def root(program: Program, value: Value) -> str:
    """Of a view: what it is a view of."""
    sources = {layer.outputs[0].name: layer.inputs[0].name for layer in program.layers if layer.is_view}
    name = value.name
    while name in sources:
        name = sources[name]
    return name


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """With outputs as lowering makes them: each has bytes of its own, and none is an input or a view of one."""
    writer = Writer()
    inputs = tuple(writer.value(draw(st.sampled_from(SIZES))) for _ in range(draw(st.integers(0, 3))))
    for _ in range(draw(st.integers(1, 10))):
        count = draw(st.integers(0 if not inputs else 1, 2)) if writer.values else 0
        sources = tuple(draw(st.sampled_from(writer.values[-5:])) for _ in range(count))
        kinds = ["view", "elementwise", "elementwise", "follows", "follows", "other"]
        kind = draw(st.sampled_from(kinds)) if sources else "other"
        if kind == "view":
            writer.layer(sources[:1], sources[0].info.size, view=True)
        elif kind == "elementwise":
            writer.layer(sources, min(source.info.size for source in sources), inplace=True)
        elif kind == "follows":
            stated = {index: draw(st.integers(0, 9)) for index in range(len(sources)) if draw(st.integers(0, 3))}
            scratch = draw(st.sampled_from((0, 0, 5)))
            writer.layer(sources, draw(st.sampled_from(SIZES)), scratch=scratch, behind=stated)
        else:
            writer.layer(sources, draw(st.sampled_from(SIZES)), scratch=draw(st.sampled_from((0, 0, 5))))
    whole = writer.program(inputs, ())
    taken = {value.name for value in inputs}
    outputs: list[Value] = []
    for value in draw(st.permutations(writer.values)):
        if root(whole, value) not in taken and len(outputs) < 3:
            taken.add(root(whole, value))
            outputs.append(value)
    return writer.program(inputs, tuple(outputs))


class Memory:
    """Remembers whose bytes are where; what the caller owns lies apart from the arena."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.bytes: dict[tuple[str, int, str, int], str] = {}
        self.marks: dict[str, str] = {}

    def cells(self, value: Value) -> list[tuple[str, int, str, int]]:
        spot = self.placement.places[value.name]
        assert spot.offset >= 0
        assert spot.kind != "arena" or spot.offset + value.info.size <= self.size(spot.pool)
        return [(spot.kind, spot.index, spot.pool, spot.offset + i) for i in range(value.info.size)]

    def size(self, pool: str) -> int:
        return self.placement.pools[pool] if pool else self.placement.arena

    def write(self, value: Value, mark: str) -> None:
        self.marks[value.name] = mark
        self.bytes.update((cell, mark) for cell in self.cells(value))

    def holds(self, value: Value) -> bool:
        return all(self.bytes.get(cell) == self.marks[value.name] for cell in self.cells(value))


def follow(layer: Layer, memory: Memory) -> None:
    """Byte by byte; all is still to be read that the kernel did not say it has read before."""
    for written, cell in enumerate(memory.cells(layer.outputs[0]), 1):
        memory.bytes[cell] = layer.outputs[0].name
        for index, value in enumerate(layer.inputs):
            read = max(0, written - layer.kernel.behind.get(index, written))
            wanted = memory.marks[value.name]
            assert all(memory.bytes[byte] == wanted for byte in memory.cells(value)[read:]), layer.name


def execute(program: Program, memory: Memory) -> None:
    """An elementwise layer may destroy what it reads while it writes, one that follows its reading may destroy what is
    read; any other may not, nor may scratch."""
    for layer in program.layers:
        assert all(memory.holds(value) for value in layer.inputs), layer.name
        output = layer.outputs[0]
        if layer.is_view:
            memory.marks[output.name] = memory.marks[layer.inputs[0].name]
            assert memory.holds(output), layer.name
            continue
        spot = memory.placement.scratch.get(layer.index, Place("arena"))
        cells = [("arena", 0, spot.pool, spot.offset + i) for i in range(layer.scratch)]
        memory.bytes.update((cell, "scratch") for cell in cells)
        if layer.kernel.behind:
            follow(layer, memory)
        memory.write(output, output.name)
        if not layer.kernel.inplace and not layer.kernel.behind:
            assert all(memory.holds(value) for value in layer.inputs), layer.name
        assert {memory.bytes[cell] for cell in cells} <= {"scratch"}, layer.name


@settings(max_examples=300, deadline=None)
@given(program=programs(), workspace_io=st.booleans(), sizes=st.lists(st.integers(1, 40), max_size=2))
def test_no_value_is_lost_from_the_inputs_to_the_outputs(
    program: Program, workspace_io: bool, sizes: list[int]
) -> None:
    """Twice, over what the run before left behind: the inputs are all written first, the outputs all read last."""
    pools = [*(Pool(f"pool{i}", size) for i, size in enumerate(sizes)), Pool("rest")] if sizes else []
    placement = place(program, workspace_io=workspace_io, pools=pools)
    assert all(placement.pools[pool.name] <= (pool.size or placement.arena) for pool in pools)
    assert sum(placement.pools.values()) in (0, placement.arena)
    memory = Memory(placement)
    for run in range(2):
        for value in program.inputs:
            memory.write(value, f"{value.name} of run {run}")
        assert all(memory.holds(value) for value in program.inputs)
        execute(program, memory)
        assert all(memory.holds(value) for value in program.outputs)
    assert placement.plan.lower_bound <= placement.arena
    kinds = {placement.places[value.name].kind for value in (*program.inputs, *program.outputs)}
    assert kinds <= ({"arena"} if workspace_io else {"input", "output"})


@settings(max_examples=100, deadline=None)
@given(program=programs())
def test_the_arena_with_inputs_and_outputs_is_no_larger_than_the_parts(program: Program) -> None:
    """It could hold the others' bytes beside the arena; padding is all that may come on top."""
    tensors = (*program.inputs, *program.outputs)
    apart = place(program).plan.lower_bound + sum(value.info.size for value in tensors)
    inside = place(program, workspace_io=True).plan.lower_bound
    assert max((sum(v.info.size for v in part) for part in (program.inputs, program.outputs)), default=0) <= inside
    assert inside <= apart


@pytest.mark.parametrize(
    ("inplace", "arena"), [pytest.param(True, 100, id="in place"), pytest.param(False, 200, id="beside each other")]
)
def test_the_output_of_an_elementwise_model_takes_the_inputs_bytes(inplace: bool, arena: int) -> None:
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), 100, inplace=inplace)
    placement = place(writer.program((x,), (y,)), workspace_io=True)
    assert (placement.arena, placement.plan.lower_bound) == (arena, arena)


@pytest.mark.parametrize(("size", "arena"), [(100, 100), (60, 100), (101, 201)], ids=["same", "smaller", "larger"])
def test_a_larger_output_does_not_take_its_inputs_place(size: int, arena: int) -> None:
    """Element by element it would run ahead of what is still to be read."""
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), size, inplace=True)
    assert place(writer.program((x,), (y,)), workspace_io=True).arena == arena


def test_an_output_that_is_read_on_is_not_overwritten() -> None:
    writer = Writer()
    x = writer.value(8)
    y = writer.layer((x,), 8, inplace=True)
    z = writer.layer((y,), 8, inplace=True)
    assert place(writer.program((x,), (y, z)), workspace_io=True).arena == 16


def test_unused_inputs_lie_apart_until_the_first_layer() -> None:
    writer = Writer()
    x, unused = writer.value(8), writer.value(8)
    y = writer.layer((x,), 8)
    placement = place(writer.program((x, unused), (y,)), workspace_io=True)
    offsets = {value.name: placement.places[value.name].offset for value in (x, unused, y)}
    assert offsets[x.name] != offsets[unused.name]
    assert offsets[y.name] == offsets[unused.name], "the layer's result may take the place of what nobody reads"
    assert placement.arena == 16


def test_a_result_follows_the_reading_of_its_input() -> None:
    """Eight bytes behind: 108 for the first layer, and in place for one that says nought."""
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), 90, behind={0: 8})
    z = writer.layer((y,), 90, behind={0: 0})
    placement = place(writer.program((x,), (z,)), workspace_io=True)
    assert (placement.arena, placement.plan.lower_bound, placement.plan.optimal) == (108, 108, True)
    offsets = [placement.places[value.name].offset for value in (x, y, z)]
    assert offsets[1] == offsets[2] == offsets[0] - 8


def test_the_callers_inputs_and_outputs_are_left_alone() -> None:
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), 100, behind={0: 8})
    z = writer.layer((y,), 100, behind={0: 8})
    placement = place(writer.program((x,), (z,)))
    assert [placement.places[value.name].kind for value in (x, y, z)] == ["input", "arena", "output"]
    assert placement.overlaps == ()


def test_what_is_read_later_or_by_a_view_is_not_overlapped() -> None:
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), 100, behind={0: 8})
    view = writer.layer((y,), 100, view=True)
    z = writer.layer((y, view), 100, behind={0: 8})
    w = writer.layer((x, z), 100, behind={0: 8, 1: 16})
    placement = place(writer.program((x,), (w,)), workspace_io=True)
    assert {(overlap.low, overlap.high, overlap.distance) for overlap in placement.overlaps} == {
        (w.name, x.name, 8),
        (w.name, z.name, 16),
    }


def test_an_accelerators_layer_overlaps_only_where_its_stand_in_does() -> None:
    writer = Writer()
    x = writer.value(100)
    y = writer.layer((x,), 100, behind={0: 8})
    for stand_in, distances in ((Kernel("portable", ()), []), (Kernel("portable", (), behind={0: 24}), [24])):
        writer.layers[0] = replace(writer.layers[0], otherwise=stand_in)
        placement = place(writer.program((x,), (y,)), workspace_io=True)
        assert [overlap.distance for overlap in placement.overlaps] == distances
