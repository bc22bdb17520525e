"""Defines the operators from spectra to features as TensorFlow Lite Micro has them: filter bank, noise, gain, log."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import const
from uaccel.ops.operator import Attributes, ByLoops, Infos, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, where

# The filter bank: weighted sums of a spectrum's energies, and their square roots.


class FilterBankAttrs(Attributes):
    """Tables have one channel more than the output: the first only passes its rest on to the next, the first output.
    ``widest`` is the largest of the widths."""

    channels: int
    widest: int


class FilterBank(ByLoops[FilterBankAttrs]):
    """Adds each energy to two channels: by its weight to one, and by the rest (``unweights``) to the next."""

    name = "filter_bank"
    arguments = ("input", "factors", "unweights", "frequency_starts", "weight_starts", "widths")

    def infer(self, attrs: FilterBankAttrs, data: TensorInfo, *tables: TensorInfo) -> TensorInfo:
        require(data.dtype == "uint32" and len(data.shape) == 1, f"filter_bank: input {data}, wanted uint32 [N]")
        require(all(table.dtype == "int16" for table in tables), "filter_bank: tables of other types than int16")
        enough = all(table.elements > attrs.channels for table in tables[2:])
        require(enough and attrs.channels > 0, f"filter_bank: tables for {attrs.channels} channels are too short")
        return TensorInfo((attrs.channels,), "uint64")

    def write(self, infos: Infos, attrs: FilterBankAttrs, *arrays: Any) -> None:
        data, weights, unweights, frequencies, starts, widths, output = arrays
        sums = local_array(2, "int64")
        sums[1] = const(0)
        with count_to(attrs.channels + 1) as channel:
            sums[0] = sums[1]
            sums[1] = const(0)
            with count_to(attrs.widest) as j:
                counts = j < exact.i32(widths[channel])
                energy_at = exact.chosen(counts, exact.i32(frequencies[channel]) + j, 0)
                weight_at = te_let(exact.chosen(counts, exact.i32(starts[channel]) + j, 0))
                energy = te_let(exact.chosen(counts, exact.i64(data[energy_at]), const(0)))
                sums[0] = sums[0] + exact.i64(weights[weight_at]) * energy
                sums[1] = sums[1] + exact.i64(unweights[weight_at]) * energy
            at = exact.chosen(channel > 0, channel - 1, 0)
            output[at] = sums[0].astype("uint64")


class SquareRoot(ByLoops[Attributes]):
    """Takes the square root of 64 bits, rounded, and shifts it right by a number that may be computed.

    The root grows bit by bit from the highest, ``bit`` being the square of its place: a bit is set where the remainder
    ``left`` allows. A last remainder above the root means that the real root is above root + 1/2. Rounding up stops at
    16 bits for numbers of 32 bits, as in the reference.
    """

    name = "filter_bank_square_root"
    arguments = ("input", "bits")

    def infer(self, attrs: Attributes, data: TensorInfo, bits: TensorInfo) -> TensorInfo:
        fits = data.dtype == "uint64" and bits.dtype == "int32" and bits.elements == 1
        require(fits, f"{self.name}: {data} and {bits}, wanted uint64 and one int32")
        return TensorInfo(data.shape, "uint32")

    def write(self, infos: Infos, attrs: Attributes, numbers: Any, bits: Any, output: Any) -> None:
        data = infos[0]
        left, root, bit = (local_array(1, "uint64") for _ in range(3))
        one, zero = const(1, "uint64"), const(0, "uint64")
        with count_to(data.elements) as i:
            left[0], root[0], bit[0] = numbers[i], zero, const(1 << 62, "uint64")
            narrow = (numbers[i] >> const(32, "uint64")) < one
            limit = te_let(exact.chosen(narrow, const(0xFFFF, "uint64"), const(0xFFFFFFFF, "uint64")))
            with count_to(32):
                taken = te_let(root[0] + bit[0])
                fits = te_let(left[0] >= taken)
                left[0] = exact.chosen(fits, left[0] - taken, left[0])
                root[0] = (root[0] >> one) + exact.chosen(fits, bit[0], zero)
                bit[0] = bit[0] >> const(2, "uint64")
            up = exact.chosen(left[0] > root[0], exact.chosen(root[0] < limit, one, zero), zero)
            output[i] = ((root[0] + up) >> bits[0].astype("uint64")).astype("uint32")


# Noise and gain of a spectrum's channels: subtraction of an estimate, gain by it, and logarithms.

WORD = (1 << 32) - 1
SNR_BITS, OUTPUT_BITS = 12, 6  # Bits after the point of a signal-to-noise ratio, and of the gain's output.
LOG_BITS, SEGMENT_BITS = 16, 7
NATURAL = 45426  # ln 2 in 16 bits.


def word(value: Any) -> Any:
    """The lower 32 bits of an int64."""
    return value & const(WORD)


def bit_length(value: Any) -> Any:
    """How many bits an int64 below 2**32 takes."""
    length = local_array(1, "int64")
    length[0] = const(0)
    with count_to(32) as bit:
        length[0] = length[0] + exact.i64((value >> exact.i64(bit)) > const(0))
    return length[0]


class SubtractionAttrs(Attributes):
    """``even`` and ``odd`` have the smoothing of such channels, and one less the smoothing. With ``clamping`` 1 the
    estimate is kept from exceeding the signal."""

    even: tuple[int, ...]
    odd: tuple[int, ...]
    clamping: int
    least_signal: int
    smoothing_bits: int
    bits: int


class SpectralSubtraction(ByLoops[SubtractionAttrs]):
    """Computes the signal without the noise, the noise estimate, and the estimate again as the state that lasts."""

    name = "spectral_subtraction"
    arguments = ("input", "estimate")

    def infer(self, attrs: SubtractionAttrs, data: TensorInfo, estimate: TensorInfo) -> tuple[TensorInfo, ...]:
        require(data == estimate and data.dtype == "uint32", f"{self.name}: {data} and {estimate}, wanted uint32")
        return data, data, data

    def write(self, infos: Infos, attrs: SubtractionAttrs, *arrays: Any) -> None:
        signal, before, output, shown, after = arrays
        data = infos[0]
        bits, scale = const(attrs.bits), const(attrs.smoothing_bits)
        with count_to(data.elements) as i:
            is_even = (i % 2) < 1
            smoothing, rest = (
                exact.chosen(is_even, const(even), const(odd)) for even, odd in zip(attrs.even, attrs.odd, strict=True)
            )
            raised = te_let(word(exact.i64(signal[i]) << scale))
            noise = te_let(word((raised * smoothing + exact.i64(before[i]) * rest) >> bits))
            taken = te_let(exact.chosen(noise > raised, raised, noise))
            kept = te_let((taken if attrs.clamping else noise).astype("uint32"))
            least = te_let(word((exact.i64(signal[i]) * const(attrs.least_signal)) >> bits))
            left = te_let((raised - taken) >> scale)
            output[i] = exact.chosen(left > least, left, least).astype("uint32")
            shown[i] = kept
            after[i] = kept


class GainAttrs(Attributes):
    """``snr_shift`` shifts the product of signal and gain right to a ratio with ``SNR_BITS`` after the point."""

    snr_shift: int


class ChannelGain(ByLoops[GainAttrs]):
    """Normalises amplitudes by channel (PCAN): the noise gives a gain from a table of parabolas, then a curve bends it.

    The curve is x**2 / 4 below 2 and x - 1 from there on.
    """

    name = "pcan"
    arguments = ("input", "estimate", "table")

    def infer(self, attrs: GainAttrs, data: TensorInfo, estimate: TensorInfo, table: TensorInfo) -> TensorInfo:
        require(data == estimate and data.dtype == "uint32", f"pcan: {data} and {estimate}, wanted uint32")
        require(table.dtype == "int16" and table.elements >= 125, f"pcan: gains {table}, wanted 125 of int16")
        return data

    def write(self, infos: Infos, attrs: GainAttrs, signal: Any, estimate: Any, table: Any, output: Any) -> None:
        data = infos[0]
        with count_to(data.elements) as i:
            gain = te_let(word(_gain(te_let(exact.i64(estimate[i])), table)))
            product = signal[i].astype("uint64") * gain.astype("uint64")
            ratio = te_let(word(exact.i64(product >> const(attrs.snr_shift, "uint64"))))
            small = word(ratio * ratio) >> const(2 + 2 * SNR_BITS - OUTPUT_BITS)
            large = (ratio >> const(SNR_BITS - OUTPUT_BITS)) - const(1 << OUTPUT_BITS)
            output[i] = exact.chosen(ratio < const(2 << SNR_BITS), small, large).astype("uint32")


def _gain(noise: Any, table: Any) -> Any:
    """The gain of a noise estimate: 0 to 2 have entries of their own, each power of two above has a parabola.

    The 10 bits below the leading one are the place in it. Products and results wrap as in the reference.
    """
    length = te_let(bit_length(noise))
    is_tiny = te_let(noise < const(3))
    at = te_let(exact.chosen(is_tiny, const(0), length * const(4) - const(6)))
    left, right = (exact.clamp(difference, 0, 31) for difference in (const(11) - length, length - const(11)))
    part = te_let(((noise << left) >> right) & const(0x3FF))
    curve = ((exact.i64(table[at + 2]) * part) >> const(5)) + (exact.i64(table[at + 1]) << const(5))
    turned = exact.wrap32(te_let(curve * part))
    value = te_let((turned + const(1 << 14)) >> const(15)) + exact.i64(table[at])
    wrapped = exact.i64(value.astype("int16"))
    tiny = exact.i64(table[exact.chosen(is_tiny, noise, const(0))])
    return exact.chosen(is_tiny, tiny, te_let(wrapped))


class LogAttrs(Attributes):
    """A signal is shifted left by ``correction_bits``; its logarithm is in units of 1 / ``output_scale``."""

    output_scale: int
    correction_bits: int


def log_table() -> NDArray[np.uint16]:
    """How far the logarithm to base two lies above a straight line between powers of two, in units of 2**-16."""
    rising = np.arange((1 << SEGMENT_BITS) + 1) / (1 << SEGMENT_BITS)
    return np.append(np.rint((np.log2(1 + rising) - rising) * (1 << LOG_BITS)), 0).astype(np.uint16)


class ChannelLog(ByLoops[LogAttrs]):
    """Computes natural logarithms in units of 1 / ``output_scale``, by the table of ``log_table``."""

    name = "filter_bank_log"
    arguments = ("input", "table")

    def infer(self, attrs: LogAttrs, *inputs: TensorInfo) -> TensorInfo:
        data = inputs[0]
        require(data.dtype == "uint32", f"{self.name}: input {data}, wanted uint32")
        require(0 <= attrs.correction_bits < 32, f"{self.name}: a shift of {attrs.correction_bits} bits")
        return TensorInfo(data.shape, "int16")

    def write(self, infos: Infos, attrs: LogAttrs, signal: Any, table: Any, output: Any) -> None:
        data = infos[0]
        with count_to(data.elements) as i:
            raised = te_let(word(exact.i64(signal[i]) << const(attrs.correction_bits)))
            value = te_let(_scaled_log(raised, table, attrs.output_scale))
            most = exact.chosen(value < const(32767), value, const(32767))
            output[i] = exact.chosen(raised > const(1), most, const(0)).astype("int16")


def _scaled_log(value: Any, table: Any, scale: int) -> Any:
    """The scaled logarithm of an int64 from 2 on; smaller ones give anything.

    log2 is the leading one's place, the bits behind it as a straight line, and the table's correction, interpolated.
    """
    safe = te_let(exact.chosen(value > const(1), value, const(2)))
    power = te_let(bit_length(safe) - const(1))
    left, right = (exact.clamp(difference, 0, 31) for difference in (const(LOG_BITS) - power, power - const(LOG_BITS)))
    part = te_let(((safe - (const(1) << power)) << left) >> right)
    segment = te_let(part >> const(LOG_BITS - SEGMENT_BITS))
    low, high = (te_let(exact.i64(table[segment + i])) for i in (0, 1))
    inside = part - (segment << const(LOG_BITS - SEGMENT_BITS))
    fraction = part + low + (((high - low) * inside) >> const(LOG_BITS))
    half = const(1 << (LOG_BITS - 1))
    binary = te_let((power << const(LOG_BITS)) + fraction)
    natural = te_let((binary * const(NATURAL) + half) >> const(LOG_BITS))
    return word(const(scale) * natural + half) >> const(LOG_BITS)


# The stacker: features of neighbouring frames in one row.

MOST_FRAMES: Final = 1 << 14


class StackerAttrs(Attributes):
    """A row has ``left`` frames before and ``right`` behind a frame; ``step`` frames lie between rows."""

    left: int
    right: int
    step: int

    @property
    def frames(self) -> int:
        return self.left + self.right + 1


class Stacker(ByLoops[StackerAttrs]):
    """Puts frames into rows. Its results are the row, whether it is complete, and the state.

    The state begins with the number of frames held plus one, so that zero means a fresh state; the frames follow. The
    first frame of all also stands for the ``left`` ones before it. A row that is not complete is zeros.
    """

    name = "stacker"
    arguments = ("input", "state")

    def infer(self, attrs: StackerAttrs, data: TensorInfo, state: TensorInfo) -> tuple[TensorInfo, ...]:
        fits = min(attrs.left, attrs.right) >= 0 and 0 < attrs.step <= attrs.frames <= MOST_FRAMES
        require(fits, f"stacker: rows of {attrs.frames} frames every {attrs.step}")
        size = data.elements * attrs.frames
        fits = data.dtype == "int16" and state == TensorInfo((size + 1,), "int16")
        require(fits, f"stacker: state {state} for {data}, wanted int16")
        return TensorInfo((size,), "int16"), TensorInfo((), "bool"), state

    def write(self, infos: Infos, attrs: StackerAttrs, *arrays: Any) -> None:
        frame, before, row, valid, after = arrays
        width, size = infos[0].elements, infos[1].elements - 1
        held = local_array(1, "int32")
        held[0] = tirx.min(exact.i32(before[0]), attrs.frames) - 1
        with count_to(size) as i:
            row[i] = exact.const(0, "int16")
            after[1 + i] = tirx.Select(held[0] < 0, frame[i % width], before[1 + i])
        with where(held[0] < 0):
            held[0] = exact.const(attrs.left, "int32")
        with count_to(width) as i:
            after[1 + held[0] * width + i] = frame[i]
        held[0] = held[0] + 1
        valid[0] = te_let(held[0] >= attrs.frames)
        with where(held[0] >= attrs.frames):
            held[0] = held[0] - attrs.step
            with count_to(size) as i:
                row[i] = after[1 + i]
            with count_to(size - attrs.step * width) as i:
                after[1 + i] = after[1 + attrs.step * width + i]
        after[0] = (held[0] + 1).astype("int16")
