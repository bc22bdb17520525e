"""LSTM over a sequence of vectors: integer gates of 16 bits, and a state that the next sequence goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.kernel import Constant, Input, Kernel, Output, Scratch, dtype_suffix, portable, same
from uaccel.ops.sigmoid16 import POINTS, Curve, Logistic16, Tanh16, table_argument
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops

GATES = ("input", "forget", "cell", "output")
GATE_SCALE = (3, 0)
"""From a gate's sum, in units of 2**-12, to those of the table of the logistic function."""


@dataclass(frozen=True)
class LstmAttrs(Attributes):
    """Input [batch, steps, depth], or [steps, batch, depth] where ``time_major`` is 1.

    ``keep_...``: forget gate times cell state; ``take_...``: input gate times cell gate; ``give_...``: output gate
    times tanh of the cell state, which ``tanh_...`` brings to the table's units. ``cell_clip`` 0 means none.
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


@register
class Lstm(IntegerOperator[LstmAttrs]):
    """Gates in the order input, forget, cell, output: weights [4, units, depth], recurrent weights [4, units, units],
    bias [4, units], scales [4, 4] with the multiplier and shift of the input's and of the hidden state's sums.
    Results: output, hidden state and cell state afterwards."""

    name = "lstm"
    arguments = ("input", "hidden", "cell", "weights", "recurrent_weights", "bias", "scales", "points")

    def infer(self, inputs: Sequence[TensorInfo], attrs: LstmAttrs) -> tuple[TensorInfo, ...]:
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

    def meaning(self, inputs: Sequence[Any], attrs: LstmAttrs) -> Any:
        results = self.infer([exact.info(tensor) for tensor in inputs], attrs)
        steps = _Steps(attrs, exact.info(inputs[0]), exact.info(inputs[5]))
        outputs = [(result.shape, result.dtype) for result in results]
        return written_by_loops(outputs, list(inputs), steps.write, self.name)

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
            Constant("bias", _folded(bias, weights, attrs.input_zero_point)),
            Constant("recurrent_bias", _folded(np.zeros_like(bias), recurrent, attrs.hidden_zero_point)),
            *(Constant("scales", scales), Constant("points", points)),
        )
        arguments = (Input(0), Input(1), Input(2), *constants, Output(0), Output(1), Output(2), Scratch())
        function = f"uaccel_lstm_{dtype_suffix(data.dtype)}"
        gates = len(GATES) * steps.units * 2
        updates = ((1, 1), (2, 2))
        return [portable(function, "uaccel_lstm", parameters, arguments, scratch=gates, updates=updates)]

    def macs(self, site: Site[LstmAttrs]) -> int:
        data = site.operands[0].info
        each = site.operands[3].info.elements + site.operands[4].info.elements
        return data.shape[0] * data.shape[1] * each


def _batch(data: TensorInfo, attrs: LstmAttrs) -> int:
    return data.shape[1] if attrs.time_major else data.shape[0]


def _folded(bias: Array, weights: Array, zero_point: int) -> Array:
    """The bias with what the zero point takes from every sum, wrapped as the sums are."""
    wide = bias.astype(np.int64) - zero_point * weights.astype(np.int64).sum(axis=2)
    return np.asarray(wide.astype(bias.dtype))


class _Steps:
    """The exact meaning as loops: each step needs the state that the one before made."""

    def __init__(self, attrs: LstmAttrs, data: TensorInfo, bias: TensorInfo) -> None:
        self.attrs = attrs
        self.dtype, self.sum_dtype = data.dtype, bias.dtype
        self.batch, self.count = _batch(data, attrs), data.shape[0 if attrs.time_major else 1]
        self.depth, self.units = data.shape[2], bias.shape[1]
        self.batch_stride = 1 if attrs.time_major else self.count
        self.step_stride = self.batch if attrs.time_major else 1

    def write(self, *arrays: Any) -> None:
        """In vectors of the input and the output: the one of a step of a batch entry lies at batch * batch_stride +
        step * step_stride."""
        data, first_hidden, first_cell, weights, recurrent, bias, scales, points, output, hidden, cell = arrays
        gates = local_array(len(GATES) * self.units, "int16")
        with count_to(self.batch * self.units) as i:
            hidden[i] = first_hidden[i]
            cell[i] = first_cell[i]
        with count_to(self.batch) as b, count_to(self.count) as t:
            vector = b * self.batch_stride + t * self.step_stride
            for number, name in enumerate(GATES):
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
        """Of products of a vector with a row of a matrix."""
        total = local_array(1, self.sum_dtype)
        total[0] = first
        with count_to(depth) as k:
            value = vector[start + k].astype(self.sum_dtype) - zero
            total[0] = total[0] + value * matrix[row * depth + k].astype(self.sum_dtype)
        return total[0]

    def _scaled(self, total: Any, scales: Any, gate: int, part: int) -> Any:
        """In units of 2**-12, clamped to 16 bits."""
        requantize = exact.requantize_wide if self.sum_dtype == "int64" else exact.requantize
        multiplier, shift = (computed_once(scales[4 * gate + part + i]) for i in (0, 1))
        scaled = computed_once(requantize(computed_once(total), multiplier, shift))
        return computed_once(exact.clamp(_wrapped(scaled), -32768, 32767))

    def _new_cell(self, gates: Any, before: Any, unit: Any) -> Any:
        attrs, (into, forget, update, _) = self.attrs, self._of(gates, unit)
        kept = _product(forget, before, attrs.keep_multiplier, attrs.keep_shift)
        taken = _product(into, update, attrs.take_multiplier, attrs.take_shift)
        total = computed_once(exact.clamp(kept, -32768, 32767) + exact.clamp(taken, -32768, 32767))
        total = computed_once(exact.clamp(total, -32768, 32767))
        clip = attrs.cell_clip
        return (exact.clamp(total, -clip, clip) if clip else total).astype("int16")

    def _new_hidden(self, gates: Any, cell: Any, unit: Any, points: Any) -> Any:
        attrs = self.attrs
        shown = _curve(Tanh16.curve, points, cell, attrs.tanh_multiplier, attrs.tanh_right_shift)
        given = _product(shown, self._of(gates, unit)[3], attrs.give_multiplier, attrs.give_shift)
        return exact.finish(given, attrs.hidden_zero_point, *exact.limits(self.dtype), self.dtype)

    def _of(self, gates: Any, unit: Any) -> list[Any]:
        return [gates[number * self.units + unit] for number in range(len(GATES))]


def _wrapped(value: Any) -> Any:
    return exact.wrap32(exact.i64(value))


def _product(one: Any, other: Any, multiplier: int, shift: int) -> Any:
    product = computed_once(exact.i32(one) * exact.i32(other))
    return computed_once(exact.requantize_const(product, multiplier, shift))


def _curve(curve: Curve, points: Any, value: Any, multiplier: int, right_shift: int) -> Any:
    scaled = computed_once(table_argument(computed_once(value), multiplier, right_shift))
    magnitude = computed_once(tirx.abs(scaled))
    return computed_once(curve.output(scaled, computed_once(curve.interpolate(lambda index: points[index], magnitude))))
