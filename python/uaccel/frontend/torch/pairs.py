"""Operators that bring each element of one tensor together with those of another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("aten._trilinear.default")
def trilinear(context: Context, node: Any) -> Expr:
    """The sum of products of three, each with further dimensions: what nn.Bilinear is."""
    given = arguments(node)
    total: Any = None
    for name, expand in (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")):
        factor = context.expr(given[name])
        if given[expand]:
            factor = context.emit(relax.op.expand_dims(factor, sorted(given[expand])))
        total = factor if total is None else context.emit(relax.op.multiply(total, factor))
    return relax.op.sum(total, list(given["sumdim"]))


@converts("aten._cdist_forward.default")
def distances(context: Context, node: Any) -> Expr:
    """Of each row of the first from each row of the second, by the norm of order ``p``."""
    given = arguments(node)
    order = float(given["p"])
    need(order in (1.0, 2.0, math.inf), f"p={order:g} is not supported; 1, 2 and infinity are")
    rank = len(given["x1"].meta["val"].shape)
    one = context.emit(relax.op.expand_dims(context.expr(given["x1"]), [rank - 1]))
    other = context.emit(relax.op.expand_dims(context.expr(given["x2"]), [rank - 2]))
    apart = context.emit(relax.op.subtract(one, other))
    if order == 2:
        squares = context.emit(relax.op.multiply(apart, apart))
        return relax.op.sqrt(context.emit(relax.op.sum(squares, [rank])))
    return (relax.op.sum if order == 1 else relax.op.max)(context.emit(relax.op.abs(apart)), [rank])


@converts("aten.rrelu_with_noise_functional.default", "aten.rrelu_with_noise.default")
def leaky(context: Context, node: Any) -> Expr:
    """With the mean slope; only training draws one."""
    given = arguments(node)
    need(not given["training"], "it draws random numbers; call model.eval() before exporting")
    value = context.expr(node.args[0])
    slope, zero = (constant(np.array(number, np.float32)) for number in ((given["lower"] + given["upper"]) / 2, 0))
    below = context.emit(relax.op.multiply(context.emit(relax.op.minimum(value, zero)), slope))
    above = context.emit(relax.op.maximum(value, zero))
    result = relax.op.add(above, below)
    return result if not isinstance(node.meta["val"], (list, tuple)) else [context.emit(result)]
