"""Converts TFLite's operators that move or repeat elements: blocks, transposes, joins, pads, tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from uaccel.errors import need
from uaccel.frontend.checks import need_axis, shape_text
from uaccel.frontend.converters import always
from uaccel.frontend.tflite import converter
from uaccel.frontend.tflite.checks import need_constant, need_count, need_dtype, need_output, need_same_type, need_shape
from uaccel.frontend.tflite.converter import Context, Expr, apply, converts
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.frontend.tflite.slice import AxisSlice, sliced
from uaccel.model import Array, Shape
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

# SPACE_TO_DEPTH, SPACE_TO_BATCH_ND and their inverses: one transposition between two reshapes.


def _permuted(expr: Expr, blocks: Shape, order: tuple[int, ...], shape: Shape) -> Expr:
    """Reshapes to ``blocks``, transposes by ``order`` and reshapes to ``shape``."""
    return relax.op.reshape(relax.op.permute_dims(relax.op.reshape(expr, blocks), order), shape)


def _image(operator: Operator) -> tuple[Tensor, Tensor, int]:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    need(len(data.info.shape) == 4, f"input has rank {len(data.info.shape)}, wanted 4 (NHWC)")
    size = operator.option("BlockSize")
    need(size > 0, f"block size {size} must be positive")
    return data, output, size


@converts("SPACE_TO_DEPTH", when=always)
def space_to_depth(context: Context, operator: Operator) -> Expr:
    data, output, size = _image(operator)
    n, h, w, c = data.info.shape
    need(h % size == 0 and w % size == 0, f"{data.info} has no whole blocks of {size} by {size}")
    shape = (n, h // size, w // size, size * size * c)
    need_shape(output, shape)
    return _permuted(context.expr(data), (n, h // size, size, w // size, size, c), (0, 1, 3, 2, 4, 5), shape)


@converts("DEPTH_TO_SPACE", when=always)
def depth_to_space(context: Context, operator: Operator) -> Expr:
    data, output, size = _image(operator)
    n, h, w, c = data.info.shape
    need(c % (size * size) == 0, f"the {c} channels of {data.info} hold no blocks of {size} by {size}")
    shape = (n, h * size, w * size, c // (size * size))
    need_shape(output, shape)
    return _permuted(context.expr(data), (n, h, w, size, size, shape[3]), (0, 1, 3, 2, 4, 5), shape)


Pair = tuple[int, int]


def _blocks(context: Context, operator: Operator, role: str) -> tuple[Pair, tuple[Pair, Pair]]:
    """Block size and margins of height and width; a tensor of rank 3 has a width of 1."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    rank = len(data.info.shape)
    need(rank in (3, 4), f"input has rank {rank}, wanted 3 (NHC) or 4 (NHWC)")
    sizes = [*converter.need_numbers(context, operator.required_input(1), "block shape", rank - 2), 1][:2]
    margins = [*converter.need_numbers(context, operator.required_input(2), role, 2 * (rank - 2)), 0, 0][:4]
    need(min(sizes) > 0, f"block shape {sizes} must be positive")
    need(min(margins) >= 0, f"{role} {margins} must not be negative")
    return (sizes[0], sizes[1]), ((margins[0], margins[1]), (margins[2], margins[3]))


def _with_width(shape: Shape) -> Shape:
    return shape if len(shape) == 4 else (shape[0], shape[1], 1, shape[2])


def _without_width(shape: Shape, rank: int) -> Shape:
    return shape if rank == 4 else (shape[0], shape[1], shape[3])


@converts("SPACE_TO_BATCH_ND", when=always)
def space_to_batch(context: Context, operator: Operator) -> Expr:
    """Pads with the zero point, as LiteRT does; TFLite Micro leaves the value undefined."""
    data, output = operator.required_input(0), operator.outputs[0]
    (rows, columns), margins = _blocks(context, operator, "paddings")
    n, h, w, c = _with_width(data.info.shape)
    padded = (n, h + sum(margins[0]), w + sum(margins[1]), c)
    need(padded[1] % rows == 0 and padded[2] % columns == 0, f"{padded} has no whole blocks of {rows} by {columns}")
    shape = (n * rows * columns, padded[1] // rows, padded[2] // columns, c)
    need_shape(output, _without_width(shape, len(data.info.shape)))
    expr = converter.reshaped(context.expr(data), data.info.shape, (n, h, w, c))
    if any(margins[0] + margins[1]):
        widths = [0, 0, *margins[0], *margins[1], 0, 0]
        expr = relax.op.nn.pad(expr, widths, "constant", float(_zero(output)))
    blocks = (n, shape[1], rows, shape[2], columns, c)
    return _permuted(expr, blocks, (2, 4, 0, 1, 3, 5), output.info.shape)


def _zero(output: Tensor) -> int:
    quantised = output.quantisation is not None and output.info.dtype in ("int8", "uint8")
    return output.zero_point if quantised else 0


@converts("BATCH_TO_SPACE_ND", when=always)
def batch_to_space(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    (rows, columns), crops = _blocks(context, operator, "crops")
    batch, h, w, c = _with_width(data.info.shape)
    need(batch % (rows * columns) == 0, f"the batch of {data.info} holds no blocks of {rows} by {columns}")
    n = batch // (rows * columns)
    whole = (n, h * rows, w * columns, c)
    cropped = (n, whole[1] - sum(crops[0]), whole[2] - sum(crops[1]), c)
    need(min(cropped) > 0, f"crops {list(crops)} leave nothing of {list(whole)}")
    need_shape(output, _without_width(cropped, len(data.info.shape)))
    expr = _permuted(context.expr(data), (rows, columns, n, h, w, c), (2, 3, 0, 4, 1, 5), whole)
    return converter.reshaped(_cropped(expr, whole, cropped, crops), cropped, output.info.shape)


def _cropped(expr: Expr, whole: Shape, cropped: Shape, crops: tuple[Pair, Pair]) -> Any:
    if whole == cropped:
        return expr
    starts = (0, crops[0][0], crops[1][0], 0)
    return sliced(expr, [AxisSlice(start, 1, count) for start, count in zip(starts, cropped, strict=True)], whole)


# TRANSPOSE and REVERSE_V2: the same elements in another order.


@converts("TRANSPOSE", when=always)
def transpose(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    given = converter.need_numbers(context, operator.required_input(1), "permutation", len(shape))
    order = [need_axis(axis, len(shape)) for axis in given]
    need(sorted(order) == list(range(len(shape))), f"{given} is no permutation of the axes of {data.info}")
    need_output(data, output, [shape[axis] for axis in order])
    return apply(context, [data], lambda expr: relax.op.permute_dims(expr, order), lambda array: array.transpose(order))


@converts("REVERSE_V2", when=always)
def reverse(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    given = converter.need_known(context, operator.required_input(1), "axis").reshape(-1)
    axes = sorted({need_axis(int(axis), len(data.info.shape)) for axis in given})
    need(bool(axes), "no axis is given")
    need_output(data, output, data.info.shape)
    return apply(context, [data], lambda expr: _flipped(expr, axes), lambda array: np.flip(array, tuple(axes)))


def _flipped(expr: Expr, axes: list[int]) -> Expr:
    for axis in axes:
        expr = relax.op.flip(expr, axis)
    return expr


# CONCATENATION and PACK: several tensors in one.


@converts("CONCATENATION", when=always)
def concatenation(context: Context, operator: Operator) -> Expr:
    parts, output = _parts(operator)
    activation = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(activation == "NONE", f"fused activation {activation} is not supported; use none")
    rank = len(output.info.shape)
    axis = need_axis(operator.option("Axis"), rank)
    shape = list(output.info.shape)
    for part in parts:
        _need_alike(part, output)
        others = [extent for i, extent in enumerate(part.info.shape) if i != axis]
        fits = len(part.info.shape) == rank and others == shape[:axis] + shape[axis + 1 :]
        need(fits, f'input "{part.name}" ({part.info}) does not fit output {output.info} along axis {axis}')
    shape[axis] = sum(part.info.shape[axis] for part in parts)
    need_shape(output, shape)
    return apply(
        context, parts, lambda *exprs: relax.op.concat(list(exprs), axis), lambda *arrays: np.concatenate(arrays, axis)
    )


def _parts(operator: Operator) -> tuple[list[Tensor], Tensor]:
    parts, output = [operator.required_input(i) for i in range(len(operator.inputs))], operator.outputs[0]
    need(bool(parts), "there are no inputs")
    for part in parts:
        need_same_type(part, output)
    return parts, output


def _need_alike(part: Tensor, output: Tensor) -> None:
    """The reference checks int8 alone, and copies the stored integers whatever the type."""
    need(
        output.info.dtype != "int8" or part.quantisation == output.quantisation,
        f'input "{part.name}" ({part.quantisation or "not quantised"}) and output '
        f"({output.quantisation or 'not quantised'}) must be quantised alike: this operator cannot rescale",
    )
    mixed = output.info.dtype == "uint8" and (part.quantisation is None) != (output.quantisation is None)
    need(not mixed, f'of input "{part.name}" and output "{output.name}" only one has a scale; both need one, or none')


@converts("PACK", when=always)
def pack(context: Context, operator: Operator) -> Expr:
    parts, output = _parts(operator)
    shape = list(parts[0].info.shape)
    need_count(operator, "ValuesCount", len(parts), "inputs")
    axis = need_axis(operator.option("Axis"), len(shape) + 1)
    for part in parts:
        need(list(part.info.shape) == shape, f'input "{part.name}" ({part.info}) differs from {parts[0].info}')
    need_shape(output, [*shape[:axis], len(parts), *shape[axis:]])
    return apply(
        context, parts, lambda *exprs: relax.op.stack(list(exprs), axis), lambda *arrays: np.stack(arrays, axis)
    )


# PAD, PADV2 and MIRROR_PAD: the border holds the zero point, a given constant, or mirrored elements.

Widths = list[tuple[int, int]]

MODES = {value: name for name, value in vars(tflite.MirrorPadMode).items() if isinstance(value, int)}


@converts("PAD", "PADV2", when=always)
def pad(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    widths = _widths(context, operator)
    value = _value(operator, output)
    flat = [width for pair in widths for width in pair]
    return apply(
        context,
        [data],
        lambda expr: relax.op.nn.pad(expr, flat, "constant", float(value)),
        lambda array: np.pad(array, widths, constant_values=value),
    )


def _widths(context: Context, operator: Operator) -> Widths:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    paddings = converter.need_known(context, operator.required_input(1), "paddings")
    rank = len(data.info.shape)
    need(paddings.shape == (rank, 2), f"paddings have shape {shape_text(paddings.shape)}, wanted [{rank},2]")
    need(int(paddings.min(initial=0)) >= 0, f"padding {int(paddings.min(initial=0))} is negative; use SLICE to cut")
    widths = [(int(before), int(after)) for before, after in paddings]
    need_shape(output, [sum(pair) + extent for pair, extent in zip(widths, data.info.shape, strict=True)])
    return widths


def _value(operator: Operator, output: Tensor) -> Array:
    """The stored value of the border: the given constant, or the one that stands for zero."""
    given = operator.optional_input(2)
    if given is None:
        stored = output.quantisation.zero_point if output.quantisation and output.info.dtype in ("int8", "uint8") else 0
        return _stored(stored, output)
    need_dtype(given, (output.info.dtype,), "padding value")
    value = need_constant(given, "padding value")
    need(value.size == 1, f'padding value "{given.name}" has {value.size} elements, wanted 1')
    need(
        output.info.dtype != "int8" or given.quantisation == output.quantisation,
        f'padding value "{given.name}" ({given.quantisation or "not quantised"}) and output '
        f"({output.quantisation or 'not quantised'}) must be quantised alike",
    )
    exact = value.dtype.kind != "i" or abs(int(value.reshape(()))) <= 2**53
    need(exact and not np.isnan(value).any(), f"padding value {value.reshape(())} has no exact form here")
    return value.reshape(())


def _stored(value: int, output: Tensor) -> Array:
    kind = np.dtype(output.info.dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        need(limits.min <= value <= limits.max, f"zero point {value} does not fit {kind}")
    return np.array(value, kind)


@converts("MIRROR_PAD", when=always)
def mirror_pad(context: Context, operator: Operator) -> Expr:
    """Converts MIRROR_PAD by picking the mirrored indices of each axis."""
    data = operator.required_input(0)
    widths = _widths(context, operator)
    mode = MODES.get(operator.option("Mode"), "unknown")
    need(mode in ("REFLECT", "SYMMETRIC"), f"mode {mode} is not known")
    edge = 1 if mode == "REFLECT" else 0
    for axis, (pair, extent) in enumerate(zip(widths, data.info.shape, strict=True)):
        most = extent - edge
        need(max(pair) <= most, f"padding {max(pair)} of axis {axis} is more than the {most} elements to mirror")
    return apply(
        context,
        [data],
        lambda expr: _mirrored(expr, data, widths, edge),
        lambda array: np.pad(array, widths, mode.lower()),
    )


def _mirrored(expr: Expr, data: Tensor, widths: Widths, edge: int) -> Expr:
    for axis, ((before, after), extent) in enumerate(zip(widths, data.info.shape, strict=True)):
        if before or after:
            left = range(before - 1 + edge, edge - 1, -1)
            right = range(extent - 1 - edge, extent - 1 - edge - after, -1)
            indices = np.array([*left, *range(extent), *right], np.int32)
            expr = relax.op.take(expr, constant(indices), axis=axis, mode="clip")
    return expr


# TILE, BROADCAST_TO, FILL and ZEROS_LIKE: one value, or one tensor, many times.


@converts("TILE", when=always)
def tile(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    repeats = converter.need_numbers(context, operator.required_input(1), "multiples", len(shape))
    need(min(repeats, default=1) > 0, f"multiples {repeats} must be positive")
    need_output(data, output, [extent * count for extent, count in zip(shape, repeats, strict=True)])
    return apply(context, [data], lambda expr: relax.op.tile(expr, repeats), lambda array: np.tile(array, repeats))


@converts("BROADCAST_TO", when=always)
def broadcast_to(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    _need_named_shape(context, operator, 1)
    old, new = data.info.shape, output.info.shape
    tail = new[len(new) - len(old) :]
    fits = len(old) <= len(new) and all(a in (1, b) for a, b in zip(old, tail, strict=True))
    need(fits, f"{data.info} cannot be broadcast to {output.info}")
    return _broadcast(context, operator, 0, new)


def _need_named_shape(context: Context, operator: Operator, position: int) -> None:
    """Checks a shape operand against the output's shape, unless it is computed at run time."""
    value = converter.constant_value(context, operator.required_input(position))
    if value is not None:
        need_shape(operator.outputs[0], [int(extent) for extent in value.reshape(-1)])


def _broadcast(context: Context, operator: Operator, position: int, shape: Shape) -> Expr:
    def folded(array: Array) -> Array:
        return np.broadcast_to(array, shape)

    tensor = operator.required_input(position)
    return apply(context, [tensor], lambda expr: relax.op.broadcast_to(expr, shape), folded)


@converts("FILL", when=always)
def fill(context: Context, operator: Operator) -> Expr:
    value, output = operator.required_input(1), operator.outputs[0]
    need(value.info.elements == 1, f'value "{value.name}" has {value.info.elements} elements, wanted 1')
    need_same_type(value, output)
    _need_named_shape(context, operator, 0)
    return _broadcast(context, operator, 1, output.info.shape)


@converts("ZEROS_LIKE", when=always)
def zeros_like(context: Context, operator: Operator) -> Expr:
    """Gives stored zeros whatever the zero point, as the reference does."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_output(data, output, data.info.shape)
    context.budget.bytes(output.info.size)
    return constant(np.zeros(output.info.shape, output.info.dtype))
