"""Converts scaled dot-product attention into products, a mask and a softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax


@converts("aten.scaled_dot_product_attention.default")
def attention(context: Context, node: Any) -> Expr:
    """softmax(query key^T scale + mask) value, where the masked scores are minus infinity."""
    given = arguments(node)
    query, key, value = (context.expr(given[name]) for name in ("query", "key", "value"))
    need(given["dropout_p"] == 0, "it drops out at random; call model.eval() before exporting")
    need(not given["enable_gqa"], "grouped queries are not supported; repeat keys and values before attention")
    shape = tuple(given["query"].meta["val"].shape)
    keys = int(given["key"].meta["val"].shape[-2])
    scale = given["scale"] if given["scale"] is not None else 1 / math.sqrt(shape[-1])
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    turned = context.emit(relax.op.permute_dims(key, order))
    scores = context.emit(relax.op.matmul(query, turned))
    scores = context.emit(relax.op.multiply(scores, constant(np.array(scale, np.float32))))
    scores = _masked(context, given, scores, (shape[-2], keys))
    weights = context.emit(relax.op.nn.softmax(scores, axis=-1))
    if given["attn_mask"] is not None:
        weights = _nothing_where_all_is_masked(context, scores, weights)
    return relax.op.matmul(weights, value)


def _masked(context: Context, given: Any, scores: Expr, extents: tuple[int, int]) -> Expr:
    mask = given["attn_mask"]
    if given["is_causal"]:
        later = np.triu(np.full(extents, -np.inf, np.float32), 1)
        return context.emit(relax.op.add(scores, constant(later)))
    if mask is None:
        return scores
    if str(mask.meta["val"].dtype) == "torch.bool":
        if context.is_constant(mask):
            seen = np.where(context.array(mask), np.float32(0), np.float32(-np.inf)).astype(np.float32)
            return context.emit(relax.op.add(scores, constant(seen)))
        return context.emit(relax.op.where(context.expr(mask), scores, constant(np.array(-np.inf, np.float32))))
    return context.emit(relax.op.add(scores, context.expr(mask)))


def _nothing_where_all_is_masked(context: Context, scores: Expr, weights: Expr) -> Expr:
    """Zeros for rows whose keys are all masked, as PyTorch gives. Their maximum is minus infinity, or TVM's lowest."""
    largest = context.emit(relax.op.max(scores, axis=-1, keepdims=True))
    lowest = constant(np.array(np.finfo(np.float32).min, np.float32))  # where TVM begins to look for the largest
    nothing = context.emit(relax.op.less_equal(largest, lowest))
    return context.emit(relax.op.where(nothing, constant(np.array(0, np.float32)), weights))
