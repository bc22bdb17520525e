"""Operators that only look at the same bytes under another shape, and those that ask for shapes."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.convert import Context, Expr, converts
from uaccel.frontend.tflite.folding import apply, need_known, need_same_dtype, need_shape
from uaccel.frontend.tflite.reader import Operator
from uaccel.model import Shape
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


def reshaped(expr: Expr, old: Shape, new: Shape) -> Expr:
    return expr if old == new else relax.op.reshape(expr, new)


@converts("RESHAPE", "SQUEEZE", "EXPAND_DIMS", when=always)
def reshape(context: Context, operator: Operator) -> Expr:
    """The output's own shape counts, as in the reference; a shape given as a tensor or option repeats it."""
    data, output = operator.required_input(0), operator.outputs[0]
    need(data.info.elements == output.info.elements, f"cannot reshape {data.info} to {output.info}")
    need_same_dtype(data, output)
    return apply(
        context,
        [data],
        lambda expr: relax.op.reshape(expr, output.info.shape),
        lambda array: array.reshape(output.info.shape),
    )


@converts("SHAPE", when=always)
def shape(_context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_shape(output, [len(data.info.shape)])
    return constant(np.array(data.info.shape, output.info.dtype))


@converts("RANK", when=always)
def rank(_context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_shape(output, [])
    return constant(np.array(len(data.info.shape), output.info.dtype))


@converts("BROADCAST_ARGS", when=always)
def broadcast_args(context: Context, operator: Operator) -> Expr:
    """The common shape of two; both must be known, for every shape is fixed."""
    first, second = (need_known(context, operator.required_input(i), "shape") for i in (0, 1))
    output = operator.outputs[0]
    try:
        common = np.broadcast_shapes(tuple(first.reshape(-1)), tuple(second.reshape(-1)))
    except ValueError:
        common = None
    need(common is not None, f"the shapes {first.tolist()} and {second.tolist()} have no common one")
    need_shape(output, [len(common or ())])
    return constant(np.array(common, output.info.dtype))
