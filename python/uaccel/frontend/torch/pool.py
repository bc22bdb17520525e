"""Pools that TVM's converter does not have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("aten.adaptive_max_pool2d.default")
def adaptive_max_pool(context: Context, node: Any) -> Expr:
    """Values alone."""
    source = node.args[0]
    before, after = source.meta["val"].shape[-2:], node.meta["val"][0].shape[-2:]
    rank = len(source.meta["val"].shape)
    value = context.expr(source)
    if rank == 4 and all(old % new == 0 for old, new in zip(before, after, strict=True)):
        window = [old // new for old, new in zip(before, after, strict=True)]
        return [context.emit(relax.op.nn.max_pool2d(value, pool_size=window, strides=window))]
    for axis, old, new in zip((rank - 2, rank - 1), before, after, strict=True):
        value = _greatest(context, value, axis, old, new)
    return [value]


def _is_divided(node: Any) -> bool:
    return arguments(node).get("divisor_override") is not None


@converts("aten.avg_pool2d.default", when=_is_divided)
def divided_pool(context: Context, node: Any) -> Expr:
    """The mean of whole windows, padding included, times what they have and over the divisor."""
    given = arguments(node)
    need(not given["ceil_mode"], "divisor_override with ceil_mode is not supported; leave one of them out")
    window, padding = (_pair(given[name]) for name in ("kernel_size", "padding"))
    strides = _pair(given["stride"]) if given["stride"] else window
    shape = list(map(int, node.meta["val"].shape))
    value = context.emit(relax.op.reshape(context.expr(node.args[0]), _images(node.args[0])))
    mean = relax.op.nn.avg_pool2d(value, window, strides, padding * 2, count_include_pad=True)
    factor = constant(np.array(math.prod(window) / given["divisor_override"], np.float32))
    return relax.op.reshape(context.emit(relax.op.multiply(context.emit(mean), factor)), shape)


def _pair(extents: Any) -> list[int]:
    return [int(extent) for extent in (extents if len(extents) == 2 else [extents[0]] * 2)]


def _images(source: Any) -> list[int]:
    """With a batch."""
    shape = list(map(int, source.meta["val"].shape))
    return shape if len(shape) == 4 else [1, *shape]


def _greatest(context: Context, value: Expr, axis: int, old: int, new: int) -> Expr:
    """Of windows of several sizes along an axis, the i-th from floor(i * old / new) to ceil((i + 1) * old / new)."""
    parts = []
    for number in range(new):
        begin, end = number * old // new, -(-(number + 1) * old // new)
        part = context.emit(relax.op.strided_slice(value, [axis], [begin], [end]))
        parts.append(context.emit(relax.op.max(part, [axis], True)))
    return context.emit(relax.op.concat(parts, axis))
