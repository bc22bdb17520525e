"""LSTM in float over a sequence of vectors: its C is printed from its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.lstm import GATES
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops


@dataclass(frozen=True)
class LstmFloatAttrs(Attributes):
    """``time_major`` as of ``lstm``; ``cell_clip`` 0 means none."""

    time_major: int
    cell_clip: float


@register
class LstmFloat(IntegerOperator[LstmFloatAttrs]):
    """Gates and results as of ``lstm``."""

    name = "lstm_float"
    arguments = ("input", "hidden", "cell", "weights", "recurrent_weights", "bias")

    def infer(self, inputs: Sequence[TensorInfo], attrs: LstmFloatAttrs) -> tuple[TensorInfo, ...]:
        data, hidden, cell, weights, recurrent, bias = inputs
        require(len(data.shape) == 3, f"lstm: input {data}, wanted rank 3")
        depth, units = data.shape[2], bias.shape[1]
        require(weights.shape == (4, units, depth), f"lstm: weights {weights} do not fit {data} and {units} units")
        require(recurrent.shape == (4, units, units), f"lstm: recurrent weights {recurrent} for {units} units")
        for state in (hidden, cell):
            fits = state.elements == data.shape[1 if attrs.time_major else 0] * units
            require(fits, f"lstm: state {state} for {units} units of {data}")
        return TensorInfo((*data.shape[:2], units), data.dtype), hidden, cell

    def meaning(self, inputs: Sequence[Any], attrs: LstmFloatAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        outputs = [(result.shape, result.dtype) for result in self.infer(infos, attrs)]
        data, units = infos[0], infos[5].shape[1]
        steps, batch = data.shape[:2] if attrs.time_major else data.shape[1::-1]

        def write(*arrays: Any) -> None:
            """In vectors of input and output, the one of a step lies at batch * stride + step * other stride."""
            given, first_hidden, first_cell, weights, recurrent, bias, output, hidden, cell = arrays
            gates = local_array(len(GATES) * units, data.dtype)
            with count_to(batch * units) as i:
                hidden[i] = first_hidden[i]
                cell[i] = first_cell[i]
            with count_to(batch) as b, count_to(steps) as t:
                vector = t * batch + b if attrs.time_major else b * steps + t
                with count_to(len(GATES) * units) as row:
                    kept = _sum(hidden, b * units, recurrent, row, units, tirx.const(0, data.dtype))
                    gates[row] = _sum(given, vector * data.shape[2], weights, row, data.shape[2], bias[row]) + kept
                with count_to(units) as u:
                    at = b * units + u
                    into, forget, update, show = (gates[number * units + u] for number in range(len(GATES)))
                    total = _sigmoid(forget) * cell[at] + _sigmoid(into) * tirx.tanh(update)
                    cell[at] = computed_once(_clipped(computed_once(total), attrs.cell_clip))
                    hidden[at] = computed_once(_sigmoid(show) * tirx.tanh(cell[at]))
                    output[vector * units + u] = hidden[at]

        return written_by_loops(outputs, list(inputs), write, self.name)

    def macs(self, site: Site[LstmFloatAttrs]) -> int:
        data = site.operands[0].info
        return data.shape[0] * data.shape[1] * (site.operands[3].info.elements + site.operands[4].info.elements)


def _sum(vector: Any, start: Any, matrix: Any, row: Any, depth: int, first: Any) -> Any:
    """Of products of a vector with a row of a matrix."""
    total = local_array(1, "float32")
    total[0] = first
    with count_to(depth) as k:
        total[0] = total[0] + vector[start + k] * matrix[row * depth + k]
    return total[0]


def _sigmoid(value: Any) -> Any:
    one = tirx.const(1, "float32")
    return one / (one + tirx.exp(-value))


def _clipped(value: Any, clip: float) -> Any:
    if not clip:
        return value
    return tirx.max(tirx.min(value, tirx.const(clip, "float32")), tirx.const(-clip, "float32"))
