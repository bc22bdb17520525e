"""Operators that put values into a tensor at places, known ones and computed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.convert import Context, Expr, converts
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


def chosen_shape(source: Any, places: Sequence[Any]) -> tuple[list[int], int, int]:
    """Of what is indexed so: its shape, and of the dimensions of the places the first one and their number."""
    along = [axis for axis, place in enumerate(places) if place is not None]
    shapes = [tuple(map(int, places[axis].meta["val"].shape)) for axis in along]
    common = list(np.broadcast_shapes(*shapes))
    first = along[0] if along[-1] - along[0] == len(along) - 1 else 0
    others = [int(extent) for axis, extent in enumerate(source.meta["val"].shape) if axis not in along]
    return [*others[:first], *common, *others[first:]], first, len(common)


def numbers_of(context: Context, source: Any, places: Sequence[Any]) -> Expr:
    """The numbers of the elements at these places in C order, which the places' dimensions are parts of."""
    result, first, rank = chosen_shape(source, places)
    shape = list(map(int, source.meta["val"].shape))
    others = [number for number in range(len(result)) if not first <= number < first + rank]
    numbers: Any = constant(np.zeros([1] * len(result), np.int32))
    for axis, extent in enumerate(shape):
        step = math.prod(shape[axis + 1 :])
        place = places[axis] if axis < len(places) else None
        if place is not None:
            part = _place(context, place, extent)
            own = list(map(int, place.meta["val"].shape))
            behind = len(result) - first - rank
            part = context.emit(relax.op.reshape(part, [1] * (first + rank - len(own)) + own + [1] * behind))
            part = context.emit(relax.op.multiply(part, constant(np.array(step, np.int32))))
        else:
            extents = [1] * len(result)
            extents[others.pop(0)] = extent
            part = constant((np.arange(extent) * step).astype(np.int32).reshape(extents))
        numbers = context.emit(relax.op.add(numbers, part))
    return numbers


def _place(context: Context, place: Any, extent: int) -> Expr:
    """Those below 0 count from the end."""
    need(str(place.meta["val"].dtype) != "torch.bool", f'mask "{place.name}" must be a constant, and is computed')
    value = context.emit(relax.op.astype(context.expr(place), "int32"))
    below = context.emit(relax.op.less(value, constant(np.array(0, np.int32))))
    from_end = context.emit(relax.op.add(value, constant(np.array(extent, np.int32))))
    return context.emit(relax.op.where(below, from_end, value))


@converts("aten.index_put.default")
def index_put(context: Context, node: Any) -> Expr:
    """One number where a mask holds is chosen, element by element; all else goes to the numbers of its elements."""
    source, places, values, *further = node.args
    adds, data = bool(further and further[0]), context.expr(source)
    masks = [place for place in places if place is not None and str(place.meta["val"].dtype) == "torch.bool"]
    if masks:
        single = len(places) == 1 and math.prod(values.meta["val"].shape) == 1
        need(single, "more than one number goes where a mask holds; firmware needs every extent fixed")
        number = context.emit(relax.op.reshape(context.expr(values), []))
        new = context.emit(relax.op.add(data, number)) if adds else number
        behind = len(source.meta["val"].shape) - len(masks[0].meta["val"].shape)
        where = [*map(int, masks[0].meta["val"].shape), *[1] * behind]
        return relax.op.where(context.emit(relax.op.reshape(context.expr(masks[0]), where)), new, data)
    shape = list(map(int, source.meta["val"].shape))
    result = chosen_shape(source, places)[0]
    flat = context.emit(relax.op.reshape(data, [-1]))
    numbers, given = numbers_of(context, source, places), context.expr(values)
    spread = [context.emit(relax.op.broadcast_to(part, result)) for part in (numbers, given)]
    where, new = (context.emit(relax.op.reshape(part, [-1])) for part in spread)
    where = context.emit(relax.op.maximum(where, constant(np.array(0, np.int32))))
    where = context.emit(relax.op.minimum(where, constant(np.array(math.prod(shape) - 1, np.int32))))
    done = context.emit(relax.op.scatter_elements(flat, where, new, 0, "add" if adds else "update"))
    return relax.op.reshape(done, shape)


@converts("aten.scatter_add.default")
def scatter_add(context: Context, node: Any) -> Expr:
    """Indices as large as what is added, and not below 0."""
    source, axis, places, values = node.args
    rank = len(source.meta["val"].shape)
    fits = places.meta["val"].shape == values.meta["val"].shape
    need(fits, f"its index has the shape {list(places.meta['val'].shape)}, not that of what it adds")
    operands = [context.expr(operand) for operand in (source, places, values)]
    return relax.op.scatter_elements(*operands, axis % rank if rank else 0, "add")
