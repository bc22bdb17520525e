"""Operators that move elements: with what TVM's converters write as TIR, as operators that later stages know."""

from __future__ import annotations

import numpy as np

from uaccel.frontend.onnx.convert import Context, Expr, converts, need, need_axis
from uaccel.frontend.onnx.graph import Node
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@converts("Pad")
def pad(context: Context, node: Node) -> Expr:
    """Negative amounts cut off."""
    name = node.required_input(0)
    shape, data = context.info(name).shape, context.expr(name)
    mode = node.attributes.get("mode", "constant")
    need(mode in PAD_MODES, f"padding mode {mode} is not supported; supported are {', '.join(PAD_MODES)}")
    before, after = _amounts(context, node, len(shape))
    cut = [max(0, -amount) for amount in before], [max(0, -amount) for amount in after]
    if any(map(any, cut)):
        ends = [extent - amount for extent, amount in zip(shape, cut[1], strict=True)]
        need(all(low < high for low, high in zip(cut[0], ends, strict=True)), "nothing is left; nothing to compute")
        data = relax.op.strided_slice(data, list(range(len(shape))), cut[0], ends)
    width = [max(0, amount) for pair in zip(before, after, strict=True) for amount in pair]
    if not any(width):
        return data
    value = context.need_known(node.inputs[2], "padding value") if node.optional_input(2) else np.zeros(1)
    return relax.op.nn.pad(data, width, PAD_MODES[mode], value.reshape(-1)[0].item())


def _amounts(context: Context, node: Node, rank: int) -> tuple[list[int], list[int]]:
    pads = [int(entry) for entry in context.need_known(node.required_input(1), "amount of padding").reshape(-1)]
    axes = list(range(rank))
    if node.optional_input(3):
        given = context.need_known(node.inputs[3], "axes").reshape(-1)
        axes = [need_axis(int(axis), rank) for axis in given]
    need(len(pads) == 2 * len(axes), f"{len(pads)} amounts of padding for {len(axes)} axes")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[len(axes) + position]
    return before, after


@converts("Tile")
def tile(context: Context, node: Node) -> Expr:
    repeats = [int(count) for count in context.need_known(node.required_input(1), "number of repeats").reshape(-1)]
    return relax.op.tile(context.expr(node.required_input(0)), repeats)


@converts("CumSum")
def cumulative_sum(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    info, data = context.info(name), context.expr(name)
    axis = need_axis(int(context.need_known(node.required_input(1), "axis").reshape(-1)[0]), len(info.shape))
    backwards = bool(node.attributes.get("reverse", 0))
    data = relax.op.flip(data, axis) if backwards else data
    total = relax.op.cumsum(data, axis, info.dtype, bool(node.attributes.get("exclusive", 0)))
    return relax.op.flip(total, axis) if backwards else total


@converts("Gather")
def gather(context: Context, node: Node) -> Expr:
    """Negative indices count from the end; those that are known are counted here."""
    name, given = node.required_input(0), node.required_input(1)
    shape, data = context.info(name).shape, context.expr(name)
    need(len(shape) > 0, "the input is a scalar")
    axis = need_axis(node.attributes.get("axis", 0), len(shape))
    known, extent = context.known(given), shape[axis]
    if known is not None:
        inside = bool(np.all((known >= -extent) & (known < extent)))
        need(inside, f"an index lies outside the {extent} elements along axis {axis}")
        return relax.op.take(data, constant(np.asarray(np.where(known < 0, known + extent, known), np.int64)), axis)
    indices, dtype = context.expr(given), context.info(given).dtype
    behind = relax.op.add(indices, constant(np.asarray(extent, dtype)))
    negative = relax.op.less(indices, constant(np.asarray(0, dtype)))
    return relax.op.take(data, relax.op.where(negative, behind, indices), axis)
