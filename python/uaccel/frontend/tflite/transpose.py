"""TRANSPOSE and REVERSE_V2: the same elements in another order."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import apply, need_known, need_numbers, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator
from uaccel.tvm_api import relax


@converts("TRANSPOSE", when=always)
def transpose(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    shape = data.info.shape
    order = need_numbers(context, operator.required_input(1), "permutation", len(shape))
    need(sorted(order) == list(range(len(shape))), f"{order} is no permutation of the axes of {data.info}")
    need_same_dtype(data, output)
    need_shape(output, [shape[axis] for axis in order])
    return apply(
        context,
        [data],
        lambda expr: relax.op.permute_dims(expr, order),
        lambda array: array.transpose(order),
    )


@converts("REVERSE_V2", when=always)
def reverse(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    given = need_known(context, operator.required_input(1), "axis").reshape(-1)
    axes = sorted({need_axis(int(axis), len(data.info.shape)) for axis in given})
    need(bool(axes), "no axis is given")
    need_same_dtype(data, output)
    need_shape(output, data.info.shape)
    return apply(context, [data], lambda expr: _flipped(expr, axes), lambda array: np.flip(array, tuple(axes)))


def _flipped(expr: Expr, axes: list[int]) -> Expr:
    for axis in axes:
        expr = relax.op.flip(expr, axis)
    return expr
