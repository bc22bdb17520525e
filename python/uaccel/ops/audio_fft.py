"""Defines the operators from samples to spectra and back: FFT of real numbers, windows, scaling, frames, delays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import const
from uaccel.ops.operator import Attributes, ByLoops, Infos, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let

# The FFT of real numbers as TensorFlow Lite Micro computes it; its C is printed from its meaning.
#
# Real numbers in pairs are half as many complex ones. A complex FFT of these has butterflies of four and of two; each
# divides its inputs by four or two before it adds them, so that no sum overflows. A last stage separates the spectra of
# the even and the odd samples, which the pairs mix, and joins them to the spectrum of the real numbers.

Pair = tuple[Any, Any]  # Real and imaginary part of a complex number.
ONE = 32767
FRACTION = 15


def factors(count: int) -> list[tuple[int, int]]:
    """Gives for each stage, the outermost first, how many parts it joins and how long each is; fours before a two."""
    found, left = [], count
    while left > 1:
        part = 4 if left % 4 == 0 else 2
        left //= part
        found.append((part, left))
    return found


def order(count: int) -> NDArray[np.int32]:
    """The input's elements in the order of the innermost stage: the digits of their numbers reversed."""
    places = np.zeros(1, np.int64)
    step = 1
    for part, _ in factors(count):
        places = (places[:, None] + step * np.arange(part)[None, :]).reshape(-1)
        step *= part
    return places.astype(np.int32)


def turns(phases: NDArray[np.float64]) -> NDArray[np.int16]:
    """Real and imaginary parts of points on the unit circle, one after the other."""
    parts = np.stack([np.cos(phases), np.sin(phases)], axis=-1)
    return np.asarray(np.floor(0.5 + ONE * parts)).astype(np.int16).reshape(-1)


class RfftAttrs(Attributes):
    """``length`` is a power of two; shorter inputs are filled up with zeros."""

    length: int


class Rfft(ByLoops[RfftAttrs]):
    """Transforms rows of int16; each gives length / 2 + 1 pairs of a real and an imaginary part. ``order`` and the two
    tables of ``turns`` are constants of the length (``tables``)."""

    name = "rfft"
    arguments = ("input", "order", "turns", "last_turns")

    def infer(self, attrs: RfftAttrs, *inputs: TensorInfo) -> TensorInfo:
        data = inputs[0]
        require(data.dtype == "int16", f"rfft: input {data}, wanted int16")
        power = attrs.length >= 4 and attrs.length & (attrs.length - 1) == 0
        require(power, f"rfft: length {attrs.length} is no power of two from 4 on")
        require(0 < data.shape[-1] <= attrs.length, f"rfft: {data} is longer than {attrs.length}")
        return TensorInfo((*data.shape[:-1], attrs.length + 2), data.dtype)

    def write(self, infos: Infos, attrs: RfftAttrs, *arrays: Any) -> None:
        data, places, turned, last, output = arrays
        given = infos[0]
        half, width = attrs.length // 2, given.shape[-1]
        rows = given.elements // width
        work = local_array(attrs.length, "int16")
        with count_to(rows) as row:
            with count_to(half) as i:
                for part in (0, 1):
                    at = 2 * places[i] + part
                    inside = exact.clamp(at, 0, width - 1)
                    zero = exact.const(0, "int16")
                    value = data[row * width + inside]
                    work[2 * i + part] = exact.chosen(at < width, value, zero)
            _transformed(work, turned, half)
            _unpacked(work, last, output, half, row * (attrs.length + 2))

    def macs(self, site: Site[RfftAttrs]) -> int:
        """Counts complex products, of four multiplications each."""
        half = site.attrs.length // 2
        rows = site.operands[0].info.elements // site.operands[0].info.shape[-1]
        each = sum((part - 1) * (half // part) for part, _ in factors(half)) + half // 2
        return 4 * rows * each


class Irfft(ByLoops[RfftAttrs]):
    """Transforms length / 2 + 1 pairs back to rows of samples; its tables turn the other way."""

    name = "irfft"
    arguments = ("input", "order", "turns", "last_turns")

    def infer(self, attrs: RfftAttrs, *inputs: TensorInfo) -> TensorInfo:
        data = inputs[0]
        power = attrs.length >= 4 and attrs.length & (attrs.length - 1) == 0
        require(power, f"irfft: length {attrs.length} is no power of two from 4 on")
        fits = data.dtype == "int16" and data.shape[-1] == attrs.length + 2
        require(fits, f"irfft: input {data}, wanted int16 in rows of {attrs.length + 2}")
        return TensorInfo((*data.shape[:-1], attrs.length), data.dtype)

    def write(self, infos: Infos, attrs: RfftAttrs, *arrays: Any) -> None:
        data, places, turned, first, output = arrays
        result, half = self.infer(attrs, *infos), attrs.length // 2
        pairs, work = local_array(attrs.length, "int16"), local_array(attrs.length, "int16")
        with count_to(result.elements // attrs.length) as row:
            _packed(data, first, pairs, half, row * (half + 1))
            with count_to(half) as i:
                for part in (0, 1):
                    work[2 * i + part] = pairs[2 * places[i] + part]
            _transformed(work, turned, half, inverse=True)
            with count_to(attrs.length) as i:
                output[row * attrs.length + i] = work[i]


def tables(length: int, sign: int = -1) -> tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.int16]]:
    """``order``, the turns of the butterflies and those of the last stage; ``sign`` is 1 for the way back."""
    half = length // 2
    inner = turns(sign * 2 * np.pi * np.arange(half) / half)
    last = turns(sign * np.pi * ((np.arange(half // 2) + 1) / half + 0.5))
    return order(half), inner, last


def _transformed(work: Any, turned: Any, count: int, *, inverse: bool = False) -> None:
    """Transforms in place numbers in the innermost stage's order, stage by stage outwards."""
    for number, (part, length) in reversed(list(enumerate(factors(count)))):
        blocks = math.prod(p for p, _ in factors(count)[:number])
        with count_to(blocks) as block, count_to(length) as k:
            _butterfly(work, turned, part, length, block * part * length + k, k * blocks, inverse=inverse)


def _rounded(value: Any) -> Any:
    """Rounds a product of two fractions, an int32, and wraps it to 16 bits."""
    half = exact.const(1 << (FRACTION - 1), "int32")
    return ((value + half) >> exact.const(FRACTION, "int32")).astype("int16")


def _load(work: Any, at: Any, divisor: int = 1) -> Pair:
    """A complex number whose parts are divided, as products with a fraction."""
    parts = [exact.i32(work[2 * at + part]) for part in (0, 1)]
    if divisor > 1:
        parts = [exact.i32(_rounded(part * exact.const(ONE // divisor, "int32"))) for part in parts]
    return te_let(parts[0]), te_let(parts[1])


def _store(work: Any, at: Any, value: Pair) -> None:
    for part in (0, 1):
        work[2 * at + part] = value[part].astype("int16")


def _product(one: Pair, table: Any, at: Any) -> Pair:
    (a, b), (c, d) = one, (exact.i32(table[2 * at]), exact.i32(table[2 * at + 1]))
    real, imaginary = _rounded(a * c - b * d), _rounded(a * d + b * c)
    return te_let(exact.i32(real)), te_let(exact.i32(imaginary))


def _add_pairs(one: Pair, other: Pair, sign: int = 1) -> Pair:
    """The sum or difference of two complex numbers, wrapped to 16 bits."""
    parts = [(a + b if sign > 0 else a - b).astype("int16") for a, b in zip(one, other, strict=True)]
    return te_let(exact.i32(parts[0])), te_let(exact.i32(parts[1]))


def _butterfly(work: Any, table: Any, part: int, length: int, at: Any, turn: Any, *, inverse: bool) -> None:
    values = [_load(work, at + length * i, part) for i in range(part)]
    turned = [values[0], *(_product(values[i], table, turn * i) for i in range(1, part))]
    if part == 2:
        _store(work, at + length, _add_pairs(turned[0], turned[1], -1))
        _store(work, at, _add_pairs(turned[0], turned[1]))
        return
    even, odd = _add_pairs(turned[0], turned[2]), _add_pairs(turned[0], turned[2], -1)
    added, apart = _add_pairs(turned[1], turned[3]), _add_pairs(turned[1], turned[3], -1)
    _store(work, at + 2 * length, _add_pairs(even, added, -1))
    _store(work, at, _add_pairs(even, added))
    second, fourth = (3, 1) if inverse else (1, 3)
    _store(work, at + second * length, (odd[0] + apart[1], odd[1] - apart[0]))
    _store(work, at + fourth * length, (odd[0] - apart[1], odd[1] + apart[0]))


def _unpacked(work: Any, table: Any, output: Any, half: int, start: Any) -> None:
    """The spectrum of the real numbers from that of the pairs.

    ``both`` is the even samples' spectrum; ``apart``, turned by -i and by the last stage's angle, that of the odd ones.
    """
    first = _load(work, 0, 2)
    zero = exact.const(0, "int16")
    output[start] = (first[0] + first[1]).astype("int16")
    output[start + 1] = zero
    output[start + 2 * half] = (first[0] - first[1]).astype("int16")
    output[start + 2 * half + 1] = zero
    with count_to(half // 2) as i:
        k = i + 1
        front, back = _load(work, k, 2), _mirrored(work, half - k)
        both, apart = _add_pairs(front, back), _add_pairs(front, back, -1)
        turned = _product(apart, table, i)
        one = exact.const(1, "int32")
        output[start + 2 * k] = ((both[0] + turned[0]) >> one).astype("int16")
        output[start + 2 * k + 1] = ((both[1] + turned[1]) >> one).astype("int16")
        output[start + 2 * (half - k)] = ((both[0] - turned[0]) >> one).astype("int16")
        output[start + 2 * (half - k) + 1] = ((turned[1] - both[1]) >> one).astype("int16")


def _packed(spectrum: Any, table: Any, pairs: Any, half: int, start: Any) -> None:
    """The spectrum of the pairs from that of the real numbers, whose parts begin at number ``start``."""
    ends = [exact.i32(spectrum[2 * (start + at)]) for at in (0, half)]
    share = exact.const(ONE // 2, "int32")
    for part, total in enumerate((ends[0] + ends[1], ends[0] - ends[1])):
        pairs[part] = _rounded(exact.i32(total.astype("int16")) * share)
    with count_to(half // 2) as i:
        k = i + 1
        front, back = _load(spectrum, start + k, 2), _mirrored(spectrum, start + half - k)
        both, turned = _add_pairs(front, back), _product(_add_pairs(front, back, -1), table, i)
        _store(pairs, k, _add_pairs(both, turned))
        real, imaginary = _add_pairs(both, turned, -1)
        _store(pairs, half - k, (real, -imaginary))


def _mirrored(work: Any, at: Any) -> Pair:
    """The conjugate, divided by two."""
    real, imaginary = exact.i32(work[2 * at]), exact.i32((-exact.i32(work[2 * at + 1])).astype("int16"))
    share = exact.const(ONE // 2, "int32")
    return te_let(exact.i32(_rounded(real * share))), te_let(exact.i32(_rounded(imaginary * share)))


# The operators before and behind an FFT of 16-bit samples: a window, a scale, energies.


class WindowAttrs(Attributes):
    """``shift`` bits of each product are cut off."""

    shift: int


class WindowFunction(IntegerOperator[WindowAttrs]):
    """Multiplies each row by the weights, shifts to the right, and saturates."""

    name = "window"
    arguments = ("input", "factors")

    def infer(self, attrs: WindowAttrs, data: TensorInfo, weights: TensorInfo) -> TensorInfo:
        fits = data.dtype == weights.dtype == "int16" and data.shape[-1:] == weights.shape
        require(fits, f"window: weights {weights} for {data}, wanted int16 of the same length")
        require(0 <= attrs.shift < 32, f"window: a shift of {attrs.shift} bits")
        return data

    def meaning(self, attrs: WindowAttrs, data: Any, weights: Any) -> Any:

        def element(*index: Any) -> Any:
            product = exact.i32(data(*index)) * exact.i32(weights(index[-1]))
            return exact.clamp(product >> const(attrs.shift, "int32"), -32768, 32767).astype("int16")

        return te.compute(data.shape, element, name=self.name)


class AutoScale(ByLoops[Attributes]):
    """Shifts the samples to the left as far as the largest allows, and says by how many bits."""

    name = "fft_auto_scale"

    def infer(self, attrs: Attributes, data: TensorInfo) -> tuple[TensorInfo, ...]:
        require(data.dtype == "int16" and len(data.shape) == 1, f"fft_auto_scale: input {data}, wanted int16 [N]")
        return data, TensorInfo((), "int32")

    def write(self, infos: Infos, attrs: Attributes, samples: Any, output: Any, bits: Any) -> None:
        """The reference keeps the largest magnitude in 16 bits, so that of -32768 is negative: no shift then."""
        data = infos[0]
        largest, length = local_array(1, "int16"), local_array(1, "int32")
        largest[0] = const(0, "int16")
        with count_to(data.elements) as i:
            value, most = exact.i32(samples[i]), exact.i32(largest[0])
            other = exact.chosen(-value > most, -value, most)
            largest[0] = exact.chosen(value > most, value, other).astype("int16")
        length[0] = const(0, "int32")
        with count_to(15) as bit:
            length[0] = length[0] + ((exact.i32(largest[0]) >> bit) > 0).astype("int32")
        bits[0] = exact.chosen(largest[0] > const(0, "int16"), const(15, "int32") - length[0], const(0, "int32"))
        with count_to(data.elements) as i:
            output[i] = (exact.i32(samples[i]) << bits[0]).astype("int16")


class EnergyAttrs(Attributes):
    """Pairs from ``start`` on and before ``end`` have energies; the others of ``count`` results are zero."""

    start: int
    end: int
    count: int


class Energy(IntegerOperator[EnergyAttrs]):
    """Sums the squares of real and imaginary parts."""

    name = "energy"

    def infer(self, attrs: EnergyAttrs, data: TensorInfo) -> TensorInfo:
        require(data.dtype == "int16" and len(data.shape) == 1, f"energy: input {data}, wanted int16 [N]")
        inside = 0 <= attrs.start <= attrs.end <= min(attrs.count, data.elements // 2)
        require(inside, f"energy: pairs {attrs.start} to {attrs.end} of {data}, {attrs.count} results")
        return TensorInfo((attrs.count,), "uint32")

    def meaning(self, attrs: EnergyAttrs, data: Any) -> Any:
        last = int(data.shape[0]) // 2 - 1

        def element(i: Any) -> Any:
            at = 2 * tirx.min(i, last)
            real, imaginary = exact.i64(data(at)), exact.i64(data(at + 1))
            inside = tirx.all(i >= attrs.start, i < attrs.end)
            return tirx.Select(inside, real * real + imaginary * imaginary, const(0)).astype("uint32")

        return te.compute((attrs.count,), element, name=self.name)


# Streams: delayed samples, frames that overlap, and such frames added up.


def _late(data: Any, state: Any, index: Sequence[Any], at: Any) -> Any:
    """A sample of the state's row, or of the input's that follows it."""
    length = int(state.shape[-1])
    late = state(*index, tirx.min(at, length - 1))
    return tirx.Select(at < length, late, data(*index, tirx.max(at - length, 0)))


class Delay(IntegerOperator[Attributes]):
    """Delays rows of samples by the length of the state's rows; its results are the samples and the next state."""

    name = "delay"
    arguments = ("input", "state")

    def infer(self, attrs: Attributes, data: TensorInfo, state: TensorInfo) -> tuple[TensorInfo, ...]:
        fits = state.dtype == data.dtype == "int16" and state.shape[:-1] == data.shape[:-1]
        require(fits, f"delay: state {state} for {data}, wanted int16")
        return data, state

    def meaning(self, attrs: Attributes, data: Any, state: Any) -> Any:
        size = int(data.shape[-1])
        output = te.compute(data.shape, lambda *i: _late(data, state, i[:-1], i[-1]), name=self.name)
        after = te.compute(state.shape, lambda *i: _late(data, state, i[:-1], i[-1] + size), name="state")
        return [output, after]


class OverlapAddAttrs(Attributes):
    """Once a frame is added, the first ``step`` samples of the state are complete."""

    step: int


class OverlapAdd(ByLoops[OverlapAddAttrs]):
    """Adds frames [..., frames, size] to a state [..., size], which moves on after each; int16 saturates."""

    name = "overlap_add"
    arguments = ("input", "state")

    def infer(self, attrs: OverlapAddAttrs, data: TensorInfo, state: TensorInfo) -> tuple[TensorInfo, ...]:
        fits = len(data.shape) > 1 and state == TensorInfo((*data.shape[:-2], data.shape[-1]), data.dtype)
        require(fits and data.dtype in ("int16", "float32"), f"overlap_add: state {state} for {data}")
        require(0 < attrs.step <= data.shape[-1], f"overlap_add: a step of {attrs.step} for {data}")
        return TensorInfo((*data.shape[:-2], data.shape[-2] * attrs.step), data.dtype), state

    def write(self, infos: Infos, attrs: OverlapAddAttrs, samples: Any, before: Any, output: Any, after: Any) -> None:
        data = infos[0]
        frames, size = data.shape[-2:]
        rest = size - attrs.step
        rows = data.elements // (frames * size)
        with count_to(rows * size) as i:
            after[i] = before[i]
        with count_to(rows) as row, count_to(frames) as frame:
            number, start = row * frames + frame, row * size
            with count_to(size) as i:
                after[start + i] = te_let(_sum(samples[number * size + i], after[start + i], data.dtype))
            with count_to(attrs.step) as i:
                output[number * attrs.step + i] = after[start + i]
            if rest:
                with count_to(rest) as i:
                    after[start + i] = after[start + attrs.step + i]
            with count_to(attrs.step) as i:
                after[start + rest + i] = tirx.const(0, data.dtype)


def _sum(one: Any, other: Any, dtype: str) -> Any:
    if dtype != "int16":
        return one + other
    return exact.clamp(exact.i32(one) + exact.i32(other), -32768, 32767).astype("int16")


class FramerAttrs(Attributes):
    """A frame has ``size`` samples and begins ``step`` after the one before."""

    size: int
    step: int


class Framer(IntegerOperator[FramerAttrs]):
    """Cuts a stream into frames that overlap; its last ``size - step`` samples are the state. All are complete."""

    name = "framer"
    arguments = ("input", "state")

    def infer(self, attrs: FramerAttrs, data: TensorInfo, state: TensorInfo) -> tuple[TensorInfo, ...]:
        overlap = attrs.size - attrs.step
        fits = state == TensorInfo((*data.shape[:-1], overlap), "int16") and data.dtype == "int16"
        require(fits and attrs.step > 0, f"framer: state {state} for {data}, frames of {attrs.size}")
        require(data.shape[-1] % attrs.step == 0, f"framer: {data} holds no whole steps of {attrs.step}")
        frames = TensorInfo((*data.shape[:-1], data.shape[-1] // attrs.step, attrs.size), data.dtype)
        return frames, TensorInfo((), "bool"), state

    def meaning(self, attrs: FramerAttrs, *inputs: Any) -> Any:
        data, state = inputs
        frames, valid, after = self.results(inputs, attrs)

        def framed(*index: Any) -> Any:
            return _late(data, state, index[:-2], index[-2] * attrs.step + index[-1])

        moved = int(data.shape[-1])
        return [
            te.compute(frames.shape, framed, name=self.name),
            te.compute(valid.shape, lambda: tirx.const(True, "bool"), name="valid"),
            te.compute(after.shape, lambda *i: _late(data, state, i[:-1], i[-1] + moved), name="state"),
        ]
