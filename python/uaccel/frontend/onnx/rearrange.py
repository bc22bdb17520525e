"""Converts operators that move elements to those that later stages know, where TVM's converters write TIR."""

from __future__ import annotations

import math

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx import functions
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.model import Array
from uaccel.ops.operator import constant
from uaccel.tvm_api import relax

PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@converts("Pad")
def pad(context: Context, node: Node) -> Expr:
    """Pad; negative amounts cut elements off."""
    data, info = context.operand(node)
    shape, mode = info.shape, node.attributes.get("mode", "constant")
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
    value = context.need_number(node.inputs[2], "padding value") if node.optional_input(2) else 0.0
    return relax.op.nn.pad(data, width, PAD_MODES[mode], value)


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


@converts("CumSum", "CumProd")
def cumulative(context: Context, node: Node) -> Expr:
    """Sums or products up to each element, or from each element on."""
    operator = relax.op.cumsum if node.op == "CumSum" else relax.op.cumprod
    data, info = context.operand(node)
    axis = need_axis(int(context.need_number(node.required_input(1), "axis")), len(info.shape))
    backwards = bool(node.attributes.get("reverse", 0))
    data = relax.op.flip(data, axis) if backwards else data
    total = operator(data, axis, info.dtype, bool(node.attributes.get("exclusive", 0)))
    return relax.op.flip(total, axis) if backwards else total


@converts("ArgMax", "ArgMin")
def place(context: Context, node: Node) -> Expr:
    """The place of an extreme; NaN is none, unless it is the first element, whose place is the result then."""
    data, info = context.operand(node)
    axis = need_axis(int(node.attributes.get("axis", 0)), len(info.shape))
    keep, most = bool(node.attributes.get("keepdims", 1)), node.op == "ArgMax"
    search = relax.op.argmax if most else relax.op.argmin
    if not node.attributes.get("select_last_index", 0):
        return search(data, axis, keep)
    if not info.dtype.startswith("float"):
        return _last_place(search(relax.op.flip(data, axis), axis, keep), info.shape[axis])
    lost = context.normal(relax.op.isnan(data))
    others = context.normal(relax.op.where(lost, constant(np.array(-np.inf if most else np.inf, info.dtype)), data))
    found = context.normal(relax.op.equal(data, (relax.op.max if most else relax.op.min)(others, axis, True)))
    found = relax.op.astype(relax.op.flip(found, axis), "uint8")
    last = context.normal(_last_place(relax.op.argmax(found, axis, keep), info.shape[axis]))
    first = context.normal(relax.op.strided_slice(lost, [axis], [0], [1]))
    first = first if keep else relax.op.squeeze(first, [axis])
    return relax.op.where(first, constant(np.array(0, np.int64)), last)


def _last_place(place_from_end: Expr, extent: int) -> Expr:
    return relax.op.subtract(constant(np.array(extent - 1, np.int64)), place_from_end)


@converts("Gather")
def gather(context: Context, node: Node) -> Expr:
    """Pick slices along an axis; negative indices count from its end."""
    need(len(context.info(node.required_input(0)).shape) > 0, "the input is a scalar")
    return relax.op.take(context.expr(node.required_input(0)), *_along(context, node), mode="clip")


def _counted(context: Context, name: str, extents: Array) -> Expr:
    """Indices with the negative ones counted from the end. Known ones are counted at import, and checked."""
    known, dtype = context.known(name), context.info(name).dtype
    if known is not None:
        inside = bool(np.all((known >= -extents) & (known < extents)))
        need(inside, f'an index of "{name}" lies outside the {extents.tolist()} elements')
        return constant(np.asarray(np.where(known < 0, known + extents, known), np.int64))
    indices = context.expr(name)
    behind = relax.op.add(indices, constant(extents.astype(dtype)))
    negative = relax.op.less(indices, constant(np.asarray(0, dtype)))
    return relax.op.where(negative, behind, indices)


@converts("GatherElements")
def gather_elements(context: Context, node: Node) -> Expr:
    indices, axis = _along(context, node)
    return relax.op.gather_elements(context.expr(node.required_input(0)), indices, axis)


def _along(context: Context, node: Node) -> tuple[Expr, int]:
    """The indices, which count along one axis, and that axis."""
    shape = context.info(node.required_input(0)).shape
    axis = need_axis(node.attributes.get("axis", 0), len(shape))
    return _counted(context, node.required_input(1), np.asarray(shape[axis])), axis


@converts("GatherND")
def gather_points(context: Context, node: Node) -> Expr:
    name, given = node.required_input(0), node.required_input(1)
    batch, depth = node.attributes.get("batch_dims", 0), _depth(context, given)
    extents = np.asarray(context.info(name).shape[batch : batch + depth])
    return relax.op.gather_nd(context.expr(name), _counted(context, given, extents), batch)


@converts("ScatterElements")
def scatter_elements(context: Context, node: Node) -> Expr:
    indices, axis = _along(context, node)
    data, updates = _numbers(context, node)
    return _as(context, node, relax.op.scatter_elements(data, indices, updates, axis, _reduction(node)))


@converts("ScatterND")
def scatter_points(context: Context, node: Node) -> Expr:
    name, given = node.required_input(0), node.required_input(1)
    extents = np.asarray(context.info(name).shape[: _depth(context, given)])
    data, updates = _numbers(context, node)
    places = _counted(context, given, extents)
    return _as(context, node, relax.op.scatter_nd(data, places, updates, _reduction(node)))


def _numbers(context: Context, node: Node) -> list[Expr]:
    """The data and the updates; truths that are combined are numbers for that time."""
    names = [node.required_input(place) for place in (0, 2)]
    truths = context.info(names[0]).dtype == "bool" and _reduction(node) != "update"
    values = [context.expr(name) for name in names]
    return [context.normal(relax.op.astype(value, "uint8")) if truths else value for value in values]


def _as(context: Context, node: Node, result: Expr) -> Expr:
    """The result in the type of the node's first input."""
    dtype, made = context.info(node.required_input(0)).dtype, context.normal(result)
    return made if str(made.ty.dtype) == dtype else relax.op.astype(made, dtype)


def _depth(context: Context, indices: str) -> int:
    """How many axes a point indexes."""
    shape = context.info(indices).shape
    need(len(shape) > 0, f'the indices "{indices}" are a scalar, wanted points')
    return shape[-1]


def _reduction(node: Node) -> str:
    names = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}
    given = str(node.attributes.get("reduction", "none"))
    need(given in names, f"reduction {given} is not supported")
    return names[given]


@converts("Einsum")
def einsum(context: Context, node: Node) -> Expr:
    operands = tuple(context.expr(name) for name in node.inputs)
    return relax.op.einsum(operands, "".join(node.attributes["equation"].split()))


@converts("Split")
def split(context: Context, node: Node) -> Expr | list[Expr]:
    """Cut a tensor along an axis, by sizes or evenly with a smaller rest. One part is the tensor itself: TVM's
    converter makes a tuple of one, which no operator behind it takes."""
    name, count = node.required_input(0), len(node.outputs)
    shape, data = context.info(name).shape, context.expr(name)
    axis = need_axis(node.attributes.get("axis", 0), len(shape))
    even = -(-shape[axis] // count)
    ends = [min(even * number, shape[axis]) for number in range(1, count + 1)]
    if node.optional_input(1):
        sizes = context.need_known(node.inputs[1], "size of a part").reshape(-1)
        ends = [int(end) for end in np.cumsum(sizes)]
    need(len(ends) == count and ends[-1] == shape[axis], f"its parts end at {ends} of {shape[axis]}, wanted {count}")
    if count == 1:
        return data
    parts = context.block.builder.emit(
        relax.op.split(data, count if shape[axis] % count == 0 and not node.optional_input(1) else ends[:-1], axis)
    )
    return [context.normal(relax.TupleGetItem(parts, number)) for number in range(count)]


@converts("Reshape")
def reshape(context: Context, node: Node) -> Expr:
    """Reshape. An extent of 0 means the input's, unless the node allows zeros; one -1 means the rest."""
    name = node.required_input(0)
    info = context.info(name)
    shape = [int(extent) for extent in context.need_known(node.required_input(1), "shape").reshape(-1)]
    if not node.attributes.get("allowzero", 0):
        need(all(extent or axis < len(info.shape) for axis, extent in enumerate(shape)), f"{shape} has a 0 too many")
        shape = [extent or info.shape[axis] for axis, extent in enumerate(shape)]
    if shape.count(-1) == 1:
        shape[shape.index(-1)] = info.elements // max(1, -math.prod(shape))
    need(math.prod(shape) == info.elements and min(shape, default=1) > 0, f"{shape} is no other shape of {info}")
    return relax.op.reshape(context.expr(name), shape)


@converts("Expand")
def expand(context: Context, node: Node) -> Expr:
    data, info = context.operand(node)
    given = context.need_known(node.required_input(1), "shape").reshape(-1)
    return relax.op.broadcast_to(data, np.broadcast_shapes(info.shape, tuple(int(extent) for extent in given)))


@converts("SpaceToDepth")
def space_to_depth(context: Context, node: Node) -> list[Expr]:
    mode = node.attributes.get("mode", "DCR")
    if mode == "DCR":
        return functions.convert(context, node)
    name, block = node.required_input(0), int(node.attributes["blocksize"])
    batch, channels, height, width = context.info(name).shape
    blocks = relax.op.reshape(context.expr(name), (batch, channels, height // block, block, width // block, block))
    moved = relax.op.permute_dims(blocks, [0, 1, 3, 5, 2, 4])
    return [relax.op.reshape(moved, (batch, channels * block * block, height // block, width // block))]


@converts("OneHot")
def one_hot(context: Context, node: Node) -> Expr:
    """One-hot by two comparisons, as indices may be negative; an index out of range is hot nowhere, nor is a fraction,
    as in ONNX Runtime: ONNX's text cuts fractions off."""
    name, values = node.required_input(0), context.expr(node.required_input(2))
    info = context.info(name)
    depth = int(context.need_number(node.required_input(1), "depth"))
    axis = need_axis(node.attributes.get("axis", -1), len(info.shape) + 1)
    need(depth > 0, f"depth is {depth}, wanted a positive number")
    context.budget.array((depth,), 8)
    kind = info.dtype if info.dtype.startswith("float") else "int64"
    places = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(len(info.shape) + 1)])
    indices = relax.op.expand_dims(relax.op.astype(context.expr(name), kind), axis)
    behind = relax.op.equal(indices, constant((places - depth).astype(kind)))
    hot = relax.op.logical_or(relax.op.equal(indices, constant(places.astype(kind))), behind)
    off, on = (relax.op.take(values, constant(np.asarray(i, np.int64)), 0, mode="clip") for i in (0, 1))
    return relax.op.where(hot, on, off)
