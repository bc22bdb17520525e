"""Noise and gain of a spectrum's channels: subtraction of an estimate, gain by it, and logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.exact import const
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops

WORD = (1 << 32) - 1
SNR_BITS, OUTPUT_BITS = 12, 6
"""Fractional bits of a ratio of signal and noise, and of what is made of it."""
LOG_BITS, SEGMENT_BITS = 16, 7
NATURAL = 45426
"""ln 2 in 16 bits."""


def word(value: Any) -> Any:
    """The lower 32 bits of an int64."""
    return value & const(WORD)


def bit_length(value: Any) -> Any:
    """Of an int64 below 2**32."""
    length = local_array(1, "int64")
    length[0] = const(0)
    with count_to(32) as bit:
        length[0] = length[0] + exact.i64((value >> exact.i64(bit)) > const(0))
    return length[0]


@dataclass(frozen=True)
class SubtractionAttrs(Attributes):
    """``even`` and ``odd`` channels: their smoothing and one less that. ``clamping`` 1: the estimate is no larger than
    the signal."""

    even: tuple[int, ...]
    odd: tuple[int, ...]
    clamping: int
    least_signal: int
    smoothing_bits: int
    bits: int


@register
class SpectralSubtraction(IntegerOperator[SubtractionAttrs]):
    """The signal without the noise, the noise estimate, and again the estimate as what lasts."""

    name = "spectral_subtraction"
    arguments = ("input", "estimate")

    def infer(self, inputs: Sequence[TensorInfo], attrs: SubtractionAttrs) -> tuple[TensorInfo, ...]:
        data, estimate = inputs
        require(data == estimate and data.dtype == "uint32", f"{self.name}: {data} and {estimate}, wanted uint32")
        return data, data, data

    def meaning(self, inputs: Sequence[Any], attrs: SubtractionAttrs) -> Any:
        data = exact.info(inputs[0])
        bits, scale = const(attrs.bits), const(attrs.smoothing_bits)

        def write(signal: Any, before: Any, output: Any, shown: Any, after: Any) -> None:
            with count_to(data.elements) as i:
                is_even = (i % 2) < 1
                smoothing, rest = (
                    exact.chosen(is_even, const(even), const(odd))
                    for even, odd in zip(attrs.even, attrs.odd, strict=True)
                )
                raised = computed_once(word(exact.i64(signal[i]) << scale))
                noise = computed_once(word((raised * smoothing + exact.i64(before[i]) * rest) >> bits))
                taken = computed_once(exact.chosen(noise > raised, raised, noise))
                kept = computed_once((taken if attrs.clamping else noise).astype("uint32"))
                least = computed_once(word((exact.i64(signal[i]) * const(attrs.least_signal)) >> bits))
                left = computed_once((raised - taken) >> scale)
                output[i] = exact.chosen(left > least, left, least).astype("uint32")
                shown[i] = kept
                after[i] = kept

        return written_by_loops([(data.shape, "uint32")] * 3, list(inputs), write, self.name)


@dataclass(frozen=True)
class GainAttrs(Attributes):
    snr_shift: int


@register
class ChannelGain(IntegerOperator[GainAttrs]):
    """Per-channel amplitude normalisation: a gain by the noise, from a table of parabolas, and a curve."""

    name = "pcan"
    arguments = ("input", "estimate", "table")

    def infer(self, inputs: Sequence[TensorInfo], attrs: GainAttrs) -> TensorInfo:
        data, estimate, table = inputs
        require(data == estimate and data.dtype == "uint32", f"pcan: {data} and {estimate}, wanted uint32")
        require(table.dtype == "int16" and table.elements >= 125, f"pcan: gains {table}, wanted 125 of int16")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: GainAttrs) -> Any:
        data = exact.info(inputs[0])

        def write(signal: Any, estimate: Any, table: Any, output: Any) -> None:
            with count_to(data.elements) as i:
                gain = computed_once(word(_gain(computed_once(exact.i64(estimate[i])), table)))
                product = signal[i].astype("uint64") * gain.astype("uint64")
                ratio = computed_once(word(exact.i64(product >> const(attrs.snr_shift, "uint64"))))
                small = word(ratio * ratio) >> const(2 + 2 * SNR_BITS - OUTPUT_BITS)
                large = (ratio >> const(SNR_BITS - OUTPUT_BITS)) - const(1 << OUTPUT_BITS)
                output[i] = exact.chosen(ratio < const(2 << SNR_BITS), small, large).astype("uint32")

        return written_by_loops([(data.shape, "uint32")], list(inputs), write, self.name)[0]


def _gain(noise: Any, table: Any) -> Any:
    """A parabola for each power of two, an int64."""
    length = computed_once(bit_length(noise))
    is_tiny = computed_once(noise < const(3))
    at = computed_once(exact.chosen(is_tiny, const(0), length * const(4) - const(6)))
    left, right = (exact.clamp(difference, 0, 31) for difference in (const(11) - length, length - const(11)))
    part = computed_once(((noise << left) >> right) & const(0x3FF))
    curve = ((exact.i64(table[at + 2]) * part) >> const(5)) + (exact.i64(table[at + 1]) << const(5))
    turned = exact.wrap32(computed_once(curve * part))
    value = computed_once((turned + const(1 << 14)) >> const(15)) + exact.i64(table[at])
    wrapped = exact.i64(value.astype("int16"))
    tiny = exact.i64(table[exact.chosen(is_tiny, noise, const(0))])
    return exact.chosen(is_tiny, tiny, computed_once(wrapped))


@dataclass(frozen=True)
class LogAttrs(Attributes):
    output_scale: int
    correction_bits: int


def log_table() -> NDArray[np.uint16]:
    """What a logarithm to base two has more than a straight line between powers of two, in 16 bits."""
    rising = np.arange((1 << SEGMENT_BITS) + 1) / (1 << SEGMENT_BITS)
    return np.append(np.rint((np.log2(1 + rising) - rising) * (1 << LOG_BITS)), 0).astype(np.uint16)


@register
class ChannelLog(IntegerOperator[LogAttrs]):
    """Natural logarithms in units of 1 / ``output_scale``, by a table of ``log_table``."""

    name = "filter_bank_log"
    arguments = ("input", "table")

    def infer(self, inputs: Sequence[TensorInfo], attrs: LogAttrs) -> TensorInfo:
        data = inputs[0]
        require(data.dtype == "uint32", f"{self.name}: input {data}, wanted uint32")
        require(0 <= attrs.correction_bits < 32, f"{self.name}: a shift of {attrs.correction_bits} bits")
        return TensorInfo(data.shape, "int16")

    def meaning(self, inputs: Sequence[Any], attrs: LogAttrs) -> Any:
        data = exact.info(inputs[0])

        def write(signal: Any, table: Any, output: Any) -> None:
            with count_to(data.elements) as i:
                raised = computed_once(word(exact.i64(signal[i]) << const(attrs.correction_bits)))
                value = computed_once(_scaled_log(raised, table, attrs.output_scale))
                most = exact.chosen(value < const(32767), value, const(32767))
                output[i] = exact.chosen(raised > const(1), most, const(0)).astype("int16")

        return written_by_loops([(data.shape, "int16")], list(inputs), write, self.name)[0]


def _scaled_log(value: Any, table: Any, scale: int) -> Any:
    """Of an int64 from 2 on; smaller ones give anything."""
    safe = computed_once(exact.chosen(value > const(1), value, const(2)))
    power = computed_once(bit_length(safe) - const(1))
    left, right = (exact.clamp(difference, 0, 31) for difference in (const(LOG_BITS) - power, power - const(LOG_BITS)))
    part = computed_once(((safe - (const(1) << power)) << left) >> right)
    segment = computed_once(part >> const(LOG_BITS - SEGMENT_BITS))
    low, high = (computed_once(exact.i64(table[segment + i])) for i in (0, 1))
    inside = part - (segment << const(LOG_BITS - SEGMENT_BITS))
    fraction = part + low + (((high - low) * inside) >> const(LOG_BITS))
    half = const(1 << (LOG_BITS - 1))
    binary = computed_once((power << const(LOG_BITS)) + fraction)
    natural = computed_once((binary * const(NATURAL) + half) >> const(LOG_BITS))
    return word(const(scale) * natural + half) >> const(LOG_BITS)
