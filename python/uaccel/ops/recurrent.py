"""Defines recurrent layers: float LSTM, GRU and simple cells of ONNX and PyTorch, and the integer LSTM of TFLite.

Each step needs the state that the one before made, so meanings are loops over batch and steps instead of TE reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.activation import POINTS, Curve, Logistic16, Tanh16, table_argument
from uaccel.ops.conv import folded_bias
from uaccel.ops.kernel import Constant, Input, Kernel, Output, Scratch, dtype_suffix, portable, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, where

# LSTM, GRU and simple recurrent layers in float over a sequence of vectors; their C is printed from their meaning.
#
# Weights may be integers with a scale for each row; a row's sum of products is multiplied by its scale.

LSTM, GRU, RNN = "lstm", "gru", "rnn"  # What a step computes, as attributes name it.
# How many gates a cell has: input, forget, update and output of an LSTM; update, reset and candidate of a GRU.
GATES: Final[Mapping[str, int]] = {LSTM: 4, GRU: 3, RNN: 1}
# The usual functions, in their order: of the gates, of the candidate, of the cell state that an LSTM puts out.
SQUASHED: Final[Mapping[str, tuple[str, ...]]] = {
    LSTM: ("sigmoid", "tanh", "tanh"),
    GRU: ("sigmoid", "tanh"),
    RNN: ("tanh",),
}


class RecurrentAttrs(Attributes):
    """``functions`` are names of ``FUNCTIONS``, with spaces between. ``clip`` bounds their arguments, ``cell_clip`` an
    LSTM's cell; 0 means none. ``reset_after``: a GRU's reset gate multiplies the recurrent product, not the hidden
    state before it. ``peepholes``, ``projected`` and ``measured`` say whether there are peepholes, a projection and
    lengths among the arguments."""

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


class Recurrent(IntegerOperator[RecurrentAttrs]):
    """Computes the hidden state of every step, and the states after the last.

    ``bias`` has a row for each gate; a GRU with ``reset_after`` has one more, for the product that is reset.
    ``scales``, with integer weights alone, are those of all rows of ``weights`` and then of ``recurrent_weights``.
    ``projection`` makes an LSTM's hidden state of its cells' outputs. Behind the last of ``lengths`` steps the output
    is zero. A reversed sequence is read from its last step to its first.
    """

    name = "recurrent"
    arguments = (
        *("input", "hidden", "cell", "weights", "recurrent_weights"),
        *("bias", "peepholes", "projection", "lengths", "scales"),
    )
    variadic = True

    def infer(self, attrs: RecurrentAttrs, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        names, known = attrs.functions.split(), attrs.cell in GATES
        fit = known and len(names) == len(SQUASHED[attrs.cell]) and all(name in FUNCTIONS for name in names)
        require(fit, f"a recurrent layer {attrs.cell!r} with {attrs.functions!r}, which is none that there is")
        named = _named(inputs, attrs)
        data, bias, gates = named["input"], named["bias"], GATES[attrs.cell]
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

    def meaning(self, attrs: RecurrentAttrs, *inputs: Any) -> Any:
        named = _named(list(map(exact.info, inputs)), attrs)
        data, units, shown = named["input"], named["bias"].shape[1], _shown(named)
        steps, batch = data.shape[:2] if attrs.time_major else data.shape[1::-1]

        def write(*arrays: Any) -> None:
            """Runs the steps on states that are outputs, so that they last beyond the loops."""
            given, (output, *states) = _named(arrays[: len(inputs)], attrs), arrays[len(inputs) :]
            for state, name in zip(states, ("hidden", "cell"), strict=False):
                with count_to(named[name].elements) as i:
                    state[i] = given[name][i]
            step = _Step(attrs, given, states, data.shape[2], units, shown, data.dtype)
            with count_to(batch) as b, count_to(steps) as t:

                def vector(time: Any) -> Any:
                    return time * batch + b if attrs.time_major else b * steps + time

                def write_step(length: Any) -> None:
                    at = te_let(vector(length - 1 - t if attrs.reverse else t))
                    step.write(b, at)
                    with count_to(shown) as u:
                        output[at * shown + u] = states[0][b * shown + u]

                if not attrs.measured:
                    write_step(steps)
                    return
                length = te_let(tirx.min(tirx.Cast("int32", given["lengths"][b]), steps))
                with where(t < length):
                    write_step(length)
                with where(t >= length), count_to(shown) as u:
                    output[vector(t) * shown + u] = tirx.const(0, data.dtype)

        return self.by_loops(inputs, attrs, write, attrs.cell)

    def macs(self, site: Site[RecurrentAttrs]) -> int:
        named = _named([operand.info for operand in site.operands], site.attrs)
        steps: int = named["input"].shape[0] * named["input"].shape[1]
        matrices = [named[name] for name in ("weights", "recurrent_weights", "projection") if name in named]
        products: int = sum(matrix.elements for matrix in matrices)
        return steps * products


def _named(values: Sequence[Any], attrs: RecurrentAttrs) -> dict[str, Any]:
    """The arguments by name; the attributes tell which there are, but for scales, which are the last if at all."""
    left_out = {"cell"} if attrs.cell != LSTM else set()
    switches = {"peepholes": attrs.peepholes, "projection": attrs.projected, "lengths": attrs.measured}
    left_out |= {name for name, given in switches.items() if not given}
    return dict(zip([name for name in Recurrent.arguments if name not in left_out], values, strict=False))


def _shown(named: Mapping[str, TensorInfo]) -> int:
    """The width of the hidden state, which is what a step puts out."""
    projection = named.get("projection")
    return named["bias"].shape[1] if projection is None else projection.shape[0]


# The functions take a value, and a function that makes constants of its type.
FUNCTIONS: Final[Mapping[str, Callable[[Any, Callable[[float], Any]], Any]]] = {
    "sigmoid": lambda value, number: number(1) / (number(1) + tirx.exp(-value)),
    "tanh": lambda value, number: tirx.tanh(value),
    "identity": lambda value, number: value,
    "relu": lambda value, number: tirx.max(value, number(0)),
    "relu6": lambda value, number: tirx.max(tirx.min(value, number(6)), number(0)),
    "relu_n1_to_1": lambda value, number: tirx.max(tirx.min(value, number(1)), number(-1)),
    "hard_sigmoid": lambda value, number: tirx.max(number(0), tirx.min(number(1), number(0.2) * value + number(0.5))),
}


@dataclass(frozen=True)
class _Step:
    """Writes one step of one sequence: ``given`` are the arguments as arrays, ``states`` the arrays it changes."""

    attrs: RecurrentAttrs
    given: Mapping[str, Any]
    states: Sequence[Any]
    depth: int
    units: int
    shown: int
    dtype: str

    def write(self, sequence: Any, vector: Any) -> None:
        """Writes the step of sequence number ``sequence``; ``vector`` is the number of the input's vector."""
        if self.attrs.cell == LSTM:
            self._lstm(sequence, vector)
        else:
            (self._gru if self.attrs.cell == GRU else self._rnn)(sequence * self.units, vector)

    def _lstm(self, sequence: Any, vector: Any) -> None:
        """Sums all gates before any state changes: every row reads the whole hidden state of the step before.

        The output gate's peephole sees the new cell state, the other two see the old one.
        """
        hidden, cell = self.states
        gates, at, first = self._local(4), sequence * self.units, sequence * self.shown
        with count_to(4 * self.units) as row:
            gates[row] = self._given(vector, row) + self._kept(hidden, first, row)
        shows, start = (self._local(1), 0) if self.attrs.projected else (hidden, first)
        with count_to(self.units) as u:
            into, forget, update, show = (gates[gate * self.units + u] for gate in range(4))
            before = te_let(cell[at + u])
            kept = self._function(0, self._peeped(forget, 2, u, before)) * before
            total = kept + self._function(0, self._peeped(into, 0, u, before)) * self._function(1, update)
            cell[at + u] = te_let(self._clipped(te_let(total), self.attrs.cell_clip))
            after = cell[at + u]
            shown = self._function(0, self._peeped(show, 1, u, after)) * self._function(2, after, clipped=False)
            shows[start + u] = te_let(shown)
        if self.attrs.projected:
            with count_to(self.shown) as p:
                hidden[first + p] = self._product(shows, 0, "projection", p, self.units)

    def _gru(self, at: Any, vector: Any) -> None:
        """Computes both gates, what is reset, and all candidates before the hidden state changes that they read."""
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
            hidden[at + u] = te_let((self._number(1) - update) * candidates[u] + update * hidden[at + u])

    def _rnn(self, at: Any, vector: Any) -> None:
        (hidden,) = self.states
        shown = self._local(1)
        with count_to(self.units) as row:
            shown[row] = self._function(0, self._given(vector, row) + self._kept(hidden, at, row))
        with count_to(self.units) as u:
            hidden[at + u] = shown[u]

    def _given(self, vector: Any, row: Any) -> Any:
        """The input's part of a row of the gates, with its bias."""
        return self.given["bias"][row] + self._sum(self.given["input"], vector * self.depth, "weights", row, self.depth)

    def _kept(self, hidden: Any, at: Any, row: Any) -> Any:
        return self._sum(hidden, at, "recurrent_weights", row, self.shown)

    def _sum(self, vector: Any, start: Any, name: str, row: Any, depth: int) -> Any:
        """The sum of products of a vector with a row of a matrix, times the row's scale if weights are integers."""
        total = self._product(vector, start, name, row, depth)
        scales, first = self.given.get("scales"), 0 if name == "weights" else GATES[self.attrs.cell] * self.units
        return total if scales is None else total * scales[first + row]

    def _product(self, vector: Any, start: Any, name: str, row: Any, depth: int) -> Any:
        total = local_array(1, self.dtype)
        total[0] = self._number(0)
        with count_to(depth) as k:
            weight = self.given[name][row * depth + k].astype(self.dtype)
            total[0] = total[0] + vector[start + k] * weight
        return total[0]

    def _peeped(self, value: Any, kind: int, unit: Any, cell: Any) -> Any:
        """Adds what a gate sees of the cell; ``kind`` is 0 for the input gate, 1 for output, 2 for forget."""
        seen = self.given["peepholes"][kind * self.units + unit] * cell if self.attrs.peepholes else None
        return value if seen is None else te_let(value + seen)

    def _function(self, place: int, value: Any, *, clipped: bool = True) -> Any:
        name = self.attrs.functions.split()[place]
        bounded = self._clipped(value, self.attrs.clip) if clipped else value
        return FUNCTIONS[name](te_let(bounded), self._number)

    def _clipped(self, value: Any, clip: float) -> Any:
        return tirx.max(tirx.min(value, self._number(clip)), self._number(-clip)) if clip else value

    def _local(self, rows: int) -> Any:
        return local_array(rows * self.units, self.dtype)

    def _number(self, value: float) -> Any:
        return tirx.const(value, self.dtype)


# TFLite's integer LSTM over a sequence of vectors: gates of 16 bits, and a state that the next sequence goes on from.

LSTM_GATES = ("input", "forget", "cell", "output")
# Multiplier and right shift from a gate's sum, in units of 1/4096, to the logistic table's units of 1 / (3 * 4096).
GATE_SCALE = (3, 0)


class LstmAttrs(Attributes):
    """The input is [batch, steps, depth], or [steps, batch, depth] where ``time_major`` is 1.

    Multipliers and shifts scale products: ``keep_...`` forget gate times cell state, ``take_...`` input gate times cell
    gate, ``give_...`` output gate times tanh of the cell state, which ``tanh_...`` brings to the table's units.
    ``cell_clip`` 0 means none.
    """

    time_major: int
    input_zero_point: int
    hidden_zero_point: int
    cell_clip: int
    keep_multiplier: int
    keep_shift: int
    take_multiplier: int
    take_shift: int
    give_multiplier: int
    give_shift: int
    tanh_multiplier: int
    tanh_right_shift: int


class Lstm(IntegerOperator[LstmAttrs]):
    """Computes output, hidden state and cell state. Gates are in the order input, forget, cell, output: weights
    [4, units, depth], recurrent weights [4, units, units], bias [4, units], scales [4, 4] with the multiplier and shift
    of the input's and of the hidden state's sums."""

    name = "lstm"
    arguments = ("input", "hidden", "cell", "weights", "recurrent_weights", "bias", "scales", "points")

    def infer(self, attrs: LstmAttrs, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        data, hidden, cell, weights, recurrent, bias, scales, points = inputs
        require(len(data.shape) == 3, f"lstm: input {data}, wanted rank 3")
        depth, units = data.shape[2], bias.shape[1]
        require(weights.shape == (4, units, depth), f"lstm: weights {weights} do not fit {data} and {units} units")
        require(recurrent.shape == (4, units, units), f"lstm: recurrent weights {recurrent} for {units} units")
        require(scales.shape == (4, 4) and points.shape == (POINTS,), f"lstm: scales {scales}, table {points}")
        for state in (hidden, cell):
            require(state.elements == _batch(data, attrs) * units, f"lstm: state {state} for {units} units of {data}")
        require(hidden.dtype == data.dtype and cell.dtype == "int16", f"lstm: states {hidden} and {cell} for {data}")
        return TensorInfo((*data.shape[:2], units), data.dtype), hidden, cell

    def meaning(self, attrs: LstmAttrs, *inputs: Any) -> Any:
        return self.by_loops(inputs, attrs, _Steps(attrs, exact.info(inputs[0]), exact.info(inputs[5])).write)

    def kernels(self, site: Site[LstmAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        weights, recurrent, bias, scales, points = (operand.value for operand in site.operands[3:])
        steps = _Steps(attrs, data, site.operands[5].info)
        low, high = exact.limits(data.dtype)
        parameters = {
            "batch": steps.batch,
            "steps": steps.count,
            "depth": steps.depth,
            "units": steps.units,
            "batch_stride": steps.batch_stride,
            "step_stride": steps.step_stride,
            "hidden_zero_point": attrs.hidden_zero_point,
            "hidden_min": low,
            "hidden_max": high,
            **same(attrs, "cell_clip", "keep_multiplier", "keep_shift", "take_multiplier", "take_shift"),
            **same(attrs, "give_multiplier", "give_shift", "tanh_multiplier", "tanh_right_shift"),
        }
        constants = (
            *(Constant("weights", weights), Constant("recurrent_weights", recurrent)),
            Constant("bias", folded_bias(bias, weights, attrs.input_zero_point)),
            Constant("recurrent_bias", folded_bias(np.zeros_like(bias), recurrent, attrs.hidden_zero_point)),
            *(Constant("scales", scales), Constant("points", points)),
        )
        arguments = (Input(0), Input(1), Input(2), *constants, Output(0), Output(1), Output(2), Scratch())
        function, gates = f"uaccel_lstm_{dtype_suffix(data.dtype)}", len(LSTM_GATES) * steps.units * 2
        return [portable(function, "uaccel_lstm", parameters, arguments, scratch=gates, updates=((1, 1), (2, 2)))]

    def macs(self, site: Site[LstmAttrs]) -> int:
        data = site.operands[0].info
        each = site.operands[3].info.elements + site.operands[4].info.elements
        return data.shape[0] * data.shape[1] * each


def _batch(data: TensorInfo, attrs: LstmAttrs) -> int:
    return data.shape[1] if attrs.time_major else data.shape[0]


class _Steps:
    """Writes the exact meaning as loops: each step needs the state that the one before made."""

    def __init__(self, attrs: LstmAttrs, data: TensorInfo, bias: TensorInfo) -> None:
        self.attrs = attrs
        self.dtype, self.sum_dtype = data.dtype, bias.dtype
        self.batch, self.count = _batch(data, attrs), data.shape[0 if attrs.time_major else 1]
        self.depth, self.units = data.shape[2], bias.shape[1]
        self.batch_stride = 1 if attrs.time_major else self.count
        self.step_stride = self.batch if attrs.time_major else 1

    def write(self, *arrays: Any) -> None:
        """Computes all gates of a step from the hidden state before it, then cell, hidden state and output.

        The vector of a step lies at batch * batch_stride + step * step_stride in input and output.
        """
        data, first_hidden, first_cell, weights, recurrent, bias, scales, points, output, hidden, cell = arrays
        gates = local_array(len(LSTM_GATES) * self.units, "int16")
        with count_to(self.batch * self.units) as i:
            hidden[i] = first_hidden[i]
            cell[i] = first_cell[i]
        with count_to(self.batch) as b, count_to(self.count) as t:
            vector = b * self.batch_stride + t * self.step_stride
            for number, name in enumerate(LSTM_GATES):
                with count_to(self.units) as u:
                    row = number * self.units + u
                    zero = exact.const(self.attrs.input_zero_point, self.sum_dtype)
                    given = self._sum(data, vector * self.depth, zero, weights, row, self.depth, bias[row])
                    point = exact.const(self.attrs.hidden_zero_point, self.sum_dtype)
                    none = exact.const(0, self.sum_dtype)
                    kept = self._sum(hidden, b * self.units, point, recurrent, row, self.units, none)
                    total = self._scaled(given, scales, number, 0) + self._scaled(kept, scales, number, 2)
                    curve = Tanh16.curve if name == "cell" else Logistic16.curve
                    gates[row] = _curve(curve, points, exact.clamp(total, -32768, 32767), *GATE_SCALE)
            with count_to(self.units) as u:
                at = b * self.units + u
                cell[at] = self._new_cell(gates, cell[at], u)
                hidden[at] = self._new_hidden(gates, cell[at], u, points)
                output[vector * self.units + u] = hidden[at]

    def _sum(self, vector: Any, start: Any, zero: Any, matrix: Any, row: Any, depth: int, first: Any) -> Any:
        """The sum of products of a vector, less its zero point, with a row of a matrix; it begins with ``first``."""
        total = local_array(1, self.sum_dtype)
        total[0] = first
        with count_to(depth) as k:
            value = vector[start + k].astype(self.sum_dtype) - zero
            total[0] = total[0] + value * matrix[row * depth + k].astype(self.sum_dtype)
        return total[0]

    def _scaled(self, total: Any, scales: Any, gate: int, part: int) -> Any:
        """A sum in units of 2**-12, clamped to 16 bits."""
        requantize = exact.requantize_wide if self.sum_dtype == "int64" else exact.requantize
        multiplier, shift = (te_let(scales[4 * gate + part + i]) for i in (0, 1))
        scaled = te_let(requantize(te_let(total), multiplier, shift))
        return te_let(exact.clamp(exact.wrap32(exact.i64(scaled)), -32768, 32767))

    def _new_cell(self, gates: Any, before: Any, unit: Any) -> Any:
        attrs, (into, forget, update, _) = self.attrs, self._of(gates, unit)
        kept = _product(forget, before, attrs.keep_multiplier, attrs.keep_shift)
        taken = _product(into, update, attrs.take_multiplier, attrs.take_shift)
        total = te_let(exact.clamp(kept, -32768, 32767) + exact.clamp(taken, -32768, 32767))
        total = te_let(exact.clamp(total, -32768, 32767))
        clip = attrs.cell_clip
        return (exact.clamp(total, -clip, clip) if clip else total).astype("int16")

    def _new_hidden(self, gates: Any, cell: Any, unit: Any, points: Any) -> Any:
        attrs = self.attrs
        shown = _curve(Tanh16.curve, points, cell, attrs.tanh_multiplier, attrs.tanh_right_shift)
        given = _product(shown, self._of(gates, unit)[3], attrs.give_multiplier, attrs.give_shift)
        return exact.finish(given, attrs.hidden_zero_point, *exact.limits(self.dtype), self.dtype)

    def _of(self, gates: Any, unit: Any) -> list[Any]:
        return [gates[number * self.units + unit] for number in range(len(LSTM_GATES))]


def _product(one: Any, other: Any, multiplier: int, shift: int) -> Any:
    product = te_let(exact.i32(one) * exact.i32(other))
    return te_let(exact.requantize_const(product, multiplier, shift))


def _curve(curve: Curve, points: Any, value: Any, multiplier: int, right_shift: int) -> Any:
    scaled = te_let(table_argument(te_let(value), multiplier, right_shift))
    magnitude = te_let(tirx.abs(scaled))
    return te_let(curve.output(scaled, te_let(curve.interpolate(lambda index: points[index], magnitude))))
