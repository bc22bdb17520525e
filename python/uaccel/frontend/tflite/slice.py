"""Converts TFLite's operators that take parts of tensors: slices, gathers and splits, also by run-time indices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite import converter
from uaccel.frontend.tflite.checks import need_count, need_dtype, need_output, need_same_type, need_shape
from uaccel.frontend.tflite.converter import Context, Expr, apply, converts
from uaccel.frontend.tflite.quantized import dequantised
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Array, Shape
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

# Run-time positions: SLICE with a begin that is computed, DYNAMIC_UPDATE_SLICE, EMBEDDING_LOOKUP.
#
# A begin is clamped, so that the part always lies inside the tensor.

BEGIN_TYPES = ("int32", "int64")


def begins_of(context: Context, begin: Tensor, shape: Shape, sizes: Sequence[int]) -> list[Expr]:
    """The clamped begin of each axis, as an int32 tensor of shape [1]."""
    need_dtype(begin, BEGIN_TYPES, "begin")
    need(begin.info.elements == len(shape), f'begin "{begin.name}" is {begin.info}, wanted {len(shape)} entries')
    flat = relax.op.reshape(context.expr(begin), (len(shape),))
    found = []
    for axis, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        first = relax.op.strided_slice(flat, axes=[0], begin=[axis], end=[axis + 1])
        found.append(_between(first, extent - size, begin.info.dtype))
    return found


def _between(value: Expr, high: int, dtype: str = "int32") -> Expr:
    """Clamps to 0..high and then converts to int32: the other way round a large number could become a valid one."""
    low, most = (constant(np.array(end, dtype)) for end in (0, high))
    clamped = relax.op.minimum(relax.op.maximum(value, low), most)
    return clamped if dtype == "int32" else relax.op.astype(clamped, "int32")


def _count(extent: int) -> Expr:
    return constant(np.arange(extent, dtype=np.int32))


def sliced_at_run_time(context: Context, data: Tensor, begin: Tensor, sizes: Sequence[int]) -> Expr:
    """Takes ``sizes`` elements of each axis from a run-time begin on."""
    shape, expr = data.info.shape, context.expr(data)
    for axis, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        need(0 < size <= extent, f"size {size} does not fit the {extent} elements of axis {axis}")
    for axis, start in enumerate(begins_of(context, begin, shape, sizes)):
        if sizes[axis] < shape[axis]:
            expr = relax.op.take(expr, relax.op.add(start, _count(sizes[axis])), axis=axis, mode="clip")
    return expr


@converts("DYNAMIC_UPDATE_SLICE", when=always)
def dynamic_update_slice(context: Context, operator: Operator) -> Expr:
    """Spreads the update over the whole shape (each element takes the nearest) and selects it where it lies inside."""
    data, update, begin = (operator.required_input(number) for number in range(3))
    output, shape, sizes = operator.outputs[0], data.info.shape, update.info.shape
    need_same_type(data, output)
    need_output(update, output, shape)
    fits = len(sizes) == len(shape) and all(0 < size <= extent for size, extent in zip(sizes, shape, strict=False))
    need(fits, f"update {update.info} does not fit into {data.info}")
    spread, inside = context.expr(update), None
    for axis, start in enumerate(begins_of(context, begin, shape, sizes)):
        if sizes[axis] == shape[axis]:
            continue
        position = relax.op.subtract(_count(shape[axis]), start)
        nearest = _between(position, sizes[axis] - 1)
        spread = relax.op.take(spread, nearest, axis=axis, mode="clip")
        side = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
        here = relax.op.reshape(relax.op.equal(position, nearest), side)
        inside = here if inside is None else relax.op.logical_and(inside, here)
    return spread if inside is None else relax.op.where(inside, spread, context.expr(data))


@converts("EMBEDDING_LOOKUP", when=always)
def embedding_lookup(context: Context, operator: Operator) -> Expr:
    """Takes rows of a table, dequantised where the output is float; a wrong index takes the nearest row."""
    indices, table, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(indices, ("int32",), "indices")
    need_shape(output, [*indices.info.shape, *table.info.shape[1:]])
    rows = relax.op.take(context.expr(table), context.expr(indices), axis=0, mode="clip")
    if table.info.dtype == "int8" and output.info.dtype == "float32":
        reals = dequantised(rows, table)
        need(table.zero_point == 0, f"the table's zero point is {table.zero_point}, wanted 0")
        return reals
    need_same_type(table, output)
    return rows


# SLICE and STRIDED_SLICE: elements of each axis at a fixed step, forwards or backwards.


@dataclass(frozen=True)
class AxisSlice:
    """Selects ``count`` elements of one axis, from ``start`` on, ``step`` apart."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The index after the last element, in the step's direction; -1 if that lies before the axis."""
        last = self.start + (self.count - 1) * self.step
        return last + 1 if self.step > 0 else last - 1

    def indices(self) -> slice:
        return slice(self.start, self.end if self.end >= 0 else None, self.step)


@converts("SLICE", when=always)
def slice_part(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    begin, size = (operator.required_input(place).info.dtype for place in (1, 2))
    need(begin == size, f"its begin is {begin} and its size {size}; runtimes take one type for both")
    sizes = converter.need_numbers(context, operator.required_input(2), "size", len(shape))
    if converter.constant_value(context, operator.required_input(1)) is None:
        need_output(data, output, sizes)
        return sliced_at_run_time(context, data, operator.required_input(1), sizes)
    begins = converter.need_numbers(context, operator.required_input(1), "begin", len(shape))
    parts = []
    for axis, (first, given, extent) in enumerate(zip(begins, sizes, shape, strict=True)):
        count = extent - first if given == -1 else given
        fits = first >= 0 and 0 < count <= extent - first
        need(fits, f"begin {first} and size {given} lie outside the {extent} elements of axis {axis}")
        parts.append(AxisSlice(first, 1, count))
    need_output(data, output, [part.count for part in parts])
    return apply(context, [data], lambda expr: sliced(expr, parts, shape), lambda array: picked(array, parts))


def sliced(expr: Expr, parts: Sequence[AxisSlice], shape: Sequence[int]) -> Expr:
    """Emits a slice; an end before the axis is -extent - 1, since Relax counts negative ends from the back."""
    ends = [part.end if part.end >= 0 else -extent - 1 for part, extent in zip(parts, shape, strict=True)]
    return relax.op.strided_slice(
        expr,
        axes=list(range(len(parts))),
        begin=[part.start for part in parts],
        end=ends,
        strides=[part.step for part in parts],
    )


def picked(array: Array, parts: Sequence[AxisSlice]) -> Array:
    return array[tuple(part.indices() for part in parts)]


@dataclass(frozen=True)
class SliceEntry:
    """Holds one position of STRIDED_SLICE's begin, end and strides, with its bits of the masks."""

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
    need_output(data, output, kept)
    return apply(
        context,
        [data],
        lambda expr: converter.reshaped(sliced(expr, parts, shape), counts, tuple(kept)),
        lambda array: picked(array, parts).reshape(kept),
    )


def _dense(context: Context, operator: Operator) -> list[SliceEntry | None]:
    """One entry for each axis of the input, in order, and None where the output has an axis of its own.

    The ellipsis, or else the end of the lists, stands for all axes that are not named.
    """
    options, rank = operator.options, len(operator.required_input(0).info.shape)
    begins = converter.need_known(context, operator.required_input(1), "begin").reshape(-1)
    count = len(begins)
    ends = converter.need_numbers(context, operator.required_input(2), "end", count)
    steps = converter.need_numbers(context, operator.required_input(3), "strides", count)
    named = sum(not (options.EllipsisMask() | options.NewAxisMask()) >> i & 1 for i in range(count))
    need((options.EllipsisMask() & (1 << count) - 1).bit_count() <= 1, "the mask has more than one ellipsis")
    need(named <= rank, f"begin names {named} axes of an input of rank {rank}")
    whole = SliceEntry(None, None, 1, False)
    entries: list[SliceEntry | None] = []
    for i in range(count):
        if options.EllipsisMask() >> i & 1:
            entries += [whole] * (rank - named)
        elif options.NewAxisMask() >> i & 1:
            entries.append(None)
        else:
            begin = None if options.BeginMask() >> i & 1 else int(begins[i])
            end = None if options.EndMask() >> i & 1 else ends[i]
            entries.append(SliceEntry(begin, end, steps[i], bool(options.ShrinkAxisMask() >> i & 1)))
    return entries + [whole] * (rank - sum(entry is not None for entry in entries))


def _part(entry: SliceEntry, axis: int, extent: int) -> AxisSlice:
    """Resolves one axis: a missing bound is the axis's own, a negative one counts from the end; both are clamped."""
    step = entry.step
    if step == 0 or (entry.shrinks and step < 0):
        raise ModelError(f"stride {step} of axis {axis} is not possible")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    first, behind = (low, high) if step > 0 else (high, low)
    start = first if entry.begin is None else _clamped(entry.begin, extent, low, high)
    stop = behind if entry.end is None else _clamped(entry.end, extent, low, high)
    if entry.shrinks:
        need(start < extent, f"index {entry.begin} lies outside the {extent} elements of axis {axis}")
        return AxisSlice(start, 1, 1)
    count = -(-(stop - start) // step)
    need(count > 0, f"axis {axis} has no elements from {start} to {stop} with stride {step}; nothing to compute")
    return AxisSlice(start, step, count)


def _clamped(index: int, extent: int, low: int, high: int) -> int:
    return min(max(index + extent if index < 0 else index, low), high)


# GATHER and GATHER_ND: slices picked by constant or run-time indices.

INDEX_TYPES = ("int32", "int64")
MOST_AXES = 5  # Axes that the gather kernel takes (UACCEL_GATHER_AXES).


@converts("GATHER", when=always)
def gather(context: Context, operator: Operator) -> Expr:
    """Converts GATHER: a constant index must exist, at run time a wrong one takes the nearest slice."""
    data, indices, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    shape = data.info.shape
    axis = need_axis(operator.option("Axis"), len(shape))
    batch = operator.option("BatchDims")
    batch = batch + len(indices.info.shape) if batch < 0 else batch
    need(0 <= batch <= min(axis, len(indices.info.shape)), f"batch_dims {batch} is beyond axis {axis} or the indices")
    alike = shape[:batch] == indices.info.shape[:batch]
    need(alike, f"the first {batch} extents of {data.info} and indices {indices.info} differ")
    need_dtype(indices, INDEX_TYPES, "indices")
    need_output(data, output, [*shape[:axis], *indices.info.shape[batch:], *shape[axis + 1 :]])
    _need_inside(context, indices, shape[axis])
    if batch:
        return relax.op.reshape(_batched(context, data, indices, axis, batch), output.info.shape)
    return apply(
        context,
        [data, indices],
        lambda values, picks: relax.op.take(values, picks, axis=axis, mode="clip"),
        lambda values, picks: np.take(values, picks, axis),
    )


def _batched(context: Context, data: Tensor, indices: Tensor, axis: int, batch: int) -> Expr:
    """Gathers in batches from all slices side by side: each index is counted from its batch's first slice."""
    shape = data.info.shape
    batches, outer, extent = math.prod(shape[:batch]), math.prod(shape[batch:axis]), shape[axis]
    count = math.prod(indices.info.shape[batch:])
    firsts = np.arange(batches * outer, dtype=np.int32).reshape(batches, outer, 1) * np.int32(extent)
    picks = relax.op.reshape(context.expr(indices), (batches, 1, count))
    flat = relax.op.add(_between(picks, extent - 1, indices.info.dtype), constant(firsts))
    slices = relax.op.reshape(context.expr(data), (batches * outer * extent, math.prod(shape[axis + 1 :])))
    return relax.op.take(slices, relax.op.reshape(flat, (batches * outer * count,)), axis=0, mode="clip")


def _need_inside(context: Context, indices: Tensor, extent: int) -> None:
    value = converter.constant_value(context, indices)
    if value is not None and value.size:
        wrong = [int(index) for index in value.reshape(-1) if not 0 <= index < extent]
        need(not wrong, f"index {wrong[0] if wrong else 0} lies outside the {extent} elements of the axis")


@converts("GATHER_ND", when=always)
def gather_nd(context: Context, operator: Operator) -> Expr:
    data, indices, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    shape = data.info.shape
    need_dtype(indices, INDEX_TYPES, "indices")
    need(bool(shape) and bool(indices.info.shape), "input and indices need at least rank 1")
    count = indices.info.shape[-1]
    most = min(len(shape), MOST_AXES)
    fits = 0 < count <= most
    need(fits, f"indices of {count} entries for an input of rank {len(shape)}, at most {most} are possible")
    need_output(data, output, [*indices.info.shape[:-1], *shape[count:]])
    flat = _flat_indices(converter.constant_value(context, indices), shape[:count])
    if flat is None and count > 1:
        picks = relax.op.astype(context.expr(indices), "int64")
        return relax.op.gather_nd(context.expr(data), picks)
    picks = context.expr(indices) if flat is None else constant(flat)
    slices = relax.op.reshape(context.expr(data), (-1, *shape[count:]))
    taken = relax.op.take(slices, relax.op.reshape(picks, (-1,)), axis=0, mode="clip")
    return relax.op.reshape(taken, output.info.shape)


def _flat_indices(indices: Array | None, picked: Shape) -> Array | None:
    """Constant index vectors as flat slice numbers; None for run-time ones."""
    if indices is None:
        return None
    for axis, extent in enumerate(picked):
        entries = indices[..., axis]
        inside = bool(((entries >= 0) & (entries < extent)).all())
        need(inside, f"an index lies outside the {extent} elements of axis {axis}")
    vectors = tuple(np.moveaxis(indices, -1, 0))
    return np.asarray(np.ravel_multi_index(vectors, picked), np.int32)


# SPLIT, SPLIT_V and UNPACK: one tensor into several.


@converts("SPLIT", when=always)
def split(context: Context, operator: Operator) -> list[Expr]:
    """Splits into as many parts as there are outputs, as TFLite Micro does; ``num_splits`` repeats their number."""
    data = operator.required_input(1)
    axis = _axis(context, operator.required_input(0), data)
    count = len(operator.outputs)
    need(data.info.shape[axis] % count == 0, f"{data.info} has no {count} equal parts along axis {axis}")
    return _parts(context, operator, data, axis, [data.info.shape[axis] // count] * count)


@converts("SPLIT_V", when=always)
def split_v(context: Context, operator: Operator) -> list[Expr]:
    data = operator.required_input(0)
    axis = _axis(context, operator.required_input(2), data)
    sizes = converter.need_numbers(context, operator.required_input(1), "sizes", len(operator.outputs))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = data.info.shape[axis] - sum(sizes) - 1
    fits = min(sizes) > 0 and sum(sizes) == data.info.shape[axis]
    need(fits, f"sizes {sizes} are no parts of the {data.info.shape[axis]} elements along axis {axis}")
    return _parts(context, operator, data, axis, sizes)


def _axis(context: Context, tensor: Tensor, data: Tensor) -> int:
    return need_axis(converter.need_numbers(context, tensor, "axis", 1)[0], len(data.info.shape))


def _parts(context: Context, operator: Operator, data: Tensor, axis: int, sizes: list[int]) -> list[Expr]:
    shape = data.info.shape
    for output, size in zip(operator.outputs, sizes, strict=True):
        need_output(data, output, [*shape[:axis], size, *shape[axis + 1 :]])
    ends = list(itertools.accumulate(sizes))[:-1]
    value = converter.constant_value(context, data)
    if value is not None:
        return [constant(part) for part in np.split(value, ends, axis)]
    if len(sizes) == 1:
        return [relax.op.reshape(context.expr(data), shape)]
    parts = relax.op.split(context.expr(data), ends, axis)
    return [relax.TupleGetItem(parts, number) for number in range(len(sizes))]


@converts("UNPACK", when=always)
def unpack(context: Context, operator: Operator) -> list[Expr]:
    """Splits along the axis into slices of one element, and reshapes the axis away."""
    data = operator.required_input(0)
    shape = data.info.shape
    axis = need_axis(operator.option("Axis"), len(shape))
    count = len(operator.outputs)
    need(count == shape[axis], f"{count} outputs for the {shape[axis]} elements along axis {axis}")
    need_count(operator, "Num", count, "outputs")
    rest = (*shape[:axis], *shape[axis + 1 :])
    for output in operator.outputs:
        need_output(data, output, rest)
    value = converter.constant_value(context, data)
    if value is not None:
        return [constant(part.reshape(rest)) for part in np.split(value, count, axis)]
    if count == 1:
        return [relax.op.reshape(context.expr(data), rest)]
    parts = relax.op.split(context.expr(data), count, axis)
    return [relax.op.reshape(relax.TupleGetItem(parts, number), rest) for number in range(count)]
