"""Makes one layer of several that compute some rows at a time: its functions, buffers and the order of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uaccel.errors import InternalError
from uaccel.kernels import Choice, Work, candidates, kernel_options, pick, site_words
from uaccel.kernels.choice import Selection
from uaccel.kernels.cpu_costs import Costs
from uaccel.lower import program as programs
from uaccel.lower.from_relax import describe
from uaccel.lower.rows import schedule as schedules
from uaccel.lower.rows.geometry import Reach, RowRange, part_of, row_bytes
from uaccel.lower.rows.schedule import schedule
from uaccel.model import Origin, TensorInfo
from uaccel.ops.kernel import Kernel
from uaccel.ops.operator import Site
from uaccel.util.text import CPU, round_up

# The functions that compute some rows of a layer: kernels for the layer as if these rows were all.

Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class BandFunction:
    """Holds a layer's function for some rows, and what a call of it is expected to take."""

    site: Site[Any]
    kernel: Kernel
    macs: int
    cost: float
    choice: Choice


class Parts:
    """Makes the functions for rows of a program's layers, each once."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.costs = Costs.on(selection.target)
        self._known: dict[Key, BandFunction | None] = {}

    def of(
        self, layer: programs.Layer, windows: tuple[Reach | None, ...], spans: tuple[RowRange, ...], rows: int
    ) -> tuple[Key, BandFunction | None]:
        """The function for these rows, with its key: a layer's functions with the same key are the same."""
        key = (layer.index, rows, *((span.count, span.top, span.bottom, span.places) for span in spans))
        if key not in self._known:
            self._known[key] = self._made(layer, windows, spans, rows)
        return key, self._known[key]

    def _made(
        self, layer: programs.Layer, windows: tuple[Reach | None, ...], spans: tuple[RowRange, ...], rows: int
    ) -> BandFunction | None:
        assert layer.applied is not None
        operator = layer.applied.operator
        site = part_of(layer.applied.site, windows, spans, rows)
        kernels = candidates(operator, site, self.selection.target)
        if not kernels:
            return None
        macs = operator.macs(site)
        work = Work(macs, site.output.elements)
        choice = pick(self.selection.selector, site_words(operator, site), kernel_options(kernels), work)
        kernel = kernels[choice.picked]
        measured = self.costs.estimated.of(kernel_options([kernel])[0], work) is not None
        again = 0.0 if measured else schedules.CHANNEL.get(kernel.family, 0.0) * site.output.shape[-1]
        return BandFunction(site, kernel, macs, self.costs.of(kernel, work) + again, choice)


def function_of(layer: programs.Layer, part: BandFunction, name: str, what: str) -> programs.Layer:
    """Makes a part a layer of its own, which the whole one calls."""
    runtime = [operand.info for operand in part.site.operands if operand.constant is None]
    inputs = [_of(value, info) for value, info in zip(layer.inputs, runtime, strict=True)]
    why = f"; {part.choice.why}" if part.choice.why else ""
    kernel = programs.check_parameters(part.kernel)
    return replace(
        layer,
        name=name,
        inputs=tuple(inputs),
        outputs=(_of(layer.outputs[0], part.site.output),),
        kernel=kernel,
        macs=part.macs,
        reason=f"{what}; {describe(kernel)}{why}",
        choice=part.choice,
        refused="",
    )


def _of(value: programs.Value, info: TensorInfo) -> programs.Value:
    return replace(value, spec=replace(value.spec, info=info))


# Consecutive layers become one that computes them by rows.

OP = "rows"
ALIGNMENT = 8


@dataclass(frozen=True, eq=False)
class Sketch:
    """Holds a chain as it would run: what it needs of memory and of time, with no code made yet."""

    chain: schedules.RowChain
    band: int
    schedule: schedules.Schedule
    parts: Mapping[Key, BandFunction]
    sizes: Mapping[str, int]
    offsets: Mapping[str, int]
    scratch: int
    cost: float


def sketch(chain: schedules.RowChain, band: int, parts: Parts) -> Sketch | None:
    """Schedules a chain, lays out its buffers and adds up its cost. The result is None where some part has no kernel,
    or none that works in place where it must."""
    planned = schedule(chain, schedules.bands_of(chain, band))
    used: dict[Key, BandFunction] = {}
    scratch = dict.fromkeys((schedules.scratch_name(layer) for layer in chain.layers), 0)
    cost = 0.0
    for event in (event for step in planned.steps for event in step):
        cost += schedules.DISPATCH
        if isinstance(event, schedules.ComputeRows):
            layer = chain.layers[event.layer]
            key, part = parts.of(layer, chain.windows[event.layer], event.spans, event.last - event.first)
            if part is None or not _in_place(chain, layer, part.kernel):
                return None
            used[key] = part
            cost += part.cost
            scratch[schedules.scratch_name(layer)] = max(scratch[schedules.scratch_name(layer)], part.kernel.scratch)
        else:
            cost += schedules.MOVED * event.rows * _row_of(chain, event)
    rows = {value.name: row_bytes(value.info) for value in chain.buffered}
    sizes = {name: planned.capacity[name] * size for name, size in rows.items()} | scratch
    sizes = {name: size for name, size in sizes.items() if size}
    offsets = laid_out(sizes, planned.beside)
    total = max((offsets[name] + size for name, size in sizes.items()), default=0)
    return Sketch(chain, band, planned, used, sizes, offsets, total, cost)


def _row_of(chain: schedules.RowChain, event: schedules.MoveRows | schedules.ReceiveRows) -> int:
    name = event.name if isinstance(event, schedules.MoveRows) else chain.fed.name if chain.fed is not None else ""
    return next(row_bytes(value.info) for value in chain.buffered if value.name == name)


def _in_place(chain: schedules.RowChain, layer: programs.Layer, kernel: Kernel) -> bool:
    merged = [i for i, value in enumerate(layer.inputs) if chain.merged.get(value.name) == layer.outputs[0].name]
    return all(i in kernel.inplace for i in merged)


def laid_out(sizes: Mapping[str, int], beside: Mapping[str, set[str]]) -> dict[str, int]:
    """An offset for each block, such that those that hold something at once share no byte. First fit in four orders (by
    size, by conflicts, by both, as they come); the layout that ends first is taken."""
    orders = (
        sorted(sizes, key=lambda name: (-sizes[name], name)),
        sorted(sizes, key=lambda name: (-len(beside.get(name, ())), -sizes[name], name)),
        sorted(sizes, key=lambda name: (-sizes[name] * len(beside.get(name, ())), name)),
        list(sizes),
    )
    plans = [_first_fit(order, sizes, beside) for order in orders]
    return min(plans, key=lambda plan: max((plan[name] + sizes[name] for name in plan), default=0))


def _first_fit(order: Sequence[str], sizes: Mapping[str, int], beside: Mapping[str, set[str]]) -> dict[str, int]:
    placed: dict[str, int] = {}
    for name in order:
        others = sorted((placed[other], sizes[other]) for other in beside.get(name, ()) if other in placed)
        offset = 0
        for start, size in others:
            if offset + sizes[name] > start and start + size > offset:
                offset = round_up(start + size, ALIGNMENT)
        placed[name] = offset
    return placed


def check_layout(drawn: Sketch) -> None:
    """Raises InternalError where two blocks share bytes while both hold something."""
    for name, offset in drawn.offsets.items():
        for other in drawn.schedule.beside.get(name, ()):
            if other in drawn.offsets and name < other:
                start, size = drawn.offsets[other], drawn.sizes[other]
                if offset < start + size and start < offset + drawn.sizes[name]:
                    raise InternalError(f"rows: {name} and {other} share bytes while both hold something")


def grouped(drawn: Sketch, parts: Parts, index: int) -> programs.Layer:
    """The layer that takes the place of the chain's."""
    check_layout(drawn)
    chain = drawn.chain
    layers = chain.layers
    made = {layer.outputs[0].name for layer in layers}
    inputs = tuple(dict.fromkeys(v for layer in layers for v in layer.inputs if v.name not in made and v != chain.fed))
    outputs = tuple(layer.outputs[0] for layer in layers if layer.outputs[0].name not in chain.inside)
    streaming = _Writer(drawn, parts, inputs, outputs).streaming()
    macs = sum(layer.macs for layer in layers)
    families = tuple(dict.fromkeys(function.kernel.family for function in streaming.functions))
    special = [family for family in families if family != "portable"]
    behind = {i: distance_behind(drawn, value, outputs[0]) for i, value in enumerate(inputs)}
    kernel = Kernel(special[0] if special else "portable", (), scratch=drawn.scratch, behind=behind)
    how = f"up to {drawn.band} rows" if drawn.band > 1 else "a row"
    saved = sum(v.info.size for layer in layers for v in layer.outputs if v.name in chain.inside)
    return programs.Layer(
        index=index,
        name=f"{layers[0].name}_to_{layers[-1].name}",
        op=OP,
        engine=CPU,
        reason=f"{len(layers)} layers, {how} at a time: {drawn.scratch} bytes in place of {saved}",
        origin=Origin(layers[-1].origin.index, OP, layers[-1].origin.tensor),
        inputs=inputs,
        outputs=outputs,
        kernel=kernel,
        macs=macs,
        covers=tuple(programs.Covered(o.name, o.op, o.origin, o.outputs[0].info, o.macs, o.reason) for o in layers),
        streaming=streaming,
    )


def distance_behind(drawn: Sketch, source: programs.Value, target: programs.Value) -> int:
    """How many bytes before an input an output must begin at least, to write no row over one that is still read.

    A call writes up to byte ``last * row_out`` of the output. Rows from ``needed`` on of the input are read by this
    call or later ones, and begin at byte ``needed * row_in``. The distance is the largest difference of the two over
    all calls; the calls are visited backwards, so that ``needed`` is known.
    """
    chain = drawn.chain
    events = [event for step in drawn.schedule.steps for event in step if isinstance(event, schedules.ComputeRows)]
    row_in, row_out = row_bytes(source.info), row_bytes(target.info)
    needed, distance = source.info.shape[1], 0
    for event in reversed(events):
        layer, windows = chain.layers[event.layer], chain.windows[event.layer]
        reads = zip(layer.inputs, windows, event.spans, strict=True)
        starts = [span.begin if window is not None else 0 for value, window, span in reads if value == source]
        needed = min([needed, *starts])
        if chain.home(layer.outputs[0].name) == target.name:
            distance = max(distance, event.last * row_out - needed * row_in)
    return distance


class _Writer:
    """Turns a schedule into the steps of generated code: rows become bytes, and parts become functions. Rows in buffers
    have fixed offsets. Rows of whole tensors are found by cursors, which advance after each use, so that steps which do
    the same elsewhere in a tensor are equal and become one piece of code."""

    def __init__(
        self, drawn: Sketch, parts: Parts, inputs: Sequence[programs.Value], outputs: Sequence[programs.Value]
    ) -> None:
        self.drawn, self.parts = drawn, parts
        self.chain = drawn.chain
        self.row = {v.name: row_bytes(v.info) for o in self.chain.layers for v in (*o.inputs, *o.outputs)}
        self.places = {value.name: ("input", i) for i, value in enumerate(inputs)}
        self.places |= {value.name: ("output", i) for i, value in enumerate(outputs)}
        self.functions: dict[Key, programs.Layer] = {}
        self.numbers: dict[Key, int] = {}
        self.cursors: dict[str, programs.Cursor] = {}
        self.stands: dict[str, int] = {}

    def streaming(self) -> programs.Streaming:
        events = [event for step in self.drawn.schedule.steps for event in step]
        self._next_places(events)
        kinds: dict[tuple[programs.Action, ...], int] = {}
        order = []
        number = 0
        for step in self.drawn.schedule.steps:
            actions = []
            for event in step:
                actions.append(self._action(event, number))
                number += 1
            order.append(kinds.setdefault(tuple(actions), len(kinds)))
        functions = tuple(self.functions.values())
        owners = {function.name: self.chain.layers[self._owner(key)] for key, function in self.functions.items()}
        scratch = tuple(self.drawn.offsets.get(schedules.scratch_name(owners[f.name]), 0) for f in functions)
        buffers = tuple(
            programs.RowBuffer(value, self.drawn.offsets[value.name], self.drawn.schedule.capacity[value.name])
            for value in self.chain.buffered
            if value.name in self.drawn.offsets
        )
        return programs.Streaming(
            self.chain.layers,
            functions,
            scratch,
            buffers,
            tuple(self.cursors.values()),
            tuple(kinds),
            tuple(order),
            self.drawn.band,
            self.chain.fed,
        )

    def _owner(self, key: Key) -> int:
        return next(i for i, layer in enumerate(self.chain.layers) if layer.index == key[0])

    def _next_places(self, events: Sequence[schedules.Event]) -> None:
        """Finds how far each cursor advances after each use: to where its next use begins."""
        following: dict[str, tuple[int, int]] = {}
        self.advances: dict[tuple[int, int], int] = {}
        for number, event in enumerate(events):
            if not isinstance(event, schedules.ComputeRows):
                continue
            for slot, row in enumerate(event.at):
                name = self._home(event.layer, slot)
                if name not in self.places or not self._by_rows(event.layer, slot):
                    continue
                cursor = self._cursor(event.layer, slot, name)
                if cursor in following:
                    self.advances[following[cursor]] = (row - self.stands[cursor]) * self.row[name]
                following[cursor] = (number, slot)
                self.stands[cursor] = row
                self.advances[number, slot] = self._onwards(event, slot, row) * self.row[name]

    def _onwards(self, event: schedules.ComputeRows, slot: int, row: int) -> int:
        """How far a cursor advances after its last use: as if more rows came, but not beyond the tensor. So the last
        step equals those before it wherever it can."""
        rows, windows = event.last - event.first, self.chain.windows[event.layer]
        owner = self.chain.layers[event.layer]
        height = (*owner.inputs, *owner.outputs)[slot].info.shape[1]
        window = windows[slot] if slot < len(windows) else None
        return min(int(rows * (window.scale if window is not None else 1)), height - row)

    def _by_rows(self, layer: int, slot: int) -> bool:
        windows = self.chain.windows[layer]
        return slot >= len(windows) or windows[slot] is not None

    def _home(self, layer: int, slot: int) -> str:
        owner = self.chain.layers[layer]
        values = (*owner.inputs, *owner.outputs)
        return self.chain.home(values[slot].name)

    def _cursor(self, layer: int, slot: int, name: str) -> str:
        owner, (side, index) = self.chain.layers[layer], self.places[name]
        writes = slot == len(owner.inputs)
        second = f"_{slot}" if slot and not writes else ""
        cursor = f"{'to' if writes else 'from'}_{side}{index}_of_{owner.name}{second}"
        self.cursors.setdefault(cursor, programs.Cursor(cursor, side, index, owner.name))
        return cursor

    def _action(self, event: schedules.Event, number: int) -> programs.Action:
        if isinstance(event, schedules.MoveRows):
            row = self.row[event.name]
            return programs.Keep(event.name, event.row * row, event.rows * row)
        if isinstance(event, schedules.ReceiveRows):
            assert self.chain.fed is not None
            row = self.row[self.chain.fed.name]
            return programs.Receive(self.chain.fed.name, event.row * row if event.row >= 0 else -1, event.rows * row)
        return self._band(event, number)

    def _band(self, event: schedules.ComputeRows, number: int) -> programs.Band:
        layer, windows = self.chain.layers[event.layer], self.chain.windows[event.layer]
        key, part = self.parts.of(layer, windows, event.spans, event.last - event.first)
        assert part is not None
        if key not in self.functions:
            self.numbers[key] = len(self.functions)
            of_layer = sum(known[0] == layer.index for known in self.functions)
            name = f"{layer.name}_rows" + (f"_{of_layer + 1}" if of_layer else "")
            rows = event.last - event.first
            what = f"{rows} of {layer.outputs[0].info.shape[1]} rows at a time"
            self.functions[key] = function_of(layer, part, name, what)
        given = tuple(self._rows(event, slot, number) for slot in range(len(event.at)))
        return programs.Band(self.numbers[key], given[:-1], given[-1])

    def _rows(self, event: schedules.ComputeRows, slot: int, number: int) -> programs.Rows:
        name = self._home(event.layer, slot)
        if name not in self.places:
            return programs.Rows(f"rows_of_{name}", event.at[slot] * self.row[name])
        if not self._by_rows(event.layer, slot):
            side, index = self.places[name]
            return programs.Rows(f"{side}{index}")
        return programs.Rows(self._cursor(event.layer, slot, name), 0, self.advances.get((number, slot), 0))


# A program of which some consecutive layers run together by rows.


@dataclass(frozen=True, order=True)
class RowGroup:
    """Names the layers ``first`` to ``last`` of a program, which compute at most ``band`` rows at a time."""

    first: int
    last: int
    band: int = 1


def apply(
    program: programs.Program, groups: Iterable[RowGroup], parts: Parts, *, feed: bool = False
) -> programs.Program:
    """Replaces each group by one layer. With ``feed`` the group at the first layer is given an input's rows."""
    chains = schedules.Chains(program)
    by_first = {group.first: group for group in groups}
    layers: list[programs.Layer] = []
    at = 0
    while at < len(program.layers):
        group = by_first.get(at)
        if group is None:
            layers.append(replace(program.layers[at], index=len(layers)))
            at += 1
            continue
        fed = chains.feedable if feed and at == 0 else None
        chain = chains.of(group.first, group.last, fed)
        drawn = sketch(chain, group.band, parts) if chain is not None else None
        if drawn is None:
            raise InternalError(f"rows: layers {group.first} to {group.last} cannot run together")
        layers.append(grouped(drawn, parts, len(layers)))
        at = group.last + 1
    return replace(program, layers=tuple(layers))
