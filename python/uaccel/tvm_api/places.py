"""Defines what picks and scatters by computed places mean: gather_nd, scatter_nd and scatter_elements of Relax.

TVM's own lowering of scatter_elements counts places wrongly where indices have smaller extents than the tensor, and all
three take any index for a valid one. Here an index that lies outside takes the nearest element. As in LiteRT, a point
is outside only if the element that it counts to is: entries are not looked at one by one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tvm import te, tirx
from tvm.ir import Op

from uaccel.tvm_api.bounds import FURTHEST, INDEX
from uaccel.tvm_api.loops import count_to, te_extern_loops

REDUCTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "update": lambda _old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": tirx.max,
    "min": tirx.min,
}


def number(value: int) -> Any:
    return tirx.const(value, INDEX)


def clamped(index: Any, low: int, high: int) -> Any:
    return tirx.max(tirx.min(index, number(high)), number(low))


def strides_of(extents: Sequence[int]) -> list[int]:
    """Elements from one place to the next along each axis."""
    return [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]


def counted(entries: Sequence[Any], extents: Sequence[int]) -> Any:
    """The number of the slice that a point means, the nearest one if there is none."""
    terms = [
        clamped(entry.astype(INDEX), -FURTHEST, FURTHEST) * number(stride)
        for entry, stride in zip(entries, strides_of(extents), strict=True)
    ]
    return clamped(sum(terms[1:], terms[0]), 0, math.prod(extents) - 1)


@contextlib.contextmanager
def counting(extents: Sequence[int]) -> Iterator[list[Any]]:
    """Nested loops over places."""
    with contextlib.ExitStack() as loops:
        yield [loops.enter_context(count_to(extent)) for extent in extents]


def changed(data: Any, operands: Sequence[Any], change: Callable[..., None], name: str) -> Any:
    """A copy of a tensor that ``change`` then writes to."""

    def write(old: Any, *arrays: Any) -> None:
        with counting([math.prod(shape_of(data))]) as (element,):
            arrays[-1][element] = old[element]
        change(*arrays)

    return te_extern_loops([(shape_of(data), str(data.dtype))], [data, *operands], write, name)[0]


def place_in(extents: Sequence[int], place: Sequence[Any]) -> Any:
    """Where an element lies in memory."""
    terms = [one * number(stride) for one, stride in zip(place, strides_of(extents), strict=True)]
    return sum(terms, number(0))


def shape_of(tensor: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in tensor.shape)


def gather_nd(data: Any, indices: Any) -> Any:
    shape, points = shape_of(data), shape_of(indices)
    depth, outer = points[-1], points[:-1]

    def element(*place: Any) -> Any:
        entries = [indices(*place[: len(outer)], entry) for entry in range(depth)]
        slice_ = counted(entries, shape[:depth])
        found = [slice_ // number(s) % number(e) for s, e in zip(strides_of(shape[:depth]), shape, strict=False)]
        return data(*found, *place[len(outer) :])

    return te.compute((*outer, *shape[depth:]), element, name="gather_nd")


def scatter_nd(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    """Each entry of a point is the nearest that there is, so that a place beyond a row's end is not in the next row."""
    shape, points = shape_of(data), shape_of(indices)
    depth, size = points[-1], math.prod(shape[points[-1] :])

    def write(at: Any, new: Any, out: Any) -> None:
        with counting([math.prod(points[:-1]), size]) as (point, element):
            given = [at[point * number(depth) + number(entry)].astype(INDEX) for entry in range(depth)]
            entries = [clamped(entry, 0, extent - 1) for entry, extent in zip(given, shape, strict=False)]
            place = place_in(shape[:depth], entries) * number(size) + element
            out[place] = REDUCTIONS[reduction](out[place], new[point * number(size) + element])

    return changed(data, [indices, updates], write, "scatter_nd")


def scatter_elements(data: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    """A negative index counts from the end of the axis."""
    shape, given = shape_of(data), shape_of(indices)
    extent = shape[axis]

    def write(at: Any, new: Any, out: Any) -> None:
        with counting(given) as place:
            source = place_in(given, place)
            index = at[source].astype(INDEX)
            index = tirx.Select(index < number(0), index + number(extent), index)
            target = place_in(shape, [*place[:axis], clamped(index, 0, extent - 1), *place[axis + 1 :]])
            out[target] = REDUCTIONS[reduction](out[target], new[source])

    return changed(data, [indices, updates], write, "scatter_elements")


def register_places() -> None:
    """Puts these in the place of TVM's own, which are at level 10."""

    def instead(name: str, legalise: Callable[[Any, Any, Any], Any]) -> None:
        operator = Op.get(f"relax.{name}")
        usual = operator.get_attr("FLegalize")
        operator.set_attr("FLegalize", lambda builder, call: legalise(builder, call, usual), plevel=11)

    def gather(builder: Any, call: Any, usual: Any) -> Any:
        return usual(builder, call) if int(call.attrs.batch_dims) else builder.call_te(gather_nd, *call.args)

    def scatter(builder: Any, call: Any, usual: Any) -> Any:
        kind = str(call.attrs.reduction)
        return builder.call_te(scatter_nd, *call.args, kind) if kind in REDUCTIONS else usual(builder, call)

    def elements(builder: Any, call: Any, usual: Any) -> Any:
        kind, rank = str(call.attrs.reduction), len(call.args[0].ty.shape)
        if kind not in REDUCTIONS:
            return usual(builder, call)
        return builder.call_te(scatter_elements, *call.args, int(call.attrs.axis) % rank, kind)

    for name, legalise in {"gather_nd": gather, "scatter_nd": scatter, "scatter_elements": elements}.items():
        instead(name, legalise)
