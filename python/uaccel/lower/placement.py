"""Places every value of a program in memory: tensors and scratch memory in the arena, and the state beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from uaccel import memory
from uaccel.errors import UaccelError
from uaccel.lower.program import Layer, Program, StateValue, Value, view_roots
from uaccel.memory import plan
from uaccel.model import StateSpec, TensorSpec
from uaccel.util.text import round_up

# How often each byte of a tensor is read and written in an inference (its heat): the hottest lie in fast memory.

# The heat of a kernel's scratch memory, which its inner loops go through again and again, and of constants that were
# copied to lie in fast memory: far above that of tensors.
WORKING = 1e6
# Operators whose kernels read an input element once, or a few times, for all output channels.
_EACH_FOR_ALL_CHANNELS = ("conv2d", "fully_connected")


def heat_of(program: Program, owner: Mapping[str, str], working: Iterable[str]) -> dict[str, float]:
    """Accesses per byte of each block; of tensors that share one, the most. ``owner``: the block of each tensor.
    ``working``: names of scratch memory and of constants that are copied."""
    heat = dict.fromkeys(working, WORKING)
    reads: dict[str, float] = {}
    for layer in program.layers:
        if layer.is_view:
            continue
        for value in layer.inputs:
            reads[value.name] = reads.get(value.name, 0) + _reads(layer, value.info.elements)
    found: dict[str, float] = {}
    for name, block in owner.items():
        found[block] = max(found.get(block, 0), heat.get(name, 1 + reads.get(name, 0)))
    return found


def _reads(layer: Layer, elements: int) -> float:
    """Estimates how often each element of an input is read: once for each window that it lies under."""
    channels = layer.outputs[0].info.shape[-1:] or (1,)
    products = layer.macs / channels[0] if layer.op in _EACH_FOR_ALL_CHANNELS else layer.macs
    return max(1.0, products / max(1, elements))


# Where every value of a program lies: in the caller's inputs and outputs, or at an offset in the arena.
#
# With workspace I/O the inputs and outputs are blocks of the arena, too. The inputs are all written before the first
# step, the outputs all stay after the last; in between an input is a value like any other, which may be overwritten.
#
# What lasts from one inference to the next lies in memory of its own, the state: there every entry has a fixed place,
# which holds its value before an inference and, later, the one after it. Its last bytes are a mark: by it a run knows
# that memory holds a state of this model.

ELEMENT_ALIGNMENT = 4
WIDE_ALIGNMENT = 8  # Elements of 8 bytes, and scratch memory, whose contents may have any type.
AHEAD_ALIGNMENT = 16  # Constants that are copied ahead.
STATE_MARK = 4  # Bytes of the mark at the end of a state.


@dataclass(frozen=True)
class Place:
    """Holds where a value lies. ``kind``: input or output (number ``index``), arena or state (byte ``offset``).

    ``pool`` names the pool of the arena, where there are several.
    """

    kind: str
    index: int = 0
    offset: int = 0
    pool: str = ""

    def to_json(self) -> dict[str, str | int]:
        where: dict[str, str | int] = {"pool": self.pool} if self.pool else {}
        return where | {"memory": self.kind, "offset": self.offset if self.kind in ("arena", "state") else self.index}


@dataclass(frozen=True)
class Placement:
    """Holds the place of every value. ``scratch``: those of layers' scratch memory, by layer index.

    ``ahead``: those of constants that are copied before a layer runs; ``state``: the bytes of the state. ``pools``: the
    bytes of each pool, by its name, where the arena is divided; ``plan`` has the offsets in all.
    """

    places: Mapping[str, Place]
    scratch: Mapping[int, Place]
    plan: memory.Plan
    blocks: tuple[memory.Block, ...]
    state: int = 0
    overlaps: tuple[memory.Overlap, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)
    ahead: Mapping[int, Place] = field(default_factory=dict)

    @property
    def arena(self) -> int:
        """Bytes of all pools together."""
        return self.plan.size


def place(
    program: Program,
    *,
    workspace_io: bool = False,
    pools: Sequence[memory.Pool] = (),
    ahead: Mapping[int, int] = MappingProxyType({}),
    effort: float = 1.0,
) -> Placement:
    """Plans the arena by the live ranges of values, which follow from the order of the layers.

    Views share the bytes of what they view. Outputs take the place of inputs where that cannot cost bytes, and overlap
    them where kernels state how far their writes lag behind their reads. ``pools``: the memories that the arena is
    divided among, the preferred one first. ``ahead``: bytes of constants that are copied before a layer runs, by its
    index. ``effort``: how long to search, as a multiple of what is usual.
    """
    asked = _question(program, workspace_io, ahead)
    planned, pool_of, sizes = _planned(program, asked, pools, effort)
    places = dict(asked.fixed)

    def placed(block: str) -> Place:
        owner = asked.owner[block]
        return Place("arena", offset=planned.offsets[owner], pool=pool_of.get(owner, ""))

    places |= {block.name: placed(block.name) for block in asked.blocks}
    scratch = {index: placed(name) for index, name in asked.scratch.items()}
    copied = {index: placed(name) for index, name in asked.ahead.items()}
    return Placement(places, scratch, planned, tuple(asked.merged), asked.state, tuple(asked.overlaps), sizes, copied)


GUARD = 64  # Bytes between two tensors that lie apart, at least.


def place_apart(program: Program) -> Placement:
    """A place of its own for every tensor and scratch memory, inputs, outputs and state too, with bytes between them
    that no layer may touch. Views still share the bytes of what they view."""
    asked = _question(program, workspace_io=True)
    views = [pair for pair in view_roots(program.layers).items() if pair[0] not in asked.fixed]
    merged, owner = memory.merge_shared(asked.blocks, views)
    offsets, end = {}, 0
    for block in merged:
        offsets[block.name] = round_up(end + GUARD, max(AHEAD_ALIGNMENT, block.alignment))
        end = offsets[block.name] + block.size
    planned = memory.Plan(offsets, end + GUARD, end + GUARD, False, "apart")
    places = {block.name: Place("arena", offset=offsets[owner[block.name]]) for block in asked.blocks}
    scratch = {index: places[name] for index, name in asked.scratch.items()}
    fixed, state = _state(program, GUARD)
    fixed = _fixed_places(program, fixed, workspace_io=True)
    return Placement(places | fixed, scratch, planned, tuple(merged), state)


def _planned(
    program: Program, asked: _Question, pools: Sequence[memory.Pool], effort: float
) -> tuple[memory.Plan, Mapping[str, str], Mapping[str, int]]:
    """The plan of all blocks; the pool of each, and the bytes of each pool. With pools, the hottest blocks go to the
    first pool, as far as a quick plan finds room; then each pool is planned with full effort. An overlap holds only if
    both of its blocks are in one pool. Every plan is checked independently."""
    if not pools:
        planned = plan(asked.merged, asked.overlaps, effort=effort)
        memory.check(asked.merged, planned, asked.overlaps)
        return planned, {}, {}
    heat = heat_of(program, asked.owner, [*asked.scratch.values(), *asked.ahead.values()])
    divided, left = memory.divide(
        asked.merged, pools, heat, lambda blocks: plan(blocks, _among(asked, blocks), effort=0)
    )
    if left:
        raise UaccelError(_too_small(program, pools, left))
    plans = [plan(blocks, _among(asked, blocks)) for blocks in divided]
    for blocks, each in zip(divided, plans, strict=True):
        memory.check(blocks, each, _among(asked, blocks))
    pool_of = {block.name: pool.name for pool, blocks in zip(pools, divided, strict=True) for block in blocks}
    whole = memory.Plan(
        offsets={name: offset for each in plans for name, offset in each.offsets.items()},
        size=sum(each.size for each in plans),
        lower_bound=max(memory.live_bytes(asked.merged, asked.overlaps).values(), default=0),
        optimal=len(pools) == 1 and plans[0].optimal,
        method=plans[0].method,
    )
    return whole, pool_of, {pool.name: each.size for pool, each in zip(pools, plans, strict=True)}


def _among(asked: _Question, blocks: Sequence[memory.Block]) -> list[memory.Overlap]:
    """The overlaps whose blocks are both there."""
    names = {block.name for block in blocks}
    return [overlap for overlap in asked.overlaps if {overlap.low, overlap.high} <= names]


def _too_small(program: Program, pools: Sequence[memory.Pool], left: Sequence[memory.Block]) -> str:
    block = max(left, key=lambda block: (block.size, block.name))
    layer = next((layer.name for layer in program.layers if layer.index >= block.first), "the inputs")
    sizes = ", ".join(f"{pool.name} {pool.size:,}" for pool in pools if pool.size is not None)
    return (
        f"the workspace pools of {program.name} are too small ({sizes} bytes): no room is left for '{block.name}', "
        f"{block.size:,} bytes, at {layer}; make them larger, or add a pool without '=BYTES', which takes the rest"
    )


def needed_by_layer(
    program: Program, *, workspace_io: bool = False, ahead: Mapping[int, int] = MappingProxyType({})
) -> dict[int, int]:
    """Bytes that are needed at once while a layer runs, by its index: the arena has at least the largest of them.
    Layers are left out that need no more than one beside them."""
    asked = _question(program, workspace_io, ahead)
    return memory.live_bytes(asked.merged, asked.overlaps)


@dataclass(frozen=True)
class _Question:
    """Holds the input of the planner: ``blocks`` are the values', ``merged`` those after sharing (see ``owner``)."""

    fixed: Mapping[str, Place]
    state: int
    blocks: Sequence[memory.Block]
    scratch: Mapping[int, str]
    ahead: Mapping[int, str]
    merged: Sequence[memory.Block]
    owner: Mapping[str, str]
    overlaps: Sequence[memory.Overlap]


def _question(program: Program, workspace_io: bool, ahead: Mapping[int, int] = MappingProxyType({})) -> _Question:
    offsets_of_state, state = _state(program)
    needed = device_alignments(program)
    fixed = _fixed_places(program, offsets_of_state, workspace_io=workspace_io)
    blocks = [
        memory.Block(name, life.value.info.size, life.first, life.last, _alignment(life.value, needed))
        for name, life in lifetimes(program, workspace_io=workspace_io).items()
        if name not in fixed
    ]
    scratch = {layer.index: f"scratch of {layer.name}" for layer in program.layers if layer.scratch}
    for layer in program.layers:
        if layer.scratch:
            alignment = max(WIDE_ALIGNMENT, program.device_alignment(layer))
            blocks.append(memory.Block(scratch[layer.index], layer.scratch, layer.index, layer.index, alignment))
    copied = {index: f"constants of {program.layers[index].name}" for index in ahead}
    blocks += [
        memory.Block(copied[index], size, computed_before(program, index), index, AHEAD_ALIGNMENT)
        for index, size in ahead.items()
    ]
    views = [pair for pair in view_roots(program.layers).items() if pair[0] not in fixed]
    behind = _behind(program, fixed)
    shares = memory.choose_inplace(blocks, views, _inplace(program, fixed, behind), behind)
    merged, owner = memory.merge_shared(blocks, shares)
    return _Question(fixed, state, blocks, scratch, copied, merged, owner, memory.overlaps_of(merged, owner, behind))


def computed_before(program: Program, index: int) -> int:
    """The layer that computes while constants of layer ``index`` are copied; itself where it is the first."""
    return max((layer.index for layer in program.layers[:index] if not layer.is_view), default=index)


def _state(program: Program, apart: int = 0) -> tuple[dict[str, Place], int]:
    """The places of the state's values, one entry after the other and so many bytes ``apart``, and the bytes of all.
    The values of an entry before and after an inference have the same place. States lie in an array without gaps."""
    places, end, needed = {}, 0, device_alignments(program)
    for entry in program.state:
        offset = round_up(end + apart, _alignment_of_entry(entry, needed))
        end = offset + entry.before.info.size
        for value in (entry.before, entry.after):
            if value is not None:
                places[value.name] = Place("state", offset=offset)
    return places, round_up(end + apart + STATE_MARK, state_alignment(program)) if places else 0


def state_alignment(program: Program) -> int:
    """What the address of a state must be a multiple of."""
    needed = device_alignments(program)
    return max([ELEMENT_ALIGNMENT, *(_alignment_of_entry(entry, needed) for entry in program.state)])


def _alignment_of_entry(entry: StateValue, needed: Mapping[str, int]) -> int:
    return max(_alignment(value, needed) for value in (entry.before, entry.after) if value is not None)


def _fixed_places(program: Program, state: Mapping[str, Place], *, workspace_io: bool) -> dict[str, Place]:
    """The places of values outside the arena: of the state, of the caller's inputs and outputs, and of their views."""
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


def _alignment(value: Value, needed: Mapping[str, int]) -> int:
    own = WIDE_ALIGNMENT if value.info.itemsize == WIDE_ALIGNMENT else ELEMENT_ALIGNMENT
    return max(own, needed.get(value.name, 1))


def device_alignments(program: Program) -> dict[str, int]:
    """What addresses must be multiples of, by the values that devices read and write, and by those whose bytes these
    view."""
    roots = view_roots(program.layers)
    found: dict[str, int] = {}
    for layer in program.layers:
        alignment = program.device_alignment(layer)
        for value in (*layer.inputs, *layer.outputs) if alignment > 1 else ():
            for name in (value.name, roots.get(value.name, value.name)):
                found[name] = max(found.get(name, 1), alignment)
    return found


@dataclass(frozen=True)
class LiveRange:
    """Holds the first and the last layer that needs a value."""

    value: Value
    first: int
    last: int


def lifetimes(program: Program, *, workspace_io: bool) -> dict[str, LiveRange]:
    """The live range of every value that a layer reads or writes. With workspace I/O the inputs are live from -1 on,
    before the first layer, and the outputs up to one behind the last."""
    before, after = -1, len(program.layers)
    lives: dict[str, LiveRange] = {}

    def needed(value: Value, step: int) -> None:
        known = lives.get(value.name, LiveRange(value, step, step))
        lives[value.name] = LiveRange(value, known.first, step)

    for value in program.held if workspace_io else ():
        needed(value, before)
    for layer in program.layers:
        for value in (*layer.inputs, *layer.outputs):
            needed(value, layer.index)
    for value in program.outputs if workspace_io else ():
        needed(value, after)
    return lives


def _inplace(program: Program, fixed: Mapping[str, Place], behind: Sequence[memory.Overlap]) -> list[tuple[str, str]]:
    """The pairs of an output and an input that may have one block: the kernel allows it, and the input dies there.
    ``choose_inplace`` leaves out what a view of the input still needs. A shared block has the larger of the two sizes
    for as long as either is live, so a smaller output rather overlaps its input, where it may at distance 0."""
    last = {value.name: layer.index for layer in program.layers for value in layer.inputs}
    roots = view_roots(program.layers)
    nought = {(overlap.low, overlap.high) for overlap in behind if overlap.distance == 0}
    found = []
    for layer in program.layers:
        for index, source in enumerate(layer.inputs):
            pair = layer.outputs[0].name, source.name
            same = pair in nought and layer.outputs[0].info.size == source.info.size
            root = roots.get(source.name, source.name)
            read = [i for i, value in enumerate(layer.inputs) if roots.get(value.name, value.name) == root]
            stated = {index, *read} <= set(layer.kernel.inplace) and (same or pair not in nought)
            if (same or stated) and _may_share(layer, index, last, fixed):
                found.append(pair)
    return found


def _behind(program: Program, fixed: Mapping[str, Place]) -> list[memory.Overlap]:
    """How far before an input the output must begin at least, to overlap it. Every form of the layer (accelerator and
    CPU) must state a distance, for this input and all others that view the same bytes; the largest holds. Both blocks
    must lie in the arena."""
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
                found.append(memory.Overlap(target, root, max(distances)))
    return found


def _may_share(layer: Layer, index: int, last: Mapping[str, int], fixed: Mapping[str, Place]) -> bool:
    source, target = layer.inputs[index], layer.outputs[0]
    return (
        source.name not in fixed
        and target.name not in fixed
        and last[source.name] == layer.index
        and target.info.size <= source.info.size
    )


# How the state gets its new values at the end of an inference: by copies, or by layers that write them in place.

Copy = Callable[[TensorSpec, Any], Value]  # Appends a layer that copies a value, or a constant, into a new one.


@dataclass(frozen=True)
class Storing:
    """Decides how each entry of the state gets its new value.

    ``befores``: the values that an inference begins with; ``outputs``: the model's outputs.
    """

    layers: list[Layer]
    befores: Sequence[Value]
    outputs: Sequence[Value]
    copy: Copy

    def values(self, specs: Sequence[StateSpec], results: Sequence[Any]) -> tuple[StateValue, ...]:
        """The entries of the state, which ``results`` become at the end of an inference.

        An entry that becomes itself keeps its bytes, and a layer may write its result in place (``_is_direct``). Others
        are copied last, when every layer has read what a copy overwrites. A result that is another entry's old value is
        first copied aside, since the copies themselves might overwrite it.
        """
        roots = [self._root(result) if isinstance(result, Value) else None for result in results]
        befores = {value.name for value in self.befores}
        kept = [root == before.name for root, before in zip(roots, self.befores, strict=True)]
        direct = [not keep and self._is_direct(i, roots) for i, keep in enumerate(kept)]
        safe = [
            result if kept[i] or direct[i] or roots[i] not in befores else self.copy(specs[i].spec, result)
            for i, result in enumerate(results)
        ]
        afters: list[Value | None] = []
        for i, result in enumerate(safe):
            value = result if direct[i] else self.copy(specs[i].spec, result)
            afters.append(None if kept[i] else value)
        return tuple(map(StateValue, specs, self.befores, afters))

    def _root(self, value: Value) -> str:
        """The value whose bytes this one views."""
        return view_roots(self.layers).get(value.name, value.name)

    def _is_direct(self, index: int, roots: Sequence[str | None]) -> bool:
        """Whether the layer that makes a result may write it over the old value. Nothing may read the old value later,
        and the result must be wanted nowhere else: not by another entry, and not as an output."""
        root, before = roots[index], self.befores[index].name
        if root is None or roots.count(root) > 1 or before in roots:
            return False
        if root in {self._root(value) for value in self.outputs}:
            return False
        makers = [layer for layer in self.layers if root in {value.name for value in layer.outputs}]
        readers = [layer for layer in self.layers if before in {self._root(value) for value in layer.inputs}]
        return len(makers) == 1 and all(self._reads_in_time(reader, makers[0], root, before) for reader in readers)

    def _reads_in_time(self, reader: Layer, maker: Layer, root: str, before: str) -> bool:
        """Whether a layer reads the old value before the result is written, or while it is, where the kernel allows
        it."""
        if reader.is_view or reader.index < maker.index:
            return True
        if reader is not maker or maker.on_accelerator:
            return False
        made = [value.name for value in maker.outputs].index(root)
        read = [place for place, value in enumerate(maker.inputs) if self._root(value) == before]
        return all((made, place) in maker.kernel.updates for place in read)
