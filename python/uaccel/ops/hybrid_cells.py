"""Defines the steps of recurrent layers of floats whose weights are bytes.

The hidden state becomes bytes in each step, by its own range. The inputs of all steps are multiplied before, by
``hybrid_fully_connected``. A step needs the state that the one before made, so the meaning is loops, and C is printed
from it: it does not grow with the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.conv_float import FLOAT
from uaccel.ops.hybrid import BYTE, MOST_TAPS, quantize_row
from uaccel.ops.operator import Attributes, ByLoops, Infos, Site, require
from uaccel.ops.recurrent import FUNCTIONS, GATES, LSTM
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let


class HybridCellsAttrs(Attributes):
    """``cell`` and ``functions`` are those of ``RecurrentAttrs``; ``symmetric`` as in ``QuantizeRowsAttrs``."""

    cell: str
    time_major: int
    functions: str
    symmetric: int
    cell_clip: float = 0.0


class HybridCells(ByLoops[HybridCellsAttrs]):
    """Computes the hidden state of every step, and the states after the last: hidden, and the cell of an LSTM.

    ``given`` has the gates' sums of the inputs, with their bias. Rows of ``weights`` are bytes times their factor.
    """

    name = "hybrid_cells"
    arguments = ("given", "weights", "factors", "hidden", "cell")
    variadic = True

    def infer(self, attrs: HybridCellsAttrs, *inputs: TensorInfo) -> tuple[TensorInfo, ...]:
        given, weights, factors, *states = inputs
        fits = len(given.shape) == 3 and len(weights.shape) == 2 and weights.dtype == BYTE
        require(fits, f"{self.name}: {given} and {weights}, wanted {FLOAT} of rank 3 and {BYTE} of rank 2")
        (width, units), batch = weights.shape, given.shape[1 if attrs.time_major else 0]
        require(width == GATES[attrs.cell] * units == given.shape[2], f"{self.name}: {weights} do not fit {given}")
        require(units <= MOST_TAPS, f"{self.name}: sums of {units} products may overflow 32 bits")
        require(factors == TensorInfo((width,), FLOAT), f"{self.name}: factors {factors} for {width} rows")
        wanted = [TensorInfo((batch, units), FLOAT)] * (2 if attrs.cell == LSTM else 1)
        require(states == wanted, f"{self.name}: states {', '.join(map(str, states))}, wanted {wanted[0]}")
        return (TensorInfo((*given.shape[:2], units), FLOAT), *states)

    def write(self, infos: Infos, attrs: HybridCellsAttrs, *arrays: Any) -> None:
        given, weights, factors = arrays[:3]
        before, (output, *states) = arrays[3 : len(infos)], arrays[len(infos) :]
        (outer, inner, width), units = infos[0].shape, infos[1].shape[1]
        steps, batch = (outer, inner) if attrs.time_major else (inner, outer)
        values, sums = local_array(units, BYTE), local_array(width, FLOAT)
        for state, first in zip(states, before, strict=True):
            with count_to(batch * units) as i:
                state[i] = first[i]
        with count_to(batch) as b, count_to(steps) as t:
            vector = te_let(t * batch + b if attrs.time_major else b * steps + t)
            scale, zero_point = quantize_row(states[0], b * units, values, 0, units, attrs.symmetric)
            with count_to(width) as row:
                total = local_array(1, "int32")
                total[0] = exact.const(0, "int32")
                with count_to(units) as k:
                    total[0] = total[0] + (exact.i32(values[k]) - zero_point) * exact.i32(weights[row * units + k])
                kept = te_let(total[0].astype(FLOAT) * te_let(scale * factors[row]))
                sums[row] = given[vector * width + row] + kept
            with count_to(units) as u:
                states[0][b * units + u] = _shown(attrs, sums, states, b * units, u, units)
                output[vector * units + u] = states[0][b * units + u]

    def macs(self, site: Site[HybridCellsAttrs]) -> int:
        given, weights = (operand.info for operand in site.operands[:2])
        return given.shape[0] * given.shape[1] * weights.elements


def _shown(attrs: HybridCellsAttrs, sums: Any, states: Sequence[Any], at: Any, unit: Any, units: int) -> Any:
    """What a unit shows after a step; an LSTM's cell changes before."""
    functions = [FUNCTIONS[name] for name in attrs.functions.split()]

    def squashed(place: int, value: Any) -> Any:
        return te_let(functions[place](te_let(value), exact.real))

    if attrs.cell != LSTM:
        return squashed(0, sums[unit])
    into, forget, update, show = (sums[gate * units + unit] for gate in range(4))
    cell, clip = states[1], attrs.cell_clip
    kept = te_let(squashed(0, forget) * cell[at + unit])
    total = te_let(kept + te_let(squashed(0, into) * squashed(1, update)))
    cell[at + unit] = tirx.max(tirx.min(total, exact.real(clip)), exact.real(-clip)) if clip else total
    return squashed(0, show) * squashed(2, cell[at + unit])
