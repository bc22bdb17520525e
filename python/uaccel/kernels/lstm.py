"""Offers LSTM of int8 and int16 vectors, by the dot products or fully connected kernels of a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels import arm_dsp_conv, arm_dsp_int16, arm_helium_conv, arm_helium_int16
from uaccel.kernels.output_stage import pad_axis
from uaccel.kernels.registry import DeclinedError, check_type, offers
from uaccel.kernels.weight_packing import VECTOR, concat_words, pack_int16_pairs, vector_words
from uaccel.model import Array, TensorInfo
from uaccel.ops.activation import SATURATED
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.matmul import FullyConnectedAttrs
from uaccel.ops.operator import Operand, Site
from uaccel.ops.recurrent import Lstm, LstmAttrs

# LSTM of int8 vectors: the gates of a step are dot products, eight at a time, from one stream.

ROWS: Final = 8  # Gates at a time.
EVEN_FIRST: Final = (0, 2, 4, 6, 1, 3, 5, 7)
LARGEST_FACTOR: Final = 255  # Helium multiplies a cell state before its curve by 256 times this in 16 bits.
LARGEST_SUM: Final = 1 << 30  # Sums below it can be doubled, as the output stage takes them.

Ints = NDArray[np.int64]
Packer = Callable[[NDArray[np.int8], Ints, int, int], Ints]


@dataclass(frozen=True)
class LstmFamily:
    """Describes a family; ``suffix`` ends its functions.

    ``pack`` makes words of eights of gates over one vector, of rows of weights, biases, multiplier and shift.
    """

    name: str
    suffix: str
    requires: tuple[str, ...]  # Features of the CPU; empty: any CPU of a board.
    unit: int
    pack: Packer

    def filled(self, depth: int) -> int:
        return -(-depth // self.unit) * self.unit


def _dsp(weights: NDArray[np.int8], bias: Ints, multiplier: int, shift: int) -> Ints:
    """Packs eights of gates: S and B of each pair, the words of each two inputs, and the constants of `ends`."""
    words = pack_int16_pairs(pad_axis(weights, 1, 4), bias, ROWS)
    check_sums(weights, bias, shift)
    start = np.stack([256 * bias[0::2] + bias[1::2], bias[1::2]], axis=1).reshape(len(words), -1)
    return np.concatenate([start, words, ends(len(words), multiplier, shift)], axis=1)


def check_sums(weights: NDArray[np.int8], bias: Ints, shift: int) -> None:
    """Declines sums that cannot be doubled, also where a positive shift moves them left before."""
    reach = 128 * np.abs(weights.astype(np.int64)).sum(axis=1) + np.abs(bias)
    if reach.max() >= LARGEST_SUM >> max(0, shift):
        raise DeclinedError("a gate's sum may not fit 30 bits", "give it smaller biases or weights")


def ends(count: int, multiplier: int, shift: int) -> Ints:
    """Returns a row for each eight gates: the multiplier, the rounding's half or 0, the shift's magnitude."""
    return np.tile([multiplier, 1 << -shift >> 1 if shift < 0 else 0, abs(shift)], (count, 1))


def _helium(weights: NDArray[np.int8], bias: Ints, multiplier: int, shift: int) -> Ints:
    """Packs eights of gates: biases and the weights of each vector, even gates first; multiplier and shift."""
    order = (np.arange(0, len(bias), ROWS)[:, None] + EVEN_FIRST).ravel()
    words = vector_words(weights[order], ROWS)
    ends = np.tile([multiplier, shift], (len(words), 1))
    return np.concatenate([bias[order].reshape(-1, ROWS), words, ends], axis=1)


DSP: Final = LstmFamily("arm_dsp", "dsp", arm_dsp_conv.REQUIRES, 4, _dsp)
HELIUM: Final = LstmFamily("arm_helium", "helium", arm_helium_conv.REQUIRES, VECTOR, _helium)


def lstm_dots(site: Site[LstmAttrs], family: LstmFamily) -> Kernel:
    check_type(site, "int8")
    (portable,) = Lstm().kernels(site)
    (call,) = portable.calls
    constants = {part.role: part.data for part in call.arguments if isinstance(part, Constant)}
    stream = _stream(constants, family)
    units, depth = constants["weights"].shape[1:]
    filled = {"filled": family.filled(depth), "hidden_filled": family.filled(units)}
    parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
    states, results = (Input(0), Input(1), Input(2)), (Output(0), Output(1), Output(2), Scratch())
    return portable.by(
        family.name,
        family.requires,
        4 * 2 * -(-units // ROWS) * ROWS + sum(filled.values()),
        function=f"uaccel_lstm_s8_dots_{family.suffix}",
        header=f"uaccel_recurrent_{family.suffix}.h",
        struct="uaccel_lstm_dots",
        parameters=parameters | filled,
        arguments=(*states, Constant("stream", stream), last_twice(constants["points"]), *results),
    )


def _stream(constants: dict[str, Array], family: LstmFamily) -> NDArray[np.int32]:
    """Packs gate by gate, eight units by eight: the weights over the input, then those over the hidden state."""
    gates = []
    for gate, scales in enumerate(constants["scales"].tolist()):
        parts = []
        for role, multiplier, shift in (("", *scales[:2]), ("recurrent_", *scales[2:])):
            weights = pad_axis(constants[f"{role}weights"][gate], 0, ROWS)
            bias = pad_axis(constants[f"{role}bias"][gate].astype(np.int64), 0, ROWS)
            parts.append(family.pack(weights, bias, multiplier, shift))
        gates.append(np.concatenate(parts, axis=1))
    return concat_words(np.concatenate(gates)).reshape(-1)


def last_twice(points: Array) -> Constant:
    """Returns the table of the curves with its last point once more, for kernels that read the point behind."""
    return Constant("points", np.append(points, np.uint16(SATURATED)))


def curves_by_helium(attrs: LstmAttrs) -> bool:
    """Says whether Helium can scale eight cells' arguments of tanh in 16 bits."""
    if attrs.tanh_right_shift == 0:
        return attrs.tanh_multiplier <= LARGEST_FACTOR
    return attrs.tanh_multiplier == 3 and attrs.tanh_right_shift <= 15


# LSTM of int16 vectors: a step's gates are two fully connected layers of one row (over the input, over the hidden
# state), by the family's kernel for them.

Maker = Callable[[Site[FullyConnectedAttrs]], "Kernel | None"]


def lstm16(site: Site[LstmAttrs], family: LstmFamily, row: Maker) -> Kernel | None:
    """Makes the kernel of a family; ``row`` makes its fully connected layers."""
    check_type(site, "int16")
    (portable,) = Lstm().kernels(site)
    weights, recurrent, bias, scales, points = (operand.value for operand in site.operands[3:])
    given = row(_gates(weights, bias, scales[:, 0:2], site.attrs.input_zero_point))
    kept = row(_gates(recurrent, np.zeros_like(bias), scales[:, 2:4], site.attrs.hidden_zero_point))
    if given is None or kept is None:
        return None
    (call,), parts = portable.calls, {"given": given, "kept": kept}
    parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
    for part, kernel in parts.items():
        parameters |= {f"{part}.{name}": value for name, value in kernel.calls[0].parameters.items()}
    streams = [Constant(part, _int16_stream(kernel)) for part, kernel in parts.items()]
    states = (Input(0), Input(1), Input(2))
    results = (Output(0), Output(1), Output(2), Scratch())
    return portable.by(
        family.name,
        family.requires,
        2 * portable.scratch + max(given.scratch, kept.scratch, 2 * ROWS),
        function=f"uaccel_lstm_s16_{family.suffix}16",
        struct=f"uaccel_lstm_{family.suffix}16",
        parameters=parameters,
        arguments=(*states, *streams, last_twice(points), *results),
    )


def _gates(weights: Array, bias: Array, scales: Array, zero_point: int) -> Site[FullyConnectedAttrs]:
    """Makes all gates of one vector, in units of 2**-12, one fully connected layer."""
    _, units, depth = weights.shape
    multiplier, shift = (np.repeat(column, units).astype(np.int32) for column in scales.T)
    constants = (weights.reshape(-1, depth), bias.reshape(-1), multiplier, shift)
    operands = [Operand(TensorInfo(value.shape, value.dtype.name), value) for value in constants]
    data = Operand(TensorInfo((1, depth), "int16"))
    attrs = FullyConnectedAttrs(zero_point, 0, -(1 << 15), (1 << 15) - 1)
    return Site(attrs, (data, *operands), (TensorInfo((1, 4 * units), "int16"),))


def _int16_stream(kernel: Kernel) -> NDArray[np.int32]:
    """Joins all constants of a kernel, those of the widest type first, so that each is aligned."""
    arrays = [argument.data for argument in kernel.calls[0].arguments if isinstance(argument, Constant)]
    return np.concatenate([each.reshape(-1).view(np.int32) for each in sorted(arrays, key=lambda a: -a.itemsize)])


def _offer(
    family: LstmFamily, row: Maker, *ranks: int, fits: Callable[[LstmAttrs], bool] = lambda _attrs: True
) -> None:
    """Registers a family's kernels of int8 and of int16, at a rank each."""
    int8, int16 = (offers(Lstm, family.requires, rank=rank) for rank in ranks)
    int8(lambda site: lstm_dots(site, family) if fits(site.attrs) else None)
    int16(lambda site: lstm16(site, family, row) if fits(site.attrs) else None)


_offer(HELIUM, arm_helium_int16.fully_connected, 100, 250, fits=curves_by_helium)
_offer(DSP, arm_dsp_int16.fully_connected, 200, 260)
