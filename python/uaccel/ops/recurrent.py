"""LSTM, GRU and simple recurrent layers in float over a sequence of vectors: C is printed from their meaning.

Weights may be integers with a scale for each row; they become real numbers where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, written_by_loops


class Cell(str, Enum):
    """What a step computes."""

    LSTM = "lstm"
    GRU = "gru"
    RNN = "rnn"


GATES: Final[Mapping[Cell, int]] = {Cell.LSTM: 4, Cell.GRU: 3, Cell.RNN: 1}
"""Of an LSTM input, forget, update and output; of a GRU update, reset and candidate."""
SQUASHED: Final[Mapping[Cell, tuple[str, ...]]] = {
    Cell.LSTM: ("sigmoid", "tanh", "tanh"),
    Cell.GRU: ("sigmoid", "tanh"),
    Cell.RNN: ("tanh",),
}
"""The functions that are usual: of gates, of what is proposed, of what an LSTM shows."""


@dataclass(frozen=True)
class RecurrentAttrs(Attributes):
    """``functions`` are names of ``FUNCTIONS``, with spaces between. ``clip`` bounds what goes into them, ``cell_clip``
    an LSTM's cell; 0 means none. ``reset_after``: a GRU resets the product, not the hidden state before it.
    ``peepholes``, ``projected`` and ``measured`` say which arguments there are."""

    cell: str
    time_major: int
    functions: str
    reverse: int = 0
    clip: float = 0.0
    cell_clip: float = 0.0
    reset_after: int = 0
    peepholes: int = 0
    projected: int = 0
    measured: int = 0


@register
class Recurrent(IntegerOperator[RecurrentAttrs]):
    """What every step shows, and the states after the last.

    ``bias`` has a row for each gate; of a GRU that resets the product one more, for what is reset. ``scales``, of
    integer weights alone, are those of all rows of ``weights`` and then of ``recurrent_weights``. ``projection`` makes
    an LSTM's hidden state of what its cells show. Behind the last of ``lengths`` steps a sequence shows zeros.
    """

    name = "recurrent"
    arguments = (
        *("input", "hidden", "cell", "weights", "recurrent_weights"),
        *("bias", "peepholes", "projection", "lengths", "scales"),
    )
    variadic = True

    def infer(self, inputs: Sequence[TensorInfo], attrs: RecurrentAttrs) -> tuple[TensorInfo, ...]:
        names, known = attrs.functions.split(), attrs.cell in [*Cell]
        fit = known and len(names) == len(SQUASHED[Cell(attrs.cell)]) and all(name in FUNCTIONS for name in names)
        require(fit, f"a recurrent layer {attrs.cell!r} with {attrs.functions!r}, which is none that there is")
        named = _named(inputs, attrs)
        data, bias, gates = named["input"], named["bias"], GATES[Cell(attrs.cell)]
        require(len(data.shape) == 3, f"{attrs.cell}: input {data}, wanted rank 3")
        depth, units, batch = data.shape[2], bias.shape[1], data.shape[1 if attrs.time_major else 0]
        shown = _shown(named)
        states = [(named[name], width) for name, width in (("hidden", shown), ("cell", units)) if name in named]
        for state, width in states:
            require(state.elements == batch * width, f"{attrs.cell}: state {state} for {width} units of {data}")
        extras = {"projection": (shown, units), "lengths": (batch,)}
        for name in extras.keys() & named.keys():
            require(named[name].shape == extras[name], f"{attrs.cell}: {name} {named[name]}, wanted {extras[name]}")
        for name, width in (("weights", depth), ("recurrent_weights", shown)):
            wanted = (gates, units, width)
            require(named[name].shape == wanted, f"{attrs.cell}: {name} {named[name]}, wanted {list(wanted)}")
        require(bias.shape[0] == gates + attrs.reset_after, f"{attrs.cell}: bias {bias} for {gates} gates")
        return (TensorInfo((*data.shape[:2], shown), data.dtype), *(state for state, _ in states))

    def meaning(self, inputs: Sequence[Any], attrs: RecurrentAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        named = _named(infos, attrs)
        outputs = [(result.shape, result.dtype) for result in self.infer(infos, attrs)]
        data, units, shown = named["input"], named["bias"].shape[1], _shown(named)
        steps, batch = data.shape[:2] if attrs.time_major else data.shape[1::-1]

        def write(*arrays: Any) -> None:
            """In vectors of input and output, the one of a step lies at batch * stride + step * other stride."""
            given, (output, *states) = _named(arrays[: len(inputs)], attrs), arrays[len(inputs) :]
            for state, name in zip(states, ("hidden", "cell"), strict=False):
                with count_to(named[name].elements) as i:
                    state[i] = given[name][i]
            step = _Step(attrs, given, states, data.shape[2], units, shown, data.dtype)
            with count_to(batch) as b, count_to(steps) as t:

                def vector(time: Any) -> Any:
                    return time * batch + b if attrs.time_major else b * steps + time

                def write_step(length: Any) -> None:
                    at = computed_once(vector(length - 1 - t if attrs.reverse else t))
                    step.write(b, at)
                    with count_to(shown) as u:
                        output[at * shown + u] = states[0][b * shown + u]

                if not attrs.measured:
                    write_step(steps)
                    return
                length = computed_once(tirx.min(tirx.Cast("int32", given["lengths"][b]), steps))
                with where(t < length):
                    write_step(length)
                with where(t >= length), count_to(shown) as u:
                    output[vector(t) * shown + u] = tirx.const(0, data.dtype)

        return written_by_loops(outputs, list(inputs), write, attrs.cell)

    def macs(self, site: Site[RecurrentAttrs]) -> int:
        named = _named([operand.info for operand in site.operands], site.attrs)
        steps: int = named["input"].shape[0] * named["input"].shape[1]
        matrices = [named[name] for name in ("weights", "recurrent_weights", "projection") if name in named]
        products: int = sum(matrix.elements for matrix in matrices)
        return steps * products


def _named(values: Sequence[Any], attrs: RecurrentAttrs) -> dict[str, Any]:
    """The arguments; which there are depends on the attributes, but for scales, which are the last."""
    left_out = {"cell"} if attrs.cell != Cell.LSTM else set()
    switches = {"peepholes": attrs.peepholes, "projection": attrs.projected, "lengths": attrs.measured}
    left_out |= {name for name, given in switches.items() if not given}
    return dict(zip([name for name in Recurrent.arguments if name not in left_out], values, strict=False))


def _shown(named: Mapping[str, TensorInfo]) -> int:
    """How many numbers a step shows."""
    projection = named.get("projection")
    return named["bias"].shape[1] if projection is None else projection.shape[0]


FUNCTIONS: Final[Mapping[str, Callable[[Any, Callable[[float], Any]], Any]]] = {
    "sigmoid": lambda value, number: number(1) / (number(1) + tirx.exp(-value)),
    "tanh": lambda value, number: tirx.tanh(value),
    "relu": lambda value, number: tirx.max(value, number(0)),
    "hard_sigmoid": lambda value, number: tirx.max(number(0), tirx.min(number(1), number(0.2) * value + number(0.5))),
}
"""Of a value, and of what makes constants of its type."""


@dataclass(frozen=True)
class _Step:
    """One step of one sequence: ``given`` are the arguments as arrays, ``states`` what it changes."""

    attrs: RecurrentAttrs
    given: Mapping[str, Any]
    states: Sequence[Any]
    depth: int
    units: int
    shown: int
    dtype: str

    def write(self, sequence: Any, vector: Any) -> None:
        """Of the sequence of a number; ``vector``: the number of the input's vector."""
        if self.attrs.cell == Cell.LSTM:
            self._lstm(sequence, vector)
        else:
            (self._gru if self.attrs.cell == Cell.GRU else self._rnn)(sequence * self.units, vector)

    def _lstm(self, sequence: Any, vector: Any) -> None:
        hidden, cell = self.states
        gates, at, first = self._local(4), sequence * self.units, sequence * self.shown
        with count_to(4 * self.units) as row:
            gates[row] = self._given(vector, row) + self._kept(hidden, first, row)
        shows, start = (self._local(1), 0) if self.attrs.projected else (hidden, first)
        with count_to(self.units) as u:
            into, forget, update, show = (gates[gate * self.units + u] for gate in range(4))
            before = computed_once(cell[at + u])
            kept = self._function(0, self._peeped(forget, 2, u, before)) * before
            total = kept + self._function(0, self._peeped(into, 0, u, before)) * self._function(1, update)
            cell[at + u] = computed_once(self._clipped(computed_once(total), self.attrs.cell_clip))
            after = cell[at + u]
            shown = self._function(0, self._peeped(show, 1, u, after)) * self._function(2, after, clipped=False)
            shows[start + u] = computed_once(shown)
        if self.attrs.projected:
            with count_to(self.shown) as p:
                hidden[first + p] = self._product(shows, 0, "projection", p, self.units)

    def _gru(self, at: Any, vector: Any) -> None:
        (hidden,) = self.states
        gates, reset, units = self._local(2), self._local(1), self.units
        with count_to(2 * units) as row:
            gates[row] = self._function(0, self._given(vector, row) + self._kept(hidden, at, row))
        with count_to(units) as u:
            kept = hidden[at + u]
            if self.attrs.reset_after:
                kept = self.given["bias"][3 * units + u] + self._kept(hidden, at, 2 * units + u)
            reset[u] = gates[units + u] * kept
        candidates = self._local(1)
        with count_to(units) as u:
            row = 2 * units + u
            kept = reset[u] if self.attrs.reset_after else self._kept(reset, 0, row)
            candidates[u] = self._function(1, self._given(vector, row) + kept)
        with count_to(units) as u:
            update = gates[u]
            hidden[at + u] = computed_once((self._number(1) - update) * candidates[u] + update * hidden[at + u])

    def _rnn(self, at: Any, vector: Any) -> None:
        (hidden,) = self.states
        shown = self._local(1)
        with count_to(self.units) as row:
            shown[row] = self._function(0, self._given(vector, row) + self._kept(hidden, at, row))
        with count_to(self.units) as u:
            hidden[at + u] = shown[u]

    def _given(self, vector: Any, row: Any) -> Any:
        """What the input adds to a row of the gates, with its bias."""
        return self.given["bias"][row] + self._sum(self.given["input"], vector * self.depth, "weights", row, self.depth)

    def _kept(self, hidden: Any, at: Any, row: Any) -> Any:
        return self._sum(hidden, at, "recurrent_weights", row, self.shown)

    def _sum(self, vector: Any, start: Any, name: str, row: Any, depth: int) -> Any:
        """Of products of a vector with a row of a matrix, which may be integers."""
        total = self._product(vector, start, name, row, depth)
        if self._scales is None:
            return total
        first = 0 if name == "weights" else GATES[Cell(self.attrs.cell)] * self.units
        return total * self._scales[first + row]

    def _product(self, vector: Any, start: Any, name: str, row: Any, depth: int) -> Any:
        total = local_array(1, self.dtype)
        total[0] = self._number(0)
        with count_to(depth) as k:
            weight = self.given[name][row * depth + k].astype(self.dtype)
            total[0] = total[0] + vector[start + k] * weight
        return total[0]

    @property
    def _scales(self) -> Any | None:
        return self.given.get("scales")

    def _peeped(self, value: Any, kind: int, unit: Any, cell: Any) -> Any:
        """With what a gate sees of the cell; ``kind`` is 0 of the input gate, 1 of the output gate, 2 of the third."""
        seen = self.given["peepholes"][kind * self.units + unit] * cell if self.attrs.peepholes else None
        return value if seen is None else computed_once(value + seen)

    def _function(self, place: int, value: Any, *, clipped: bool = True) -> Any:
        name = self.attrs.functions.split()[place]
        bounded = self._clipped(value, self.attrs.clip) if clipped else value
        return FUNCTIONS[name](computed_once(bounded), self._number)

    def _clipped(self, value: Any, clip: float) -> Any:
        return tirx.max(tirx.min(value, self._number(clip)), self._number(-clip)) if clip else value

    def _local(self, rows: int) -> Any:
        return local_array(rows * self.units, self.dtype)

    def _number(self, value: float) -> Any:
        return tirx.const(value, self.dtype)
