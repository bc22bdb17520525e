"""Where every value of a program lives: in the caller's inputs and outputs, or at an offset in the arena.

With workspace I/O the inputs and outputs are blocks of the arena, too. The inputs are all written before the first
step, the outputs all stay after the last; in between an input is a value like any other, which may be overwritten.

What lasts from one inference to the next lies in memory of its own, the state: there every entry has a fixed place,
which holds its value before an inference and, later, the one after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uaccel.basics.numbers import round_up
from uaccel.lower.program import Layer, Program, Value, view_roots
from uaccel.memory import Block, Plan, check, choose_inplace, merge_shared, plan

ELEMENT_ALIGNMENT = 4
WIDE_ALIGNMENT = 8


@dataclass(frozen=True)
class Place:
    """``kind`` is input, output (``index`` counts them), arena or state (``offset`` in bytes)."""

    kind: str
    index: int = 0
    offset: int = 0

    def to_json(self) -> dict[str, str | int]:
        return {"memory": self.kind, "offset": self.offset if self.kind in ("arena", "state") else self.index}


@dataclass(frozen=True)
class Placement:
    """``scratch`` gives the arena offset of a layer's scratch memory, by layer index; ``state`` is the state's size."""

    places: Mapping[str, Place]
    scratch: Mapping[int, int]
    plan: Plan
    blocks: tuple[Block, ...]
    state: int = 0

    @property
    def arena(self) -> int:
        return self.plan.size


def place(program: Program, *, workspace_io: bool = False) -> Placement:
    """Plan the arena: lifetimes from the order of the layers, views shared, in-place where it cannot cost bytes."""
    offsets_of_state, state = _state(program)
    fixed = _fixed_places(program, offsets_of_state, workspace_io=workspace_io)
    blocks = [
        Block(name, life.value.info.size, life.first, life.last, _alignment(life.value))
        for name, life in _lives(program, workspace_io=workspace_io).items()
        if name not in fixed
    ]
    scratch = {layer.index: f"scratch of {layer.name}" for layer in program.layers if layer.scratch}
    blocks += [
        Block(scratch[layer.index], layer.scratch, layer.index, layer.index, WIDE_ALIGNMENT)
        for layer in program.layers
        if layer.scratch
    ]
    views = [pair for pair in view_roots(program.layers).items() if pair[0] not in fixed]
    shares = choose_inplace(blocks, views, _inplace(program, fixed))
    merged, owner = merge_shared(blocks, shares)
    planned = plan(merged)
    check(merged, planned)
    places = dict(fixed)
    for block in blocks:
        places[block.name] = Place("arena", offset=planned.offsets[owner[block.name]])
    offsets = {index: planned.offsets[owner[name]] for index, name in scratch.items()}
    return Placement(places, offsets, planned, tuple(merged), state)


def _state(program: Program) -> tuple[dict[str, Place], int]:
    """One entry after the other: where the values before and after an inference lie, and the bytes of all."""
    places, end = {}, 0
    for entry in program.state:
        alignment = _alignment(entry.before)
        offset = round_up(end, alignment)
        end = offset + entry.before.info.size
        for value in (entry.before, entry.after):
            if value is not None:
                places[value.name] = Place("state", offset=offset)
    return places, end


def _fixed_places(program: Program, state: Mapping[str, Place], *, workspace_io: bool) -> dict[str, Place]:
    """The state is memory of its own, inputs and outputs are the caller's where the workspace does not hold them; and
    so is every view of them."""
    places = dict(state)
    if not workspace_io:
        places.update({value.name: Place("input", i) for i, value in enumerate(program.inputs)})
        places.update({value.name: Place("output", i) for i, value in enumerate(program.outputs)})
    roots = view_roots(program.layers)
    of_roots = {roots.get(name, name): place for name, place in places.items()}
    for view, root in roots.items():
        if root in of_roots:
            places |= {name: of_roots[root] for name in (root, view) if name not in places}
    return places


def _alignment(value: Value) -> int:
    return WIDE_ALIGNMENT if value.info.itemsize == WIDE_ALIGNMENT else ELEMENT_ALIGNMENT


@dataclass(frozen=True)
class _Life:
    """The first and the last layer that needs the value."""

    value: Value
    first: int
    last: int


def _lives(program: Program, *, workspace_io: bool) -> dict[str, _Life]:
    """Of every value that a layer reads or writes; with workspace I/O of every input and output, too."""
    before, after = -1, len(program.layers)
    lives: dict[str, _Life] = {}

    def needed(value: Value, step: int) -> None:
        known = lives.get(value.name, _Life(value, step, step))
        lives[value.name] = _Life(value, known.first, step)

    for value in program.inputs if workspace_io else ():
        needed(value, before)
    for layer in program.layers:
        for value in (*layer.inputs, *layer.outputs):
            needed(value, layer.index)
    for value in program.outputs if workspace_io else ():
        needed(value, after)
    return lives


def _inplace(program: Program, fixed: Mapping[str, Place]) -> list[tuple[str, str]]:
    """Output over input where the kernel allows it, the input dies here, and both lie in the arena.

    ``choose_inplace`` leaves out what a view of the input still needs.
    """
    last = {value.name: layer.index for layer in program.layers for value in layer.inputs}
    return [
        (layer.outputs[0].name, layer.inputs[index].name)
        for layer in program.layers
        for index in layer.kernel.inplace
        if _may_share(layer, index, last, fixed)
    ]


def _may_share(layer: Layer, index: int, last: Mapping[str, int], fixed: Mapping[str, Place]) -> bool:
    source, target = layer.inputs[index], layer.outputs[0]
    return (
        source.name not in fixed
        and target.name not in fixed
        and last[source.name] == layer.index
        and target.info.size <= source.info.size
    )
