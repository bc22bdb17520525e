"""The FFT of real numbers as TensorFlow Lite Micro computes it: butterflies of four and of two, halved before each sum
so that no sum overflows. Its C is printed from its meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops

Pair = tuple[Any, Any]
"""A complex number's parts."""
ONE = 32767
FRACTION = 15


def factors(count: int) -> list[tuple[int, int]]:
    """For each stage, the outermost first, how many parts it joins and how long each is; fours before a two."""
    found, left = [], count
    while left > 1:
        part = 4 if left % 4 == 0 else 2
        left //= part
        found.append((part, left))
    return found


def order(count: int) -> NDArray[np.int32]:
    """Which element of the input comes where in the innermost stage."""
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


@dataclass(frozen=True)
class RfftAttrs(Attributes):
    """``length`` is a power of two; inputs that are shorter end with zeros."""

    length: int


@register
class Rfft(IntegerOperator[RfftAttrs]):
    """Rows of int16; each gives length / 2 + 1 pairs of a real and an imaginary part. ``order`` and the two tables of
    ``turns`` are constants of the length (``tables``)."""

    name = "rfft"
    arguments = ("input", "order", "turns", "last_turns")

    def infer(self, inputs: Sequence[TensorInfo], attrs: RfftAttrs) -> TensorInfo:
        data = inputs[0]
        require(data.dtype == "int16", f"rfft: input {data}, wanted int16")
        power = attrs.length >= 4 and attrs.length & (attrs.length - 1) == 0
        require(power, f"rfft: length {attrs.length} is no power of two from 4 on")
        require(0 < data.shape[-1] <= attrs.length, f"rfft: {data} is longer than {attrs.length}")
        return TensorInfo((*data.shape[:-1], attrs.length + 2), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: RfftAttrs) -> Any:
        given = exact.info(inputs[0])
        result = self.infer([given], attrs)
        half, width = attrs.length // 2, given.shape[-1]
        rows = given.elements // width

        def write(data: Any, places: Any, turned: Any, last: Any, output: Any) -> None:
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

        return written_by_loops([(result.shape, "int16")], list(inputs), write, self.name)[0]

    def macs(self, site: Site[RfftAttrs]) -> int:
        """Complex products, of four each."""
        half = site.attrs.length // 2
        rows = site.operands[0].info.elements // site.operands[0].info.shape[-1]
        each = sum((part - 1) * (half // part) for part, _ in factors(half)) + half // 2
        return 4 * rows * each


@register
class Irfft(IntegerOperator[RfftAttrs]):
    """Back from length / 2 + 1 pairs to rows of samples, whose tables turn the other way."""

    name = "irfft"
    arguments = ("input", "order", "turns", "last_turns")

    def infer(self, inputs: Sequence[TensorInfo], attrs: RfftAttrs) -> TensorInfo:
        data = inputs[0]
        power = attrs.length >= 4 and attrs.length & (attrs.length - 1) == 0
        require(power, f"irfft: length {attrs.length} is no power of two from 4 on")
        fits = data.dtype == "int16" and data.shape[-1] == attrs.length + 2
        require(fits, f"irfft: input {data}, wanted int16 in rows of {attrs.length + 2}")
        return TensorInfo((*data.shape[:-1], attrs.length), data.dtype)

    def meaning(self, inputs: Sequence[Any], attrs: RfftAttrs) -> Any:
        result = self.infer([exact.info(tensor) for tensor in inputs], attrs)
        half = attrs.length // 2

        def write(data: Any, places: Any, turned: Any, first: Any, output: Any) -> None:
            pairs, work = local_array(attrs.length, "int16"), local_array(attrs.length, "int16")
            with count_to(result.elements // attrs.length) as row:
                _packed(data, first, pairs, half, row * (half + 1))
                with count_to(half) as i:
                    for part in (0, 1):
                        work[2 * i + part] = pairs[2 * places[i] + part]
                _transformed(work, turned, half, inverse=True)
                with count_to(attrs.length) as i:
                    output[row * attrs.length + i] = work[i]

        return written_by_loops([(result.shape, "int16")], list(inputs), write, self.name)[0]


def tables(length: int, sign: int = -1) -> tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.int16]]:
    """``sign`` is 1 for the way back."""
    half = length // 2
    inner = turns(sign * 2 * np.pi * np.arange(half) / half)
    last = turns(sign * np.pi * ((np.arange(half // 2) + 1) / half + 0.5))
    return order(half), inner, last


def _transformed(work: Any, turned: Any, count: int, *, inverse: bool = False) -> None:
    """In place, of numbers in the innermost stage's order."""
    for number, (part, length) in reversed(list(enumerate(factors(count)))):
        blocks = math.prod(p for p, _ in factors(count)[:number])
        with count_to(blocks) as block, count_to(length) as k:
            _butterfly(work, turned, part, length, block * part * length + k, k * blocks, inverse=inverse)


def _rounded(value: Any) -> Any:
    """Of a product of fractions, an int32; wrapped to 16 bits."""
    half = exact.const(1 << (FRACTION - 1), "int32")
    return ((value + half) >> exact.const(FRACTION, "int32")).astype("int16")


def _load(work: Any, at: Any, divisor: int = 1) -> Pair:
    """Each part divided, as a product with a fraction."""
    parts = [exact.i32(work[2 * at + part]) for part in (0, 1)]
    if divisor > 1:
        parts = [exact.i32(_rounded(part * exact.const(ONE // divisor, "int32"))) for part in parts]
    return computed_once(parts[0]), computed_once(parts[1])


def _store(work: Any, at: Any, value: Pair) -> None:
    for part in (0, 1):
        work[2 * at + part] = value[part].astype("int16")


def _product(one: Pair, table: Any, at: Any) -> Pair:
    (a, b), (c, d) = one, (exact.i32(table[2 * at]), exact.i32(table[2 * at + 1]))
    real, imaginary = _rounded(a * c - b * d), _rounded(a * d + b * c)
    return computed_once(exact.i32(real)), computed_once(exact.i32(imaginary))


def _sum(one: Pair, other: Pair, sign: int = 1) -> Pair:
    """Wrapped to 16 bits."""
    parts = [(a + b if sign > 0 else a - b).astype("int16") for a, b in zip(one, other, strict=True)]
    return computed_once(exact.i32(parts[0])), computed_once(exact.i32(parts[1]))


def _butterfly(work: Any, table: Any, part: int, length: int, at: Any, turn: Any, *, inverse: bool) -> None:
    values = [_load(work, at + length * i, part) for i in range(part)]
    turned = [values[0], *(_product(values[i], table, turn * i) for i in range(1, part))]
    if part == 2:
        _store(work, at + length, _sum(turned[0], turned[1], -1))
        _store(work, at, _sum(turned[0], turned[1]))
        return
    even, odd = _sum(turned[0], turned[2]), _sum(turned[0], turned[2], -1)
    added, apart = _sum(turned[1], turned[3]), _sum(turned[1], turned[3], -1)
    _store(work, at + 2 * length, _sum(even, added, -1))
    _store(work, at, _sum(even, added))
    second, fourth = (3, 1) if inverse else (1, 3)
    _store(work, at + second * length, (odd[0] + apart[1], odd[1] - apart[0]))
    _store(work, at + fourth * length, (odd[0] - apart[1], odd[1] + apart[0]))


def _unpacked(work: Any, table: Any, output: Any, half: int, start: Any) -> None:
    """The spectrum of the real numbers from that of the pairs."""
    first = _load(work, 0, 2)
    zero = exact.const(0, "int16")
    output[start] = (first[0] + first[1]).astype("int16")
    output[start + 1] = zero
    output[start + 2 * half] = (first[0] - first[1]).astype("int16")
    output[start + 2 * half + 1] = zero
    with count_to(half // 2) as i:
        k = i + 1
        front, back = _load(work, k, 2), _mirrored(work, half - k)
        both, apart = _sum(front, back), _sum(front, back, -1)
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
        both, turned = _sum(front, back), _product(_sum(front, back, -1), table, i)
        _store(pairs, k, _sum(both, turned))
        real, imaginary = _sum(both, turned, -1)
        _store(pairs, half - k, (real, -imaginary))


def _mirrored(work: Any, at: Any) -> Pair:
    """The conjugate, divided by two."""
    real, imaginary = exact.i32(work[2 * at]), exact.i32((-exact.i32(work[2 * at + 1])).astype("int16"))
    share = exact.const(ONE // 2, "int32")
    return computed_once(exact.i32(_rounded(real * share))), computed_once(exact.i32(_rounded(imaginary * share)))
