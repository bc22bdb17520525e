"""Pools that TVM's converter does not have."""

from __future__ import annotations

from typing import Any

from uaccel.frontend.torch.convert import Context, Expr, converts
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


def _greatest(context: Context, value: Expr, axis: int, old: int, new: int) -> Expr:
    """Of windows of several sizes along an axis, the i-th from floor(i * old / new) to ceil((i + 1) * old / new)."""
    parts = []
    for number in range(new):
        begin, end = number * old // new, -(-(number + 1) * old // new)
        part = context.emit(relax.op.strided_slice(value, [axis], [begin], [end]))
        parts.append(context.emit(relax.op.max(part, [axis], True)))
    return context.emit(relax.op.concat(parts, axis))
