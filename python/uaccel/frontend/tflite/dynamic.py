"""Parts that begin where a run says: SLICE with a begin that is computed, DYNAMIC_UPDATE_SLICE, EMBEDDING_LOOKUP.

A begin beyond the last that fits counts as that one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.elementwise import need_one_scale
from uaccel.frontend.tflite.folding import need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Shape
from uaccel.ops.base import constant, get
from uaccel.ops.quantize import Dequantize, DequantizeAttrs
from uaccel.tvm_api import relax

INDEX_TYPES = ("int32", "int64")


def begins_of(context: Context, begin: Tensor, shape: Shape, sizes: Sequence[int]) -> list[Expr]:
    """For each axis where a part begins, [1] of int32, so that the part lies inside."""
    need_dtype(begin, INDEX_TYPES, "begin")
    need(begin.info.elements == len(shape), f'begin "{begin.name}" is {begin.info}, wanted {len(shape)} entries')
    flat = relax.op.astype(relax.op.reshape(context.expr(begin), (len(shape),)), "int32")
    found = []
    for axis, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        first = relax.op.strided_slice(flat, axes=[0], begin=[axis], end=[axis + 1])
        found.append(_between(first, extent - size))
    return found


def _between(value: Expr, high: int) -> Expr:
    """0..high, of int32."""
    return relax.op.minimum(relax.op.maximum(value, _number(0)), _number(high))


def _number(value: int) -> Expr:
    return constant(np.array(value, np.int32))


def _count(extent: int) -> Expr:
    return constant(np.arange(extent, dtype=np.int32))


def sliced_at_run_time(context: Context, data: Tensor, begin: Tensor, sizes: Sequence[int]) -> Expr:
    """``sizes`` elements of each axis."""
    shape, expr = data.info.shape, context.expr(data)
    for axis, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        need(0 < size <= extent, f"size {size} does not fit the {extent} elements of axis {axis}")
    for axis, start in enumerate(begins_of(context, begin, shape, sizes)):
        if sizes[axis] < shape[axis]:
            expr = relax.op.take(expr, relax.op.add(start, _count(sizes[axis])), axis=axis, mode="clip")
    return expr


@converts("DYNAMIC_UPDATE_SLICE", when=always)
def dynamic_update_slice(context: Context, operator: Operator) -> Expr:
    data, update, begin = (operator.required_input(number) for number in range(3))
    output, shape, sizes = operator.outputs[0], data.info.shape, update.info.shape
    need_same_dtype(data, output)
    need_same_dtype(update, output)
    need_shape(output, shape)
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
    """Rows of a table; quantised ones become float where the output is. A wrong index takes the nearest row."""
    indices, table, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(indices, ("int32",), "indices")
    need_shape(output, [*indices.info.shape, *table.info.shape[1:]])
    rows = relax.op.take(context.expr(table), context.expr(indices), axis=0, mode="clip")
    if table.info.dtype == "int8" and output.info.dtype == "float32":
        need_one_scale(table)
        need(table.zero_point == 0, f"the table's zero point is {table.zero_point}, wanted 0")
        return get(Dequantize)(rows, attrs=DequantizeAttrs(float(np.float32(table.scale)), 0))
    need_same_dtype(table, output)
    return rows
