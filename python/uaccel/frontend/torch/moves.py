"""Operators that only pick and rearrange elements, where TVM's converter does not get them right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, arguments, converts
from uaccel.frontend.torch.placing import numbers_of
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("aten.select.int")
def select(context: Context, node: Any) -> Expr:
    """One slice of a dimension, which goes away."""
    source, axis, index = node.args
    shape = source.meta["val"].shape
    axis, index = axis % len(shape), index % shape[axis]
    data = context.expr(source)
    slice_ = context.emit(relax.op.strided_slice(data, [axis], [index], [index + 1], [1]))
    return relax.op.squeeze(slice_, [axis])


@converts("aten.unfold.default", "aten.as_strided.default")
def pick(context: Context, node: Any) -> Expr:
    """Each element of the result is a known one of the operand: PyTorch itself tells which, of a tensor of numbers."""
    source = node.args[0]
    shape = tuple(source.meta["val"].shape)
    numbers = context.torch.arange(math.prod(shape)).reshape(shape)
    which = node.target(numbers, *node.args[1:], **node.kwargs)
    return _taken(context, source, np.ascontiguousarray(which.numpy()))


@converts("aten.index.Tensor")
def index(context: Context, node: Any) -> Expr:
    """Along one dimension where that is all, else element by element."""
    source, places = node.args
    if not all(place is None or context.is_constant(place) for place in places):
        flat = context.emit(relax.op.reshape(context.expr(source), [-1]))
        return relax.op.take(flat, numbers_of(context, source, places), axis=0, mode="clip")
    known = {axis: context.array(place) for axis, place in enumerate(places) if place is not None}
    shape = tuple(source.meta["val"].shape)
    if len(known) == 1 and all(place.dtype != bool for place in known.values()):
        ((axis, place),) = known.items()
        wanted = np.mod(place, shape[axis]).astype(np.int32)
        return relax.op.take(context.expr(source), constant(wanted), axis=axis, mode="clip")
    numbers = np.arange(math.prod(shape)).reshape(shape)
    tensors = [context.torch.from_numpy(known[axis]) if axis in known else None for axis in range(len(places))]
    return _taken(context, source, node.target(context.torch.from_numpy(numbers), tensors).numpy())


def _taken(context: Context, source: Any, which: Any) -> Expr:
    """Elements by their numbers in C order."""
    need(which.size > 0, "its result holds no elements; nothing to compute")
    flat = context.emit(relax.op.reshape(context.expr(source), [-1]))
    return relax.op.take(flat, constant(which.astype(np.int32)), axis=0, mode="clip")


@converts("aten.upsample_nearest2d.vec")
def nearest(context: Context, node: Any) -> Expr:
    """Element i of a dimension is element floor(i / scale) of the source."""
    given = arguments(node)
    source = given["input"]
    before, after = source.meta["val"].shape[2:], node.meta["val"].shape[2:]
    factors = given["scale_factors"] or [new / old for new, old in zip(after, before, strict=True)]
    value = context.expr(source)
    plain = all(new == old * factor for new, old, factor in zip(after, before, factors, strict=True))
    if plain and all(new % old == 0 for new, old in zip(after, before, strict=True)):
        return relax.op.image.resize2d(
            value,
            tuple(after),
            layout="NCHW",
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        number = context.torch.arange(old, dtype=context.torch.float32).reshape(1, 1, 1, old)
        scale = None if not given["scale_factors"] else [1.0, given["scale_factors"][axis]]
        size = None if scale else [1, new]
        which = node.target(number, size, scale).reshape(-1).numpy().astype(np.int32)
        value = context.emit(relax.op.take(value, constant(which), axis=axis + 2, mode="clip"))
    return value


@converts("aten.upsample_linear1d.vec")
def linear(context: Context, node: Any) -> Expr:
    """A line is an image of one row, which has no two corners. Where those are to meet, or sizes are not what the
    scale says, PyTorch itself tells the places."""
    given = arguments(node)
    source, value = given["input"], context.expr(given["input"])
    (old,), (new,) = source.meta["val"].shape[2:], node.meta["val"].shape[2:]
    corners, factors = given["align_corners"], given["scale_factors"]
    if not corners and (not factors or new == old * factors[0]):
        resized = relax.op.image.resize2d(
            context.emit(relax.op.expand_dims(value, 2)),
            (1, new),
            layout="NCHW",
            method="linear",
            coordinate_transformation_mode="half_pixel",
        )
        return relax.op.squeeze(context.emit(resized), [2])
    number = context.torch.arange(old, dtype=context.torch.float64).reshape(1, 1, old)
    places = node.target(number, None if factors else [new], corners, factors).reshape(-1).numpy()
    before = np.minimum(places.astype(np.int32), max(old - 2, 0))
    total = [
        context.emit(relax.op.multiply(context.emit(relax.op.take(value, constant(which), axis=2)), constant(weight)))
        for which, weight in (
            (before, (1 - (places - before)).astype(np.float32)),
            (np.minimum(before + 1, old - 1), (places - before).astype(np.float32)),
        )
    ]
    return relax.op.add(*total)


@converts("aten.pixel_shuffle.default")
def pixel_shuffle(context: Context, node: Any) -> Expr:
    source, factor = node.args
    *outer, channels, height, width = source.meta["val"].shape
    inner = [*outer, channels // factor**2, factor, factor, height, width]
    value = context.emit(relax.op.reshape(context.expr(source), inner))
    first = len(outer)
    order = [*range(first + 1), first + 3, first + 1, first + 4, first + 2]
    value = context.emit(relax.op.permute_dims(value, order))
    return relax.op.reshape(value, list(node.meta["val"].shape))
