"""SLICE and STRIDED_SLICE: a part of a tensor, every so many elements, forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uaccel.errors import ModelError, need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.dynamic import sliced_at_run_time
from uaccel.frontend.tflite.folding import apply, known, need_known, need_numbers, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator
from uaccel.frontend.tflite.shapes import reshaped
from uaccel.model import Array
from uaccel.tvm_api import relax


@dataclass(frozen=True)
class Part:
    """``count`` elements of one axis, from ``start`` on, ``step`` apart."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """One step's direction behind the last element; negative where that is in front of the axis."""
        last = self.start + (self.count - 1) * self.step
        return last + 1 if self.step > 0 else last - 1

    def indices(self) -> slice:
        return slice(self.start, self.end if self.end >= 0 else None, self.step)


@converts("SLICE", when=always)
def slice_part(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    sizes = need_numbers(context, operator.required_input(2), "size", len(shape))
    if known(context, operator.required_input(1)) is None:
        need_same_dtype(data, output)
        need_shape(output, sizes)
        return sliced_at_run_time(context, data, operator.required_input(1), sizes)
    begins = need_numbers(context, operator.required_input(1), "begin", len(shape))
    parts = []
    for axis, (begin, size, extent) in enumerate(zip(begins, sizes, shape, strict=True)):
        count = extent - begin if size == -1 else size
        fits = begin >= 0 and 0 < count <= extent - begin
        need(fits, f"begin {begin} and size {size} lie outside the {extent} elements of axis {axis}")
        parts.append(Part(begin, 1, count))
    need_same_dtype(data, output)
    need_shape(output, [part.count for part in parts])
    return apply(context, [data], lambda expr: sliced(expr, parts, shape), lambda array: picked(array, parts))


def sliced(expr: Expr, parts: Sequence[Part], shape: Sequence[int]) -> Expr:
    """Relax counts a negative end from the back, and clamps what lies in front of the axis to just before it."""
    ends = [part.end if part.end >= 0 else -extent - 1 for part, extent in zip(parts, shape, strict=True)]
    return relax.op.strided_slice(
        expr,
        axes=list(range(len(parts))),
        begin=[part.start for part in parts],
        end=ends,
        strides=[part.step for part in parts],
    )


def picked(array: Array, parts: Sequence[Part]) -> Array:
    return array[tuple(part.indices() for part in parts)]


@dataclass(frozen=True)
class Entry:
    """One position of STRIDED_SLICE's begin, end and strides, with its bits of the masks."""

    begin: int | None
    end: int | None
    step: int
    shrinks: bool


@converts("STRIDED_SLICE", when=always)
def strided_slice(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    options = operator.options
    need(not (hasattr(options, "Offset") and options.Offset()), "ends that count from the begin are not supported")
    entries = _dense(context, operator)
    shape = data.info.shape
    parts, kept = [], []
    axis = 0
    for entry in entries:
        if entry is None:
            kept.append(1)
            continue
        part = _part(entry, axis, shape[axis])
        parts.append(part)
        kept += [] if entry.shrinks else [part.count]
        axis += 1
    counts = tuple(part.count for part in parts)
    need_same_dtype(data, output)
    need_shape(output, kept)
    return apply(
        context,
        [data],
        lambda expr: reshaped(sliced(expr, parts, shape), counts, tuple(kept)),
        lambda array: picked(array, parts).reshape(kept),
    )


def _dense(context: Context, operator: Operator) -> list[Entry | None]:
    """One entry for each axis of the input, in order, and None where the output has an axis of its own.

    The ellipsis, or else the end of the lists, stands for all axes that are not named.
    """
    options, rank = operator.options, len(operator.required_input(0).info.shape)
    begins = need_known(context, operator.required_input(1), "begin").reshape(-1)
    count = len(begins)
    ends = need_numbers(context, operator.required_input(2), "end", count)
    steps = need_numbers(context, operator.required_input(3), "strides", count)
    named = sum(not (options.EllipsisMask() | options.NewAxisMask()) >> i & 1 for i in range(count))
    need((options.EllipsisMask() & (1 << count) - 1).bit_count() <= 1, "the mask has more than one ellipsis")
    need(named <= rank, f"begin names {named} axes of an input of rank {rank}")
    whole = Entry(None, None, 1, False)
    entries: list[Entry | None] = []
    for i in range(count):
        if options.EllipsisMask() >> i & 1:
            entries += [whole] * (rank - named)
        elif options.NewAxisMask() >> i & 1:
            entries.append(None)
        else:
            begin = None if options.BeginMask() >> i & 1 else int(begins[i])
            end = None if options.EndMask() >> i & 1 else ends[i]
            entries.append(Entry(begin, end, steps[i], bool(options.ShrinkAxisMask() >> i & 1)))
    return entries + [whole] * (rank - sum(entry is not None for entry in entries))


def _part(entry: Entry, axis: int, extent: int) -> Part:
    """A bound that is left out is the axis's own; others count from the end if negative, and are clamped."""
    step = entry.step
    if step == 0 or (entry.shrinks and step < 0):
        raise ModelError(f"stride {step} of axis {axis} is not possible")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    first, behind = (low, high) if step > 0 else (high, low)
    start = first if entry.begin is None else _clamped(entry.begin, extent, low, high)
    stop = behind if entry.end is None else _clamped(entry.end, extent, low, high)
    if entry.shrinks:
        need(start < extent, f"index {entry.begin} lies outside the {extent} elements of axis {axis}")
        return Part(start, 1, 1)
    count = -(-(stop - start) // step)
    need(count > 0, f"axis {axis} has no elements from {start} to {stop} with stride {step}; nothing to compute")
    return Part(start, step, count)


def _clamped(index: int, extent: int, low: int, high: int) -> int:
    return min(max(index + extent if index < 0 else index, low), high)
