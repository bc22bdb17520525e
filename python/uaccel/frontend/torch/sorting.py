"""Operators that find elements by their order: the largest ones, all of them sorted, the middle one."""

from __future__ import annotations

import math
from typing import Any

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.ops.base import get
from uaccel.ops.top_k import TopK, TopKAttrs
from uaccel.tvm_api import relax


def _ordered(context: Context, value: Expr, axis: int, count: int, largest: bool) -> list[Expr]:
    """The first of them in their order, and where they were."""
    attrs = TopKAttrs(axis, count, int(largest), "int64")
    whole = context.emit(get(TopK)(value, attrs=attrs))
    return [context.emit(relax.TupleGetItem(whole, number)) for number in range(2)]


def _axis(node: Any) -> tuple[int, int]:
    """Of the operand, and its extent."""
    shape = node.args[0].meta["val"].shape
    need(len(shape) > 0, "its operand is one number")
    axis = int(arguments(node).get("dim", -1)) % len(shape)
    return axis, int(shape[axis])


@converts("aten.topk.default")
def top_k(context: Context, node: Any) -> Expr:
    given, (axis, _) = arguments(node), _axis(node)
    return _ordered(context, context.expr(node.args[0]), axis, int(given["k"]), bool(given["largest"]))


@converts("aten.sort.default", "aten.sort.stable")
def sort(context: Context, node: Any) -> Expr:
    return _ordered(context, context.expr(node.args[0]), *_axis(node), bool(arguments(node)["descending"]))


@converts("aten.argsort.default", "aten.argsort.stable")
def places(context: Context, node: Any) -> Expr:
    return _ordered(context, context.expr(node.args[0]), *_axis(node), bool(arguments(node)["descending"]))[1]


@converts("aten.kthvalue.default")
def kth(context: Context, node: Any) -> Expr:
    axis, _ = _axis(node)
    return _one(context, node, axis, int(arguments(node)["k"]))


@converts("aten.median.dim")
def median(context: Context, node: Any) -> Expr:
    """Of an even number of elements the lower one of the two in the middle."""
    axis, extent = _axis(node)
    return _one(context, node, axis, (extent + 1) // 2)


@converts("aten.median.default")
def median_of_all(context: Context, node: Any) -> Expr:
    count = math.prod(node.args[0].meta["val"].shape)
    flat = context.emit(relax.op.reshape(context.expr(node.args[0]), [count]))
    return relax.op.squeeze(_last(context, flat, 0, (count + 1) // 2)[0], [0])


def _one(context: Context, node: Any, axis: int, rank: int) -> Expr:
    """The value of a rank, counted from 1, and where it was."""
    found = _last(context, context.expr(node.args[0]), axis, rank)
    if arguments(node)["keepdim"]:
        return found
    return [context.emit(relax.op.squeeze(one, [axis])) for one in found]


def _last(context: Context, value: Expr, axis: int, rank: int) -> list[Expr]:
    ordered = _ordered(context, value, axis, rank, False)
    return [context.emit(relax.op.strided_slice(one, [axis], [rank - 1], [rank])) for one in ordered]
