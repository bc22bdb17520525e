"""SPLIT, SPLIT_V and UNPACK: one tensor into several."""

from __future__ import annotations

import itertools

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import known, need_numbers, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("SPLIT", when=always)
def split(context: Context, operator: Operator) -> list[Expr]:
    data = operator.required_input(1)
    axis = _axis(context, operator.required_input(0), data)
    count = len(operator.outputs)
    need(data.info.shape[axis] % count == 0, f"{data.info} has no {count} equal parts along axis {axis}")
    return _parts(context, operator, data, axis, [data.info.shape[axis] // count] * count)


@converts("SPLIT_V", when=always)
def split_v(context: Context, operator: Operator) -> list[Expr]:
    data = operator.required_input(0)
    axis = _axis(context, operator.required_input(2), data)
    sizes = need_numbers(context, operator.required_input(1), "sizes", len(operator.outputs))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = data.info.shape[axis] - sum(sizes) - 1
    fits = min(sizes) > 0 and sum(sizes) == data.info.shape[axis]
    need(fits, f"sizes {sizes} are no parts of the {data.info.shape[axis]} elements along axis {axis}")
    return _parts(context, operator, data, axis, sizes)


def _axis(context: Context, tensor: Tensor, data: Tensor) -> int:
    return need_axis(need_numbers(context, tensor, "axis", 1)[0], len(data.info.shape))


def _parts(context: Context, operator: Operator, data: Tensor, axis: int, sizes: list[int]) -> list[Expr]:
    shape = data.info.shape
    for output, size in zip(operator.outputs, sizes, strict=True):
        need_same_dtype(data, output)
        need_shape(output, [*shape[:axis], size, *shape[axis + 1 :]])
    ends = list(itertools.accumulate(sizes))[:-1]
    value = known(context, data)
    if value is not None:
        return [constant(part) for part in np.split(value, ends, axis)]
    if len(sizes) == 1:
        return [relax.op.reshape(context.expr(data), shape)]
    parts = relax.op.split(context.expr(data), ends, axis)
    return [relax.TupleGetItem(parts, number) for number in range(len(sizes))]


@converts("UNPACK", when=always)
def unpack(context: Context, operator: Operator) -> list[Expr]:
    """A slice of one element along the axis, of which the shape then forgets the axis."""
    data = operator.required_input(0)
    shape = data.info.shape
    axis = need_axis(operator.option("Axis"), len(shape))
    count = len(operator.outputs)
    need(count == shape[axis], f"{count} outputs for the {shape[axis]} elements along axis {axis}")
    rest = (*shape[:axis], *shape[axis + 1 :])
    for output in operator.outputs:
        need_same_dtype(data, output)
        need_shape(output, rest)
    value = known(context, data)
    if value is not None:
        return [constant(part.reshape(rest)) for part in np.split(value, count, axis)]
    if count == 1:
        return [relax.op.reshape(context.expr(data), rest)]
    parts = relax.op.split(context.expr(data), count, axis)
    return [relax.op.reshape(relax.TupleGetItem(parts, number), rest) for number in range(count)]
