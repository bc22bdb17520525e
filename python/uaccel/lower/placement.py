"""Where every value of a program lives: in the caller's inputs and outputs, or at an offset in the arena.

With workspace I/O the inputs and outputs are blocks of the arena, too. The inputs are all written before the first
step, the outputs all stay after the last; in between an input is a value like any other, which may be overwritten.

What lasts from one inference to the next lies in memory of its own, the state: there every entry has a fixed place,
which holds its value before an inference and, later, the one after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.basics.numbers import round_up
from uaccel.lower.program import Layer, Program, Value, view_roots
from uaccel.memory import Block, Overlap, Plan, check, choose_inplace, live_bytes, merge_shared, overlaps_of, plan

ELEMENT_ALIGNMENT = 4
WIDE_ALIGNMENT = 8
BOUNDED: Final = "layer by layer, outputs over what is read of their inputs"
"""The way to compute that an arena's lower bound is about; another one may take less."""
BOUNDED_ONCE: Final = "layer by layer, outputs beside their inputs"
"""That of archives that say nothing of it."""


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
    overlaps: tuple[Overlap, ...] = ()

    @property
    def arena(self) -> int:
        return self.plan.size


def place(program: Program, *, workspace_io: bool = False) -> Placement:
    """Plan the arena: lifetimes from the order of the layers, views shared, in-place where it cannot cost bytes,
    outputs over what is read of their inputs where kernels say how far behind they write."""
    asked = _question(program, workspace_io)
    planned = plan(asked.merged, asked.overlaps)
    check(asked.merged, planned, asked.overlaps)
    places = dict(asked.fixed)
    for block in asked.blocks:
        places[block.name] = Place("arena", offset=planned.offsets[asked.owner[block.name]])
    offsets = {index: planned.offsets[asked.owner[name]] for index, name in asked.scratch.items()}
    return Placement(places, offsets, planned, tuple(asked.merged), asked.state, tuple(asked.overlaps))


def needed_by_layer(program: Program, *, workspace_io: bool = False) -> dict[int, int]:
    """Bytes that are needed at once while a layer runs, by its index: the arena is as large as the largest at least.
    Layers are left out that need no more than one beside them."""
    asked = _question(program, workspace_io)
    return live_bytes(asked.merged, asked.overlaps)


@dataclass(frozen=True)
class _Question:
    """What is asked of the planner: ``blocks`` are the values' and ``merged`` those of which some share bytes."""

    fixed: Mapping[str, Place]
    state: int
    blocks: Sequence[Block]
    scratch: Mapping[int, str]
    merged: Sequence[Block]
    owner: Mapping[str, str]
    overlaps: Sequence[Overlap]


def _question(program: Program, workspace_io: bool) -> _Question:
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
    behind = _behind(program, fixed)
    shares = choose_inplace(blocks, views, _inplace(program, fixed, behind), behind)
    merged, owner = merge_shared(blocks, shares)
    return _Question(fixed, state, blocks, scratch, merged, owner, overlaps_of(merged, owner, behind))


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


def _inplace(program: Program, fixed: Mapping[str, Place], behind: Sequence[Overlap]) -> list[tuple[str, str]]:
    """Output over input where the kernel allows it, the input dies here, and both lie in the arena.

    ``choose_inplace`` leaves out what a view of the input still needs. A smaller output keeps all of its input's bytes,
    so it rather overlaps it, where it may.
    """
    last = {value.name: layer.index for layer in program.layers for value in layer.inputs}
    nought = {(overlap.low, overlap.high) for overlap in behind if overlap.distance == 0}
    found = []
    for layer in program.layers:
        for index, source in enumerate(layer.inputs):
            pair = layer.outputs[0].name, source.name
            same = pair in nought and layer.outputs[0].info.size == source.info.size
            stated = index in layer.kernel.inplace and (same or pair not in nought)
            if (same or stated) and _may_share(layer, index, last, fixed):
                found.append(pair)
    return found


def _behind(program: Program, fixed: Mapping[str, Place]) -> list[Overlap]:
    """How far before an input the output begins at least, to overlap it: where every form of the layer says so of the
    input and of all others that look at the same bytes, and both lie in the arena."""
    roots = view_roots(program.layers)
    found = []
    for layer in program.layers:
        read: dict[str, list[int]] = {}
        for index, value in enumerate(layer.inputs):
            read.setdefault(roots.get(value.name, value.name), []).append(index)
        for root, indices in read.items():
            stated = [form.kernel.behind.get(index) for form in layer.forms for index in indices]
            distances = [distance for distance in stated if distance is not None]
            target = layer.outputs[0].name
            if len(distances) == len(stated) and not {target, root} & fixed.keys():
                found.append(Overlap(target, root, max(distances)))
    return found


def _may_share(layer: Layer, index: int, last: Mapping[str, int], fixed: Mapping[str, Place]) -> bool:
    source, target = layer.inputs[index], layer.outputs[0]
    return (
        source.name not in fixed
        and target.name not in fixed
        and last[source.name] == layer.index
        and target.info.size <= source.info.size
    )
