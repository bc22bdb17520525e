"""TILE, BROADCAST_TO, FILL and ZEROS_LIKE: one value, or one tensor, many times."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import apply, known, need_numbers, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator
from uaccel.model import Array, Shape
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("TILE", when=always)
def tile(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    repeats = need_numbers(context, operator.required_input(1), "multiples", len(shape))
    need(min(repeats, default=1) > 0, f"multiples {repeats} must be positive")
    need_same_dtype(data, output)
    need_shape(output, [extent * count for extent, count in zip(shape, repeats, strict=True)])
    return apply(
        context,
        [data],
        lambda expr: relax.op.tile(expr, repeats),
        lambda array: np.tile(array, repeats),
    )


@converts("BROADCAST_TO", when=always)
def broadcast_to(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_dtype(data, output)
    _need_named_shape(context, operator, 1)
    old, new = data.info.shape, output.info.shape
    tail = new[len(new) - len(old) :]
    fits = len(old) <= len(new) and all(a in (1, b) for a, b in zip(old, tail, strict=True))
    need(fits, f"{data.info} cannot be broadcast to {output.info}")
    return _broadcast(context, operator, 0, new)


def _need_named_shape(context: Context, operator: Operator, position: int) -> None:
    """The file gives the output's shape twice, unless the shape is computed at run time."""
    value = known(context, operator.required_input(position))
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
    need_same_dtype(value, output)
    _need_named_shape(context, operator, 0)
    return _broadcast(context, operator, 1, output.info.shape)


@converts("ZEROS_LIKE", when=always)
def zeros_like(context: Context, operator: Operator) -> Expr:
    """The stored zero, as the reference writes it, whatever the zero point."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_dtype(data, output)
    need_shape(output, data.info.shape)
    context.budget.bytes(output.info.size)
    return constant(np.zeros(output.info.shape, output.info.dtype))
