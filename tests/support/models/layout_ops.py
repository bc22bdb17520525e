"""Rows of operators that move bytes, each from the few numbers that matter; numpy gives the outputs' shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.models.many import Row
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue

Shape = tuple[int, ...]
Pairs = Sequence[tuple[int, int]]
Inputs = list[Activation | Constant | None]

ZERO_POINTS = {"int8": -5, "uint8": 9, "int16": 0}
SCALE = 0.25


def activation(shape: Sequence[int], dtype: str) -> Activation:
    if dtype in ZERO_POINTS:
        return Activation(tuple(shape), dtype, SCALE, ZERO_POINTS[dtype])
    return Activation(tuple(shape), dtype)


def constant(values: Any, dtype: str) -> Constant:
    """Quantised as every activation of that type is."""
    array = np.asarray(values).astype(dtype)
    return Constant(array, (SCALE,), (ZERO_POINTS[dtype],)) if dtype in ZERO_POINTS else Constant(array)


def numbers(values: Any) -> Constant:
    return Constant(np.asarray(values, np.int32))


def places(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """A tensor in whose place numpy works out a shape."""
    return np.zeros(tuple(shape), np.int8)


def pad(shape: Shape, widths: Pairs, dtype: str = "int8", value: float | None = None) -> Row:
    output = [extent + sum(pair) for extent, pair in zip(shape, widths, strict=True)]
    inputs: Inputs = [activation(shape, dtype), numbers(np.reshape(widths, (-1, 2)))]
    if value is not None:
        inputs.append(constant(value, dtype))
    return Row("PAD" if value is None else "PADV2", inputs, [activation(output, dtype)])


def mirror_pad(shape: Shape, widths: Pairs, mode: str, dtype: str = "int8") -> Row:
    output = [extent + sum(pair) for extent, pair in zip(shape, widths, strict=True)]
    inputs: Inputs = [activation(shape, dtype), numbers(widths)]
    return Row("MIRROR_PAD", inputs, [activation(output, dtype)], {"mode": mode})


def concatenation(
    shape: Shape, sizes: Sequence[int], axis: int, dtype: str = "int8", constants: Sequence[int] = ()
) -> Row:
    """Tensors of ``shape`` but for the extent along ``axis``; those numbered in ``constants`` are in the file."""
    along = axis % len(shape)
    shapes = [(*shape[:along], size, *shape[along + 1 :]) for size in sizes]
    inputs: Inputs = [
        constant(np.arange(np.prod(part)).reshape(part) % 100, dtype) if i in constants else activation(part, dtype)
        for i, part in enumerate(shapes)
    ]
    output = (*shape[:along], sum(sizes), *shape[along + 1 :])
    return Row("CONCATENATION", inputs, [activation(output, dtype)], {"axis": axis})


def split(shape: Shape, count: int, axis: int, dtype: str = "int8") -> Row:
    parts = [activation(part.shape, dtype) for part in np.split(places(shape), count, axis)]
    return Row("SPLIT", [numbers(axis), activation(shape, dtype)], parts, {"num_splits": count})


def split_v(shape: Shape, sizes: Sequence[int], axis: int, dtype: str = "int8") -> Row:
    """One size may be -1, what is left."""
    known = [size if size >= 0 else shape[axis] - sum(sizes) - 1 for size in sizes]
    parts = [activation(part.shape, dtype) for part in np.split(places(shape), np.cumsum(known)[:-1], axis)]
    return Row("SPLIT_V", [activation(shape, dtype), numbers(sizes), numbers(axis)], parts, {"num_splits": len(sizes)})


def unpack(shape: Shape, axis: int, dtype: str = "int8") -> Row:
    output = np.delete(shape, axis)
    count = shape[axis]
    outputs = [activation(output.tolist(), dtype)] * count
    return Row("UNPACK", [activation(shape, dtype)], outputs, {"axis": axis, "num": count})


def pack(shape: Shape, count: int, axis: int, dtype: str = "int8") -> Row:
    output = np.stack([places(shape)] * count, axis).shape
    options: dict[str, OptionValue] = {"axis": axis, "values_count": count}
    return Row("PACK", [activation(shape, dtype)] * count, [activation(output, dtype)], options)


def slice_part(shape: Shape, begin: Sequence[int], size: Sequence[int], dtype: str = "int8") -> Row:
    output = [extent - b if s == -1 else s for extent, b, s in zip(shape, begin, size, strict=True)]
    return Row("SLICE", [activation(shape, dtype), numbers(begin), numbers(size)], [activation(output, dtype)])


def strided_slice(shape: Shape, index: Sequence[Any], dtype: str = "int8") -> Row:
    """As numpy would index; a missing bound sets the mask's bit, an integer shrinks, None adds an axis."""
    begins, ends, steps = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for bit, entry in enumerate(index):
        begin, end, step = 0, 0, 1
        if entry is None:
            masks["new_axis_mask"] |= 1 << bit
        elif isinstance(entry, int):
            masks["shrink_axis_mask"] |= 1 << bit
            begin, end = entry, entry + 1
        elif entry is Ellipsis:
            masks["ellipsis_mask"] |= 1 << bit
        else:
            masks["begin_mask"] |= (entry.start is None) << bit
            masks["end_mask"] |= (entry.stop is None) << bit
            begin, end, step = entry.start or 0, entry.stop or 0, entry.step or 1
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    output = places(shape)[tuple(index)].shape
    inputs: Inputs = [activation(shape, dtype), numbers(begins), numbers(ends), numbers(steps)]
    return Row("STRIDED_SLICE", inputs, [activation(output, dtype)], masks)


def transpose(shape: Shape, order: Sequence[int], dtype: str = "int8") -> Row:
    output = [shape[axis] for axis in order]
    return Row("TRANSPOSE", [activation(shape, dtype), numbers(order)], [activation(output, dtype)])


def reverse(shape: Shape, axes: Sequence[int], dtype: str = "int8") -> Row:
    return Row("REVERSE_V2", [activation(shape, dtype), numbers(axes)], [activation(shape, dtype)])


def gather(shape: Shape, indices: Any, axis: int, dtype: str = "int8") -> Row:
    output = np.take(places(shape), indices, axis).shape
    inputs: Inputs = [activation(shape, dtype), numbers(indices)]
    return Row("GATHER", inputs, [activation(output, dtype)], {"axis": axis})


def gather_nd(shape: Shape, indices: Any, dtype: str = "int8") -> Row:
    picked = np.asarray(indices)
    output = (*picked.shape[:-1], *shape[picked.shape[-1] :])
    return Row("GATHER_ND", [activation(shape, dtype), numbers(indices)], [activation(output, dtype)])


def tile(shape: Shape, multiples: Sequence[int], dtype: str = "int8") -> Row:
    output = np.tile(places(shape), multiples).shape
    return Row("TILE", [activation(shape, dtype), numbers(multiples)], [activation(output, dtype)])


def broadcast_to(shape: Shape, output: Shape, dtype: str = "int8") -> Row:
    return Row("BROADCAST_TO", [activation(shape, dtype), numbers(output)], [activation(output, dtype)])


def fill(output: Shape, dtype: str = "int8", value: float | None = None) -> Row:
    given = activation((), dtype) if value is None else constant(value, dtype)
    return Row("FILL", [numbers(output), given], [activation(output, dtype)])


def space_to_depth(shape: Shape, size: int, dtype: str = "int8") -> Row:
    n, h, w, c = shape
    output = (n, h // size, w // size, c * size * size)
    return Row("SPACE_TO_DEPTH", [activation(shape, dtype)], [activation(output, dtype)], {"block_size": size})


def depth_to_space(shape: Shape, size: int, dtype: str = "int8") -> Row:
    n, h, w, c = shape
    output = (n, h * size, w * size, c // (size * size))
    return Row("DEPTH_TO_SPACE", [activation(shape, dtype)], [activation(output, dtype)], {"block_size": size})


def space_to_batch(shape: Shape, blocks: Sequence[int], paddings: Pairs, dtype: str = "int8") -> Row:
    padded = [e + sum(pair) for e, pair in zip(shape[1:], paddings, strict=False)]
    rest = shape[1 + len(blocks) :]
    output = (shape[0] * int(np.prod(blocks)), *(e // b for e, b in zip(padded, blocks, strict=True)), *rest)
    inputs: Inputs = [activation(shape, dtype), numbers(blocks), numbers(paddings)]
    return Row("SPACE_TO_BATCH_ND", inputs, [activation(output, dtype)])


def batch_to_space(shape: Shape, blocks: Sequence[int], crops: Pairs, dtype: str = "int8") -> Row:
    grown = (e * b - sum(pair) for e, b, pair in zip(shape[1:], blocks, crops, strict=False))
    output = (shape[0] // int(np.prod(blocks)), *grown, *shape[1 + len(blocks) :])
    inputs: Inputs = [activation(shape, dtype), numbers(blocks), numbers(crops)]
    return Row("BATCH_TO_SPACE_ND", inputs, [activation(output, dtype)])


def reshape(operator: str, shape: Shape, output: Shape, dtype: str = "int8", **options: OptionValue) -> Row:
    """RESHAPE or SQUEEZE; the shape or the axes are options."""
    return Row(operator, [activation(shape, dtype)], [activation(output, dtype)], options)


def reshape_by(operator: str, shape: Shape, given: Any, output: Shape, dtype: str = "int8") -> Row:
    """RESHAPE or EXPAND_DIMS; the shape or the axis is a tensor."""
    return Row(operator, [activation(shape, dtype), numbers(given)], [activation(output, dtype)])
