"""Converts operators of PyTorch that move, pick, place and sort elements.

Most become a ``take`` or a ``scatter`` on a flat tensor, by the numbers of its elements in C order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.frontend.torch.program import info_of_value
from uaccel.ops.operator import constant, get
from uaccel.ops.reduce import TopK, TopKAttrs
from uaccel.tvm_api import relax

# Placing values: indices, known or computed, become numbers of elements.


def chosen_shape(source: Any, places: Sequence[Any]) -> tuple[list[int], int, int]:
    """The shape of ``source[places]``, and the first and the number of its axes that come from the indices.

    The rule is NumPy's: index tensors broadcast to a common shape. It stands where the first indexed axis was if the
    indexed axes are neighbours, else at the front.
    """
    along = [axis for axis, place in enumerate(places) if place is not None]
    shapes = [tuple(map(int, places[axis].meta["val"].shape)) for axis in along]
    common = list(np.broadcast_shapes(*shapes))
    first = along[0] if along[-1] - along[0] == len(along) - 1 else 0
    others = [int(extent) for axis, extent in enumerate(source.meta["val"].shape) if axis not in along]
    return [*others[:first], *common, *others[first:]], first, len(common)


def numbers_of(context: Context, source: Any, places: Sequence[Any]) -> Expr:
    """The numbers in C order of the elements that ``source[places]`` picks, in the shape of the result.

    The number of an element is the sum over all axes of its index times the axis's step. An indexed axis takes its
    indices from ``places``; any other one counts from 0 along its own axis of the result.
    """
    result, first, rank = chosen_shape(source, places)
    shape = list(map(int, source.meta["val"].shape))
    others = [number for number in range(len(result)) if not first <= number < first + rank]
    numbers: Any = constant(np.zeros([1] * len(result), np.int32))
    for axis, (extent, place) in enumerate(itertools.zip_longest(shape, places)):
        step = math.prod(shape[axis + 1 :])
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
    """The indices of one axis, with negative ones counted from its end; one that lies outside is the nearest."""
    need(str(place.meta["val"].dtype) != "torch.bool", f'mask "{place.name}" must be a constant, and is computed')
    value, dtype = context.expr(place), str(place.meta["val"].dtype).removeprefix("torch.")
    nought, last, count = (constant(np.array(number, dtype)) for number in (0, extent - 1, extent))
    from_end = context.emit(relax.op.add(value, count))
    value = context.emit(relax.op.where(context.emit(relax.op.less(value, nought)), from_end, value))
    value = context.emit(relax.op.minimum(context.emit(relax.op.maximum(value, nought)), last))
    return context.emit(relax.op.astype(value, "int32"))


@converts("aten.index_put.default")
def index_put(context: Context, node: Any) -> Expr:
    """Put one number where a mask holds, or values at places; these are clamped, to write inside the tensor only."""
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
    done = context.emit(relax.op.scatter_elements(flat, where, new, 0, "add" if adds else "update"))
    return relax.op.reshape(done, shape)


@converts("aten.scatter_add.default")
def scatter_add(context: Context, node: Any) -> Expr:
    """Add values at indices along an axis; the indices must have the shape of the values."""
    source, axis, places, values = node.args
    rank = len(source.meta["val"].shape)
    fits = places.meta["val"].shape == values.meta["val"].shape
    need(fits, f"its index has the shape {list(places.meta['val'].shape)}, not that of what it adds")
    operands = [context.expr(operand) for operand in (source, places, values)]
    return relax.op.scatter_elements(*operands, axis % rank if rank else 0, "add")


# Picking and resizing, where TVM's converter does not get it right.


@converts("aten.select.int")
def select(context: Context, node: Any) -> Expr:
    """A slice of one index along an axis, which is removed."""
    source, axis, index = node.args
    shape = source.meta["val"].shape
    axis, index = axis % len(shape), index % shape[axis]
    data = context.expr(source)
    slice_ = context.emit(relax.op.strided_slice(data, [axis], [index], [index + 1], [1]))
    return relax.op.squeeze(slice_, [axis])


@converts("aten.unfold.default", "aten.as_strided.default")
def pick(context: Context, node: Any) -> Expr:
    """Pick fixed elements: applied to a tensor of the elements' numbers, the operator itself returns which."""
    source = node.args[0]
    shape = tuple(source.meta["val"].shape)
    numbers = context.torch.arange(math.prod(shape)).reshape(shape)
    which = node.target(numbers, *node.args[1:], **node.kwargs)
    return _taken(context, source, np.ascontiguousarray(which.numpy()))


@converts("aten.index.Tensor")
def index(context: Context, node: Any) -> Expr:
    """Indexing by computed indices, by known ones along one axis, or by any constants, also masks, as in ``pick``."""
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
    """The elements of a tensor by their numbers in C order."""
    need(which.size > 0, "its result holds no elements; nothing to compute")
    flat = context.emit(relax.op.reshape(context.expr(source), [-1]))
    return relax.op.take(flat, constant(which.astype(np.int32)), axis=0, mode="clip")


@converts("aten.upsample_nearest2d.vec")
def nearest(context: Context, node: Any) -> Expr:
    """Nearest neighbours: element i is element floor(i / scale) of the source, as PyTorch itself rounds that."""
    given = arguments(node)
    source = given["input"]
    before, after = source.meta["val"].shape[2:], node.meta["val"].shape[2:]
    factors = given["scale_factors"] or [new / old for new, old in zip(after, before, strict=True)]
    value = context.expr(source)
    plain = all(new == old * factor for new, old, factor in zip(after, before, factors, strict=True))
    if plain and all(new % old == 0 for new, old in zip(after, before, strict=True)):
        modes = {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
        return relax.op.image.resize2d(value, tuple(after), layout="NCHW", method="nearest_neighbor", **modes)
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        number = context.torch.arange(old, dtype=context.torch.float32).reshape(1, 1, 1, old)
        scale = None if not given["scale_factors"] else [1.0, given["scale_factors"][axis]]
        size = None if scale else [1, new]
        which = node.target(number, size, scale).reshape(-1).numpy().astype(np.int32)
        value = context.emit(relax.op.take(value, constant(which), axis=axis + 2, mode="clip"))
    return value


@converts("aten.upsample_linear1d.vec")
def linear(context: Context, node: Any) -> Expr:
    """Linear resizing of lines, by TVM's operator for images of one row where that means the same.

    It cannot align corners, as one row has no two, nor take a factor that the sizes do not have. Then PyTorch resizes
    the line 0, 1, 2..., in float64, and each result is the place that it was interpolated at: its whole part is the
    element before, and its fraction the weight of the element behind.
    """
    given = arguments(node)
    source, value = given["input"], context.expr(given["input"])
    (old,), (new,) = source.meta["val"].shape[2:], node.meta["val"].shape[2:]
    corners, factors = given["align_corners"], given["scale_factors"]
    if not corners and (not factors or new == old * factors[0]):
        image, mode = context.emit(relax.op.expand_dims(value, 2)), {"coordinate_transformation_mode": "half_pixel"}
        resized = relax.op.image.resize2d(image, (1, new), layout="NCHW", method="linear", **mode)
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


# Order: the largest elements, all of them sorted, and the one of a given rank, all by the operator TopK.


def _ordered(context: Context, value: Expr, axis: int, count: int, largest: bool) -> list[Expr]:
    """The first ``count`` elements in order, and their indices. Truths, which TopK does not compare, are numbers."""
    attrs = TopKAttrs(axis, count, int(largest), "int64")
    truths = str(value.ty.dtype) == "bool"
    whole = context.emit(get(TopK)(context.emit(relax.op.astype(value, "uint8")) if truths else value, attrs=attrs))
    found, where = (context.emit(relax.TupleGetItem(whole, number)) for number in range(2))
    return [context.emit(relax.op.astype(found, "bool")) if truths else found, where]


def _axis(node: Any) -> tuple[int, int]:
    """The axis that the operator works along, and its extent."""
    shape = node.args[0].meta["val"].shape
    need(len(shape) > 0, "its operand is one number")
    axis = int(arguments(node).get("dim", -1)) % len(shape)
    return axis, int(shape[axis])


@converts("aten.topk.default")
def top_k(context: Context, node: Any) -> Expr:
    given, (axis, _) = arguments(node), _axis(node)
    return _ordered(context, context.expr(node.args[0]), axis, int(given["k"]), bool(given["largest"]))


@converts(*(f"aten.{name}.{kind}" for name in ("sort", "argsort") for kind in ("default", "stable")))
def sort(context: Context, node: Any) -> Expr:
    ordered = _ordered(context, context.expr(node.args[0]), *_axis(node), bool(arguments(node)["descending"]))
    return ordered[1] if "argsort" in str(node.target) else ordered


@converts("aten.kthvalue.default")
def kth(context: Context, node: Any) -> Expr:
    axis, _ = _axis(node)
    return _one(context, node, axis, int(arguments(node)["k"]))


@converts("aten.median.dim")
def median(context: Context, node: Any) -> Expr:
    """The middle element; of an even number the lower of the two in the middle. NaN is the median wherever it is."""
    axis, extent = _axis(node)
    found = _one(context, node, axis, (extent + 1) // 2)
    return _or_nan(context, node, found, axis, bool(arguments(node)["keepdim"]))


@converts("aten.median.default")
def median_of_all(context: Context, node: Any) -> Expr:
    count = math.prod(node.args[0].meta["val"].shape)
    flat = context.emit(relax.op.reshape(context.expr(node.args[0]), [count]))
    found = context.emit(relax.op.squeeze(_last(context, flat, 0, (count + 1) // 2)[0], [0]))
    return _or_nan(context, node, [found], None, False)[0]


def _or_nan(context: Context, node: Any, found: list[Expr], axis: int | None, keep: bool) -> list[Expr]:
    """``found`` are a value and its index; where there is NaN these are NaN and the first index of it."""
    value = context.expr(node.args[0])
    dtype = info_of_value(node.args[0].meta["val"]).dtype
    if not dtype.startswith("float"):
        return found
    lost = context.emit(relax.op.astype(context.emit(relax.op.isnan(value)), "uint8"))
    most = context.emit(relax.op.max(lost, axis, keep))
    any_lost = context.emit(relax.op.astype(most, "bool"))
    instead = [constant(np.array(np.nan, dtype))]
    if len(found) > 1:
        instead.append(context.emit(relax.op.argmax(lost, axis, keep)))
    return [context.emit(relax.op.where(any_lost, other, one)) for one, other in zip(found, instead, strict=True)]


def _one(context: Context, node: Any, axis: int, rank: int) -> Expr:
    """The value of a rank, counted from 1, and its index."""
    found = _last(context, context.expr(node.args[0]), axis, rank)
    return found if arguments(node)["keepdim"] else [context.emit(relax.op.squeeze(one, [axis])) for one in found]


def _last(context: Context, value: Expr, axis: int, rank: int) -> list[Expr]:
    """The last of the ``rank`` smallest elements, and its index."""
    ordered = _ordered(context, value, axis, rank, False)
    return [context.emit(relax.op.strided_slice(one, [axis], [rank - 1], [rank])) for one in ordered]
