"""Blocks of an image moved into channels or into the batch and back: views around one transpose."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import need_numbers, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.frontend.tflite.shapes import reshaped
from uaccel.frontend.tflite.slices import Part, sliced
from uaccel.model import Shape
from uaccel.tvm_api import relax


def _permuted(expr: Expr, blocks: Shape, order: tuple[int, ...], shape: Shape) -> Expr:
    """Seen as ``blocks``, in another order, seen as ``shape``."""
    return relax.op.reshape(relax.op.permute_dims(relax.op.reshape(expr, blocks), order), shape)


def _image(operator: Operator) -> tuple[Tensor, Tensor, int]:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_dtype(data, output)
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
    need_same_dtype(data, output)
    rank = len(data.info.shape)
    need(rank in (3, 4), f"input has rank {rank}, wanted 3 (NHC) or 4 (NHWC)")
    sizes = [*need_numbers(context, operator.required_input(1), "block shape", rank - 2), 1][:2]
    margins = [*need_numbers(context, operator.required_input(2), role, 2 * (rank - 2)), 0, 0][:4]
    need(min(sizes) > 0, f"block shape {sizes} must be positive")
    need(min(margins) >= 0, f"{role} {margins} must not be negative")
    return (sizes[0], sizes[1]), ((margins[0], margins[1]), (margins[2], margins[3]))


def _with_width(shape: Shape) -> Shape:
    return shape if len(shape) == 4 else (shape[0], shape[1], 1, shape[2])


def _without_width(shape: Shape, rank: int) -> Shape:
    return shape if rank == 4 else (shape[0], shape[1], shape[3])


@converts("SPACE_TO_BATCH_ND", when=always)
def space_to_batch(context: Context, operator: Operator) -> Expr:
    """Padding has the value zero: the zero point, which LiteRT takes and TFLite Micro leaves to chance."""
    data, output = operator.required_input(0), operator.outputs[0]
    (rows, columns), margins = _blocks(context, operator, "paddings")
    n, h, w, c = _with_width(data.info.shape)
    padded = (n, h + sum(margins[0]), w + sum(margins[1]), c)
    need(padded[1] % rows == 0 and padded[2] % columns == 0, f"{padded} has no whole blocks of {rows} by {columns}")
    shape = (n * rows * columns, padded[1] // rows, padded[2] // columns, c)
    need_shape(output, _without_width(shape, len(data.info.shape)))
    expr = reshaped(context.expr(data), data.info.shape, (n, h, w, c))
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
    return reshaped(_cropped(expr, whole, cropped, crops), cropped, output.info.shape)


def _cropped(expr: Expr, whole: Shape, cropped: Shape, crops: tuple[Pair, Pair]) -> Any:
    if whole == cropped:
        return expr
    starts = (0, crops[0][0], crops[1][0], 0)
    return sliced(expr, [Part(start, 1, count) for start, count in zip(starts, cropped, strict=True)], whole)
