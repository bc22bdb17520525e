"""Pools that TVM's converter does not have."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, converts
from uaccel.tvm_api import relax


@converts("aten.adaptive_max_pool2d.default")
def adaptive_max_pool(context: Context, node: Any) -> Expr:
    """Values alone; windows of one size."""
    source = node.args[0]
    before, after = source.meta["val"].shape[-2:], node.meta["val"][0].shape[-2:]
    even = all(old % new == 0 for old, new in zip(before, after, strict=True))
    sizes = f"{list(before)} to {list(after)}"
    need(even, f"from {sizes} its windows have several sizes; choose an output size that divides the input's")
    need(len(source.meta["val"].shape) == 4, "its operand has no batch dimension; give it one of 1")
    window = [old // new for old, new in zip(before, after, strict=True)]
    return [context.emit(relax.op.nn.max_pool2d(context.expr(source), pool_size=window, strides=window))]
