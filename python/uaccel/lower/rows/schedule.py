"""Plans in which order a chain of layers computes its rows, and how large its row buffers are.

It also tells which layers of a program can form a chain, and what their kernels and moves are expected to take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

from uaccel.lower.program import Layer, Program, Value
from uaccel.lower.rows.geometry import Reach, RowRange, row_bytes, windows_of
from uaccel.ops.operator import Elementwise

# In which order a chain of layers computes its rows: every layer as late as the next one allows.
#
# The last layer asks for some rows, and a layer that cannot give them yet asks its own inputs in turn. So each buffer
# holds as little as possible. The order depends on no data: it is simulated once, with numbers in place of rows. This
# shows what each row buffer must hold, and which buffers hold something at the same time.

WHOLE: Final = RowRange(0, 0)  # Stands for an input that is read as a whole.
NEVER: Final = 1 << 30  # A row that no reader ever asks for.


@dataclass(frozen=True)
class RowChain:
    """Holds layers that run together, with the ``windows`` of each; ``inside``: values that nobody else reads.

    ``merged``: values that an elementwise layer overwrites with its result, which lie in the result's buffer.
    ``fed``: the input whose rows the caller hands over.
    """

    layers: tuple[Layer, ...]
    windows: tuple[tuple[Reach | None, ...], ...]
    inside: frozenset[str]
    merged: dict[str, str]
    fed: Value | None = None

    def home(self, name: str) -> str:
        """The value in whose buffer or tensor a value lies."""
        while name in self.merged:
            name = self.merged[name]
        return name

    @property
    def made(self) -> list[Value]:
        """Values that others read."""
        made = [layer.outputs[0] for layer in self.layers]
        return [value for value in made if value.name not in self.inside]

    @property
    def buffered(self) -> list[Value]:
        """Values that have rows of their own."""
        made = [layer.outputs[0] for layer in self.layers]
        given = [] if self.fed is None else [self.fed]
        return [*given, *(v for v in made if v.name in self.inside and v.name not in self.merged)]


@dataclass(frozen=True)
class ComputeRows:
    """Computes the rows ``first`` up to ``last`` of a layer's output.

    ``at``: the row at which each input's rows and the output's begin, in the buffer as it stands then or in the whole
    tensor.
    """

    layer: int
    first: int
    last: int
    spans: tuple[RowRange, ...]
    at: tuple[int, ...]


@dataclass(frozen=True)
class MoveRows:
    """Moves rows of a buffer, from ``row`` on, to its front."""

    name: str
    row: int
    rows: int


@dataclass(frozen=True)
class ReceiveRows:
    """Receives rows of the fed input, behind ``row`` rows of its buffer; -1: nobody reads them."""

    row: int
    rows: int


Event = ComputeRows | MoveRows | ReceiveRows


@dataclass
class _Buffer:
    """Holds the rows ``low`` up to ``high`` of a value; ``capacity`` is the most rows that it ever held."""

    low: int = 0
    high: int = 0
    capacity: int = 0


@dataclass
class Schedule:
    """Holds the order of a chain. ``steps``: the events of each band of the last layer.

    A step of a fed chain ends where rows are to come. ``capacity``: the rows that each buffer must hold. ``beside``:
    for each buffer and each layer's scratch memory, the others that hold something at the same time.
    """

    steps: list[list[Event]]
    capacity: dict[str, int]
    beside: dict[str, set[str]] = field(default_factory=dict)


def scratch_name(layer: Layer) -> str:
    return f"{layer.name} scratch"


def schedule(chain: RowChain, bands: Sequence[int]) -> Schedule:
    """Plans the order of a chain. ``bands``: how many rows each layer computes at most at once."""
    return _Simulation(chain, bands).run()


class _Simulation:
    """Runs a chain with numbers in place of rows. Layer i has computed its rows before ``done[i]``. ``needed`` has for
    each buffer the first row that some reader still reads. A buffer always holds its rows from there up to ``high``,
    and gives up earlier ones only when it needs room for new rows."""

    def __init__(self, chain: RowChain, bands: Sequence[int]) -> None:
        self.chain, self.bands = chain, bands
        self.layers = chain.layers
        self.producer = {layer.outputs[0].name: i for i, layer in enumerate(chain.layers)}
        self.done = [0] * len(chain.layers)
        self.heights = [layer.outputs[0].info.shape[1] for layer in chain.layers]
        self.buffers = {value.name: _Buffer() for value in chain.buffered}
        self.readers: dict[str, list[tuple[int, int]]] = {name: [] for name in self.buffers}
        for i, layer in enumerate(chain.layers):
            for j, value in enumerate(layer.inputs):
                home = chain.home(value.name)
                if home in self.readers and chain.windows[i][j] is not None:
                    self.readers[home].append((i, j))
        self.needed = dict.fromkeys(self.buffers, 0)
        self.steps: list[list[Event]] = [[]]
        self.living: set[frozenset[str]] = set()

    def run(self) -> Schedule:
        last = len(self.layers) - 1
        while self.done[last] < self.heights[last]:
            self._compute(last, min(self.bands[last], self.heights[last] - self.done[last]))
            if self.chain.fed is None:
                self.steps.append([])
        for i, layer in enumerate(self.layers):  # what others read as a whole
            if layer.outputs[0].name not in self.chain.inside:
                self._ensure(layer.outputs[0].name, self.heights[i])
        self._rest_of_fed()
        steps = [step for step in self.steps if step]
        return Schedule(steps, {name: b.capacity for name, b in self.buffers.items()}, self._beside())

    def _rest_of_fed(self) -> None:
        """Receives the rows at the end that no window reaches."""
        fed = self.chain.fed
        if fed is None:
            return
        missing = fed.info.shape[1] - self.buffers[fed.name].high
        if missing:
            self._event(ReceiveRows(-1, missing))

    def _event(self, event: Event) -> None:
        self.steps[-1].append(event)
        if isinstance(event, ReceiveRows):
            self.steps.append([])

    def _compute(self, i: int, rows: int) -> None:
        """Computes the next rows of a layer, after all that they read, and notes what of its inputs is still needed."""
        layer, windows = self.layers[i], self.chain.windows[i]
        first = self.done[i]
        last = first + rows
        spans = tuple(WHOLE if window is None else window.rows(first, last) for window in windows)
        for value, span in zip(layer.inputs, spans, strict=True):
            self._ensure(value.name, span.end)
        output = layer.outputs[0].name
        target = self.chain.home(output)
        if target in self.buffers and output not in self.chain.merged.values():  # otherwise it has its input's
            self._room(target, rows)
        places = [
            self._place(self.chain.home(value.name), span.begin)
            for value, span in zip(layer.inputs, spans, strict=True)
        ]
        self._event(ComputeRows(i, first, last, spans, (*places, self._place(target, first))))
        self._note(layer)
        self.done[i] = last
        for home in {self.chain.home(value.name) for value in layer.inputs} & self.needed.keys():
            self.needed[home] = min((self._next(i, j) for i, j in self.readers[home]), default=NEVER)

    def _place(self, home: str, row: int) -> int:
        return row - self.buffers[home].low if home in self.buffers else row

    def _ensure(self, name: str, row: int) -> None:
        """Computes or receives the rows of a value before ``row`` that are missing."""
        if name not in self.producer:
            if self.chain.fed is not None and name == self.chain.fed.name:
                self._receive(row)
            return
        i = self.producer[name]
        while self.done[i] < row:
            self._compute(i, min(self.bands[i], row - self.done[i]))

    def _receive(self, row: int) -> None:
        assert self.chain.fed is not None
        buffer = self.buffers[self.chain.fed.name]
        if buffer.high < row:
            rows = row - buffer.high
            held = self._room(self.chain.fed.name, rows)
            self._event(ReceiveRows(held, rows))
            self._note(None)

    def _room(self, name: str, rows: int) -> int:
        """Makes room for new rows behind those that somebody still reads, which move to the front and are counted."""
        buffer = self.buffers[name]
        low = max(buffer.low, min(buffer.high, self.needed[name]))
        held = buffer.high - low
        if held and low > buffer.low:
            self._event(MoveRows(name, low - buffer.low, held))
        buffer.low = low
        buffer.capacity = max(buffer.capacity, held + rows)
        buffer.high += rows
        return held

    def _next(self, i: int, j: int) -> int:
        """The first row of its input j that layer i will still read."""
        window = self.chain.windows[i][j]
        if window is None or self.done[i] >= self.heights[i]:
            return NEVER
        return window.begin(self.done[i])

    def _note(self, layer: Layer | None) -> None:
        """Notes which buffers hold something while the layer computes: its own, and those with readers to come."""
        used = {self.chain.home(v.name) for v in (*layer.inputs, *layer.outputs)} if layer else {self._fed_name}
        holding = {name for name, buffer in self.buffers.items() if self.needed[name] < buffer.high}
        living = (used & self.buffers.keys()) | holding
        self.living.add(frozenset(living | ({scratch_name(layer)} if layer else set())))

    @property
    def _fed_name(self) -> str:
        return self.chain.fed.name if self.chain.fed is not None else ""

    def _beside(self) -> dict[str, set[str]]:
        names = {name for living in self.living for name in living}
        return {name: set().union(*(living for living in self.living if name in living)) - {name} for name in names}


# Which layers can run together by rows, and how their values lie.

Windows = tuple[Reach | None, ...]


class Chains:
    """Finds the chains of consecutive layers of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.windows = [windows_of(layer) for layer in program.layers]
        self.last_read: dict[str, int] = {}
        for layer in program.layers:
            self.last_read |= dict.fromkeys((value.name for value in layer.inputs), layer.index)
        after = len(program.layers)
        self.last_read |= {value.name: after for value in program.outputs}
        self.last_read |= {
            value.name: after for entry in program.state for value in (entry.before, entry.after) if value
        }
        self.reads = Counter(value.name for layer in program.layers for value in layer.inputs)

    def of(self, first: int, last: int, fed: Value | None = None) -> RowChain | None:
        """The chain of the layers ``first`` to ``last``; None where they cannot run together. All must be computable by
        rows, nothing made in the chain may be read as a whole there, and each layer but the last must give something to
        another."""
        layers = self.program.layers[first : last + 1]
        windows = [self.windows[layer.index] for layer in layers]
        if any(window is None for window in windows):
            return None
        known = tuple(window for window in windows if window is not None)
        made = {layer.outputs[0].name for layer in layers}
        for layer, of_layer in zip(layers, known, strict=True):
            for value, window in zip(layer.inputs, of_layer, strict=True):
                if window is None and (value.name in made or value == fed):
                    return None
        if fed is not None and any(v != fed and v in self.program.inputs for layer in layers for v in layer.inputs):
            return None  # rows come when the others may not be there yet
        inside = frozenset(name for name in made if self.last_read.get(name, last + 1) <= last)
        if layers[-1].outputs[0].name in inside or not _joined(layers):
            return None
        return RowChain(layers, known, inside, self._merged(layers, known, inside), fed)

    @cached_property
    def feedable(self) -> Value | None:
        """The first input that can come by rows, to a chain that begins with the first layer."""
        count = len(self.program.layers)
        of_each = ((value, (self.of(0, last, value) for last in range(count))) for value in self.program.inputs)
        return next((value for value, chains in of_each if any(chains)), None)

    def _merged(self, layers: Sequence[Layer], windows: Sequence[Windows], inside: frozenset[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for layer, of_layer in zip(layers, windows, strict=True):
            output = layer.outputs[0]
            for index in layer.kernel.inplace:
                value = layer.inputs[index]
                fits = value.name in inside and self.reads[value.name] == 1 and of_layer[index] is not None
                if fits and is_elementwise(layer) and row_bytes(value.info) == row_bytes(output.info):
                    found[value.name] = output.name
                    break
        return found


def is_elementwise(layer: Layer) -> bool:
    return layer.applied is not None and layer.applied.operator.elementwise in (Elementwise.FIRST, Elementwise.EACH)


def _joined(layers: Sequence[Layer]) -> bool:
    """Whether each layer but the last gives something to another."""
    read = {value.name for layer in layers for value in layer.inputs}
    return all(layer.outputs[0].name in read for layer in layers[:-1])


def bands_of(chain: RowChain, band: int) -> tuple[int, ...]:
    """How many rows each layer computes at once: ``band`` for the layer with the most rows, others in proportion."""
    rows = {chain.layers[-1].outputs[0].name: Fraction(1)}
    for layer, windows in zip(reversed(chain.layers), reversed(chain.windows), strict=True):
        own = rows.setdefault(layer.outputs[0].name, Fraction(1))
        for value, window in zip(layer.inputs, windows, strict=True):
            if window is not None:
                rows[value.name] = max(rows.get(value.name, Fraction(0)), own * window.scale)
    made = [layer.outputs[0] for layer in chain.layers]
    most = max(rows[value.name] for value in made)
    return tuple(min(max(1, int(band * rows[value.name] / most)), value.info.shape[1]) for value in made)


# What rows are expected to take: the kernels' calls, the rows that move, and the dispatch of both.

MOVED: Final = 0.75  # The cost of each byte that moves within a buffer or comes in.
DISPATCH: Final = 30.0  # The cost of each event of a schedule.
# What a call takes for each channel of its output, where the kernel's cost was never measured: Helium's kernels prepare
# each channel anew.
CHANNEL: Final[Mapping[str, float]] = {"arm_helium": 40.0}
