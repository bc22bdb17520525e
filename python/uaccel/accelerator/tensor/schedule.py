"""Builds the loops of a tiled layer on a tensor machine: which piece is loaded, multiplied and stored when, and where.

Bounds and addresses are expressions over loop variables. So one schedule can be written as C, and can be run here to
find its time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Union

from uaccel.accelerator.tensor.machine import MEMORIES, PARAMETERS_PER_CHANNEL, WORD, Tiled

# Integer expressions over loop variables: written as C, evaluated here. Constant ones fold to a plain int.

Value = Union[int, "Term"]

OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,  # operands are never negative, so that C rounds alike
    "<": operator.lt,
    "min": min,
    "max": max,
}
PRECEDENCE: Final = {"*": 3, "/": 3, "+": 2, "-": 2, "<": 1, "min": 0, "max": 0}
ATOM: Final = 9


@dataclass(frozen=True)
class Term:
    """Holds ``left operation right``, or a variable: then ``operation`` is its name and both sides are 0."""

    operation: str
    left: Value = 0
    right: Value = 0

    def __add__(self, other: Value) -> Value:
        if isinstance(other, int):
            return self._moved(other)
        return Term("+", self, other)

    def __radd__(self, other: int) -> Value:
        return self if other == 0 else Term("+", other, self)

    def __sub__(self, other: Value) -> Value:
        if isinstance(other, int):
            return self._moved(-other)
        return 0 if other == self else Term("-", self, other)

    def __rsub__(self, other: int) -> Value:
        return Term("-", other, self)

    def __mul__(self, other: Value) -> Value:
        if other in (0, 1):
            return self if other == 1 else 0
        if self.operation == "*" and isinstance(self.right, int) and isinstance(other, int):
            return Term("*", self.left, self.right * other)
        return Term("*", self, other)

    __rmul__ = __mul__

    def _moved(self, by: int) -> Value:
        """This term with a number added; one that was added before is joined with it."""
        base: Value = self
        if self.operation in ("+", "-") and isinstance(self.right, int):
            base, by = self.left, by + (self.right if self.operation == "+" else -self.right)
        return base if by == 0 else Term("+" if by > 0 else "-", base, abs(by))

    @property
    def is_variable(self) -> bool:
        return self.operation not in OPERATIONS

    @property
    def precedence(self) -> int:
        return PRECEDENCE.get(self.operation, ATOM)

    def __str__(self) -> str:
        if self.is_variable:
            return self.operation
        if self.operation in ("min", "max"):
            left, right = within(self.left, PRECEDENCE["+"]), within(self.right, PRECEDENCE["+"])
            return f"{left} {'<' if self.operation == 'min' else '>'} {right} ? {left} : {right}"
        right = within(self.right, self.precedence + (self.operation != "+"))
        return f"{within(self.left, self.precedence)} {self.operation} {right}"


def within(value: Value, precedence: int) -> str:
    """The text of a value, in parentheses where it binds less tightly than ``precedence``."""
    text = str(value)
    binds = value.precedence if isinstance(value, Term) else ATOM if value >= 0 else PRECEDENCE["-"]
    return text if binds >= precedence else f"({text})"


def _made(operation: str, left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return int(OPERATIONS[operation](left, right))
    return Term(operation, left, right)


def smaller(left: Value, right: Value) -> Value:
    return _made("min", left, right)


def larger(left: Value, right: Value) -> Value:
    return _made("max", left, right)


def divided(left: Value, right: Value) -> Value:
    return left if right == 1 else _made("/", left, right)


def less(left: Value, right: Value) -> Value:
    """1 if the left value is smaller, else 0."""
    return _made("<", left, right)


def units(value: Value, unit: int) -> Value:
    """The value divided by ``unit``, rounded up."""
    return divided(value + unit - 1, unit)


def evaluate(value: Value, variables: Mapping[str, int]) -> int:
    if isinstance(value, int):
        return value
    if value.is_variable:
        return variables[value.operation]
    made = OPERATIONS[value.operation](evaluate(value.left, variables), evaluate(value.right, variables))
    return int(made)


# The statements of a schedule: loops over commands. They can be written as C, or run here to see each command.


@dataclass(frozen=True)
class Let:
    """Declares a name for a value; ``variable``: it is assigned again later."""

    name: str
    value: Value
    variable: bool = False


@dataclass(frozen=True)
class Assign:
    """Assigns another value to a variable; ``why`` is for the reader."""

    name: str
    value: Value
    why: str


@dataclass(frozen=True)
class Loop:
    """Runs ``body`` with ``name`` from 0 to below ``stop``."""

    name: str
    stop: Value
    step: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class When:
    """Runs ``body`` if ``condition`` is not 0."""

    condition: Value
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Command:
    """Calls an intrinsic with its arguments in order; text stands for a pointer or a memory."""

    intrinsic: str
    arguments: Mapping[str, Value | str]


Statement = Let | Assign | Loop | When | Command


@dataclass(frozen=True)
class Issued:
    """Holds a command that is given to the machine, with its arguments evaluated."""

    intrinsic: str
    numbers: Mapping[str, int]
    names: Mapping[str, str]


def run(statements: Sequence[Statement], variables: dict[str, int] | None = None) -> Iterator[Issued]:
    """The commands in the order in which they are given."""
    known: dict[str, int] = {} if variables is None else variables
    for statement in statements:
        if isinstance(statement, Command):
            items = statement.arguments.items()
            numbers = {name: evaluate(value, known) for name, value in items if not isinstance(value, str)}
            yield Issued(statement.intrinsic, numbers, {n: value for n, value in items if isinstance(value, str)})
        elif isinstance(statement, Loop):
            for value in range(0, evaluate(statement.stop, known), statement.step):
                known[statement.name] = value
                yield from run(statement.body, known)
        elif isinstance(statement, When):
            if evaluate(statement.condition, known):
                yield from run(statement.body, known)
        else:
            known[statement.name] = evaluate(statement.value, known)


# The loops of a tiled layer: which piece is loaded, multiplied and stored when, and where it lies on chip.
#
# Commands are given in the order in which data depend on them: load, multiply, store. Each engine runs ahead as far as
# the banks allow, so pieces that alternate between the two banks of a memory make the engines overlap.

Body = list[Statement]
INPUT, WEIGHTS, PARAMETERS, OUTPUT = "input", "weights", "parameters", "output"


def schedule(tiled: Tiled) -> Body:
    """The statements between the driver's ``begin`` and its ``finish``."""
    return _Schedule(tiled).statements()


def loop(name: str, stop: Value, step: int, body: Callable[[Value], Body]) -> Body:
    """Makes a loop, or its body alone where it runs once, or nothing."""
    if isinstance(stop, int) and stop <= step:
        return body(0) if stop > 0 else []
    return [Loop(name, stop, step, tuple(body(Term(name))))]


def when(condition: Value, body: Body) -> Body:
    if isinstance(condition, int):
        return body if condition else []
    return [When(condition, tuple(body))]


def named(name: str, value: Value, into: Body) -> Value:
    """Gives a value a name, declared in ``into``, unless it is a number or a name already."""
    if isinstance(value, int) or value.is_variable:
        return value
    into.append(Let(name, value))
    return Term(name)


def piece(name: str, start: Value, step: int, stop: int, into: Body) -> Value:
    """The size of the piece that begins at ``start``: a constant unless the last piece is smaller."""
    if stop <= step or stop % step == 0:
        return min(step, stop)
    return named(name, smaller(step, stop - start), into)


class _Schedule:
    """Builds the statements. ``at`` holds where the current piece begins, and how large it is. ``places``: the offset
    of the current piece in each memory, a variable where pieces alternate between banks."""

    def __init__(self, tiled: Tiled) -> None:
        self.tiled, self.layer, self.tiling, self.machine = tiled, tiled.layer, tiled.tiling, tiled.machine
        self.at: dict[str, Value] = {}
        self.places: dict[str, Value] = {
            memory: Term(f"{memory}_at") if tiled.is_double_buffered(memory) else 0 for memory in MEMORIES
        }

    def statements(self) -> Body:
        layer = self.layer
        places = [Let(str(place), 0, variable=True) for place in self.places.values() if isinstance(place, Term)]
        finish: dict[str, Value | str] = {
            "zero_point": layer.output_zero_point,
            "clamp_min": layer.clamp_min,
            "clamp_max": layer.clamp_max,
        }
        if self.machine.single:
            finish["single"] = int(layer.single)
        made: Body = [*places, Command("output", finish)]
        if not self.tiled.is_split:
            made.append(self.window(layer.in_channels, self.pitch(layer.in_channels)))
        return made + loop("group", layer.groups, 1, self.group)

    def group(self, group: Value) -> Body:
        self.at["group"] = group
        if self.tiling.weights_stay:
            return self.channels(lambda: self.pixels(self.sums))
        return self.pixels(lambda: self.channels(self.sums))

    def channels(self, inner: Callable[[], Body]) -> Body:
        """Loops over the pieces of the output channels."""

        def body(channel: Value) -> Body:
            made: Body = []
            channels = piece("channels", channel, self.tiled.channels, self.layer.out_channels, made)
            blocks = named("blocks", units(channels, self.machine.columns), made)
            self.at |= {"channel": channel, "channels": channels, "blocks": blocks}
            made += self.load_parameters()
            if not self.tiled.is_split:
                made += self.load_weights(0)
            return made + inner()

        return loop("channel", self.layer.out_channels, self.tiled.channels, body)

    def pixels(self, inner: Callable[[], Body]) -> Body:
        """Loops over the images, and the pieces of the output's rows and columns."""
        layer, tiling = self.layer, self.tiling

        def image(number: Value) -> Body:
            self.at["image"] = number
            return loop("row", layer.output.rows, tiling.rows, row)

        def row(first: Value) -> Body:
            made: Body = []
            self.at |= {"row": first, "rows": piece("rows", first, tiling.rows, layer.output.rows, made)}
            self.window_of(0, "top", "in_rows", first, self.at["rows"], made)
            return made + loop("column", layer.output.columns, tiling.columns, column)

        def column(first: Value) -> Body:
            made: Body = []
            self.at |= {"column": first, "columns": piece("columns", first, tiling.columns, layer.output.columns, made)}
            self.window_of(1, "left", "in_columns", first, self.at["columns"], made)
            if not self.tiled.is_split:
                made += self.load_input(0, layer.in_channels, self.pitch(layer.in_channels))
            return made + inner()

        return loop("image", layer.output.images, 1, image)

    def window_of(self, axis: int, edge: str, count: str, first: Value, outputs: Value, into: Body) -> None:
        """Sets where the input of a piece begins along an axis, and how much of it exists: the rest is padding.
        ``edge`` is the first row or column, ``skip_...`` the padding before it, ``count`` those that exist, and
        ``all_...`` those that the tile has with padding."""
        layer = self.layer
        window = layer.window
        stride, dilation, kernel = window.strides[axis], window.dilation[axis], window.kernel[axis]
        start = named(edge, first * stride - window.padding[axis], into)
        wanted: Value = (outputs - 1) * stride + ((kernel - 1) * dilation + 1)
        if not layer.is_padded(axis):
            there = named(count, wanted, into)
            self.at |= {edge: start, f"skip_{edge}": 0, count: there, f"all_{count}": there}
            return
        wanted = named(f"all_{count}", wanted, into)
        inside = named(f"first_{edge}", larger(start, 0), into)
        end = named(f"end_{edge}", smaller(start + wanted, (layer.input.rows, layer.input.columns)[axis]), into)
        self.at |= {edge: inside, f"skip_{edge}": inside - start, f"all_{count}": wanted}
        self.at[count] = named(count, larger(end - inside, 0), into)

    def turn(self, memory: str) -> Body:
        """Switches to the other bank for the next piece: the offset becomes ``bank_bytes`` less itself."""
        place = self.places[memory]
        if isinstance(place, int):
            return []
        return [Assign(str(place), self.machine.memory(memory).bank_bytes - place, "the other bank")]

    def load(self, memory: str, offset: Value, pitch: Value, rest: dict[str, Value | str]) -> Command:
        """Loads into the current piece's place; ``rest``: source, offset in it, stride, rows, bytes."""
        place = self.places[memory] + offset
        return Command("load", {"memory": memory, "offset": place, "pitch": pitch, **rest})

    def load_parameters(self) -> Body:
        unit = self.machine.parameter_bytes
        all_blocks = self.tiled.blocks(self.layer.out_channels)
        at = self.at["group"] * (all_blocks * unit) + self.at["channel"] * (PARAMETERS_PER_CHANNEL * WORD)
        size = self.at["blocks"] * unit
        return [*self.turn("parameters"), self.load_constant("parameters", PARAMETERS, at, size)]

    def load_constant(self, memory: str, constant: str, at: Value, size: Value) -> Command:
        source: dict[str, Value | str] = {"from": constant, "at": at, "stride": size, "rows": 1, "bytes": size}
        return self.load(memory, 0, size, source)

    def load_weights(self, first: Value) -> Body:
        """Loads a piece of the weights, which are packed in the order of the loops: group, channels, depth. All pieces
        before this one in its group and channels are whole, so its offset follows from its first channels."""
        tiled, machine = self.tiled, self.machine
        made, blocks = self.turn("weights"), self.at["blocks"]
        depth = self.depth(first)
        size = blocks * self.weight_bytes(depth)
        at = self.at["group"] * tiled.group_weight_bytes + self.at["channel"] * (
            tiled.channel_weight_bytes // machine.columns
        )
        at = at + blocks * (first * (tiled.weight_bytes(self.tiled.depth) // self.tiled.depth))
        size = named("weight_bytes", size, made)
        return [*made, self.load_constant("weights", WEIGHTS, at, size)]

    def depth(self, first: Value) -> Value:
        return piece("depth", first, self.tiled.depth, self.layer.in_channels, [])

    def weight_bytes(self, depth: Value) -> Value:
        """Bytes of the weights of one block of channels."""
        return self.steps(depth) * (self.layer.window.kernel[0] * self.tiled.kernel_columns * self.machine.block_bytes)

    def steps(self, depth: Value) -> Value:
        return units(depth * self.tiled.run_pixels, self.machine.depth)

    def pitch(self, depth: Value) -> Value:
        """Bytes from one pixel of the input tile to the next."""
        alignment = self.machine.activations.alignment
        return units(depth, alignment) * alignment

    def load_input(self, first: Value, depth: Value, pitch: Value) -> Body:
        layer, at = self.layer, self.at
        made = self.turn("activations")
        row_pitch = pitch * self.tiled.row_pixels
        if layer.is_padded(0) or layer.is_padded(1):
            partly = less(at["in_rows"] * at["in_columns"], at["all_in_rows"] * at["all_in_columns"])
            size = at["all_in_rows"] * row_pitch
            fill: dict[str, Value | str] = {"memory": "activations", "offset": self.places["activations"]}
            made += when(partly, [Command("fill", fill | {"bytes": size, "value": layer.input_zero_point})])
        offset = at["skip_top"] * row_pitch + at["skip_left"] * pitch
        shape, stride = layer.input, layer.input.row_pitch
        line = at["image"] * shape.rows + at["top"]
        start = (line * shape.columns + at["left"]) * shape.channels + at["group"] * layer.in_channels + first
        if isinstance(pitch, int) and depth == pitch == shape.channels:  # Not one of several groups, rounded up.
            size, rows = at["in_columns"] * pitch, at["in_rows"]
            whole: dict[str, Value | str] = {"from": INPUT, "at": start, "stride": stride, "rows": rows, "bytes": size}
            return [*made, self.load("activations", offset, row_pitch, whole)]

        def one_row(line: Value) -> Body:
            there = {"from": INPUT, "at": start + line * stride, "stride": shape.channels}
            rest = there | {"rows": at["in_columns"], "bytes": depth}
            return [self.load("activations", offset + line * row_pitch, pitch, rest)]

        return made + loop("line", at["in_rows"], 1, one_row)

    def sums(self) -> Body:
        """Computes one piece of the output: all that it depends on, then the output stage."""
        made = self.turn("accumulators")
        made += loop("first", self.layer.in_channels, self.tiled.depth, self.part_of_sums)
        return made + self.store()

    def part_of_sums(self, first: Value) -> Body:
        made: Body = []
        depth = piece("depth", first, self.tiled.depth, self.layer.in_channels, made)
        if self.tiled.is_split:
            pitch = named("pitch", self.pitch(depth), made)
            made += self.load_weights(first) + self.load_input(first, depth, pitch)
            made.append(self.window(depth, pitch))
        multiply: dict[str, Value | str] = {
            **{memory: self.places[memory] for memory in ("accumulators", "activations", "weights")},
            "rows": self.at["rows"],
            "columns": self.at["columns"],
            "blocks": self.at["blocks"],
            "add": less(0, first),
        }
        return [*made, Command("multiply", multiply)]

    def window(self, depth: Value, pitch: Value) -> Command:
        window, tiled = self.layer.window, self.tiled
        row_pitch = pitch * tiled.row_pixels
        return Command(
            "window",
            {
                "kernel_rows": window.kernel[0],
                "kernel_columns": tiled.kernel_columns,
                "run": depth * tiled.run_pixels,
                "kernel_row_pitch": row_pitch * window.dilation[0],
                "kernel_column_pitch": pitch * window.dilation[1],
                "row_pitch": row_pitch * window.strides[0],
                "column_pitch": pitch * window.strides[1],
            },
        )

    def store(self) -> Body:
        layer, at = self.layer, self.at
        line = at["image"] * layer.output.rows + at["row"]
        channel = at["group"] * layer.out_channels + at["channel"]
        start = (line * layer.output.columns + at["column"]) * layer.output.channels + channel

        def stored(offset: Value, accumulators: Value, pixels: Value) -> Command:
            where: dict[str, Value | str] = {"to": OUTPUT, "at": offset, "stride": layer.output.channels}
            place = self.places["accumulators"] + accumulators
            what = {"accumulators": place, "parameters": self.places["parameters"], "pixels": pixels}
            return Command("store", where | what | {"channels": at["channels"]})

        if self.tiling.columns >= layer.output.columns:
            return [stored(start, 0, at["rows"] * at["columns"])]
        pitch = at["columns"] * at["blocks"] * self.machine.pixel_bytes
        stride = layer.output.row_pitch
        return loop("line", at["rows"], 1, lambda n: [stored(start + n * stride, n * pitch, at["columns"])])


def constants_bytes(tiled: Tiled) -> tuple[int, int]:
    """The bytes of the packed weights, and of the packed parameters."""
    groups, blocks = tiled.layer.groups, tiled.blocks(tiled.layer.out_channels)
    return groups * tiled.group_weight_bytes, groups * blocks * tiled.machine.parameter_bytes
