"""Repairs TVM: extremes with infinities, places of extremes, means of integers, and error messages of many lines."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from tvm import te, tirx, topi
from tvm.ir import Op

# Maxima and minima of floats. TVM's reductions begin with the finite number of largest magnitude, so that a maximum
# over minus infinities alone is wrong; these begin with an infinity.

PICKS: Final = {"max": (topi.max, tirx.max, -math.inf), "min": (topi.min, tirx.min, math.inf)}


def extreme(pick: Any, start: float) -> Any:
    """A reduction to the largest or smallest of all elements, and of ``start``."""
    return te.comm_reducer(lambda one, other: pick(one, other), lambda dtype: tirx.const(start, dtype), "extreme")


def _legalised(name: str) -> Any:
    usual, pick, start = PICKS[name]
    reducer = extreme(pick, start)

    def compute(data: Any, axes: Any, keep: bool) -> Any:
        rank, dtype = len(data.shape), str(data.dtype)
        if not dtype.startswith("float"):
            return usual(data, axes, keep)
        reduced = sorted({int(axis) % rank for axis in (range(rank) if axes is None else axes)})
        loops = {axis: te.reduce_axis((0, data.shape[axis]), name=f"k{axis}") for axis in reduced}
        kept = [axis for axis in range(rank) if keep or axis not in loops]
        shape = [1 if axis in loops else data.shape[axis] for axis in kept]

        def element(*index: Any) -> Any:
            place = dict(zip(kept, index, strict=True)) | loops
            return reducer(data(*(place[axis] for axis in range(rank))), axis=list(loops.values()))

        return te.compute(shape, element, name=name) if loops else topi.identity(data)

    return lambda builder, call: builder.call_te(
        compute, call.args[0], call.attrs.axis, call.attrs.keepdims, primfunc_name_hint=name
    )


# Maxima of floats over windows, which TVM begins with the finite number as well. TensorFlow Lite does so, too, and is
# the only front end that sets ``count_include_pad``, an attribute that says nothing about maxima otherwise.


def _pooled(usual: Any) -> Any:
    def legalise(builder: Any, call: Any) -> Any:
        attrs, kind = call.attrs, call.args[0].ty
        plain = str(attrs.layout) == str(attrs.out_layout) and str(attrs.layout).isalpha()
        if not str(kind.dtype).startswith("float") or attrs.count_include_pad or not plain:
            return usual(builder, call)
        shape = list(call.ty.shape)
        return builder.call_te(_windows, call.args[0], attrs, shape, primfunc_name_hint="max_pool")

    return legalise


def _windows(data: Any, attrs: Any, shape: Any) -> Any:
    spatial = [axis for axis, letter in enumerate(str(attrs.layout)) if letter not in "NC"]
    taps = [te.reduce_axis((0, size), name=f"k{axis}") for axis, size in zip(spatial, attrs.pool_size, strict=True)]
    least, reducer = tirx.const(-math.inf, data.dtype), extreme(tirx.max, -math.inf)

    def element(*index: Any) -> Any:
        place, inside = list(index), []
        for number, axis in enumerate(spatial):
            at = index[axis] * attrs.strides[number] + taps[number] * attrs.dilation[number] - attrs.padding[number]
            place[axis] = at
            inside += [at >= 0, at < data.shape[axis]]
        return reducer(tirx.if_then_else(tirx.all(*inside), data(*place), least), axis=taps)

    return te.compute(shape, element, name="max_pool")


# Places of extremes. TVM's search begins with index -1 and a finite extreme of the type, so that a row of extremes or
# of infinities has its extreme at -1, outside of the row. These begin with index 0.


def _place(name: str) -> Any:
    start = PICKS[name][2]

    def first(dtype: str) -> Any:
        if dtype.startswith("float"):
            return tirx.const(start, dtype)
        return tirx.min_value(dtype) if name == "max" else tirx.max_value(dtype)

    def combine(one: Any, other: Any) -> Any:
        better = other[1] > one[1] if name == "max" else other[1] < one[1]
        return tuple(tirx.Select(better, theirs, mine) for mine, theirs in zip(one, other, strict=True))

    reducer = te.comm_reducer(combine, lambda index, dtype: (tirx.const(0, index), first(str(dtype))), f"arg{name}")

    def compute(data: Any, axis: Any, keep: bool) -> Any:
        rank = len(data.shape)
        reduced = range(rank) if axis is None else [int(axis) % rank]
        loops = {each: te.reduce_axis((0, data.shape[each]), name=f"k{each}") for each in reduced}
        kept = [each for each in range(rank) if keep or each not in loops]
        shape = [1 if each in loops else data.shape[each] for each in kept]
        if not loops:
            return te.compute(shape, lambda *index: tirx.const(0, "int64"), name=f"arg{name}")

        def at(index: Any, places: Any) -> Any:
            found = dict(zip(kept, index, strict=True)) | places
            return data(*(found[each] for each in range(rank)))

        def element(*index: Any) -> Any:
            number = tirx.const(0, "int64")
            for each, loop in loops.items():
                number = number * data.shape[each] + loop.var.astype("int64")
            value = at(index, {each: loop.var for each, loop in loops.items()})
            return reducer((number, value), axis=list(loops.values()))

        def settled(*index: Any) -> Any:
            if not str(data.dtype).startswith("float"):
                return indices(*index)
            lost = tirx.isnan(at(index, dict.fromkeys(loops, 0)))
            return tirx.Select(lost, tirx.const(0, "int64"), indices(*index))

        indices, _ = te.compute(shape, element, name=f"arg{name}_pair")
        return te.compute(shape, settled, name=f"arg{name}")

    return lambda builder, call: builder.call_te(
        compute, call.args[0], call.attrs.axis, call.attrs.keepdims, primfunc_name_hint=f"arg{name}"
    )


# Means of integers. TVM's lowering adds up in the integers' own type, where the sum may not fit, and gives int64
# whatever its type rule says. These add up in 64 bits and cut the quotient off, as LiteRT and ONNX Runtime do.


def _mean(usual: Any) -> Any:
    def compute(data: Any, axes: Any, keep: bool) -> Any:
        rank, dtype = len(data.shape), str(data.dtype)
        reduced = sorted({int(axis) % rank for axis in (range(rank) if axes is None else axes)})
        count = math.prod(int(data.shape[axis]) for axis in reduced)
        wide = "uint64" if dtype.startswith("uint") else "int64"
        total = topi.sum(topi.cast(data, wide), reduced, keep) if reduced else topi.cast(data, wide)

        def element(*index: Any) -> Any:
            return tirx.truncdiv(total(*index), tirx.const(count, wide)).astype(dtype)

        return te.compute(total.shape, element, name="mean")

    def legalise(builder: Any, call: Any) -> Any:
        if "int" not in str(call.args[0].ty.dtype):
            return usual(builder, call)
        return builder.call_te(compute, call.args[0], call.attrs.axis, call.attrs.keepdims, primfunc_name_hint="mean")

    return legalise


def register_extremes() -> None:
    """Puts these in the place of TVM's own, which are at level 10."""
    for name in PICKS:
        Op.get(f"relax.{name}").set_attr("FLegalize", _legalised(name), plevel=11)
        Op.get(f"relax.arg{name}").set_attr("FLegalize", _place(name), plevel=11)
    for rank in (1, 2, 3):
        pool = Op.get(f"relax.nn.max_pool{rank}d")
        pool.set_attr("FLegalize", _pooled(pool.get_attr("FLegalize")), plevel=11)
    mean = Op.get("relax.mean")
    mean.set_attr("FLegalize", _mean(mean.get_attr("FLegalize")), plevel=11)


# Refusals of TVM, in one line.


class TvmRefusalError(Exception):
    """Is raised when TVM refuses to lower something; the text is the last line of its message, if that is readable."""


UNKNOWN: Final = "TVM cannot express it for these types, shapes and options"
# Parts of messages that only somebody who knows TVM's code can read.
_INTERNALS: Final = re.compile(
    r"#|::|->|==|0x|__|<class|\b[TR]\.|\b(?:tvm|tirx?|relax|numpy|self|assert\w*|NoneType|InternalError|Metadata)\b|"
    r"Check failed|has no attribute|(?:positional|keyword) argument|object is not|bytes-like|int\(\)|\w+Expr\b|\bPrim"
)


def plain(text: str) -> str:
    """The text, if it is a reason in words; else a sentence that hides TVM's internals."""
    return UNKNOWN if " " not in text.strip() or _INTERNALS.search(text) else text


@contextlib.contextmanager
def refusals(kind: type[Exception] = TvmRefusalError) -> Iterator[None]:
    """Turn whatever TVM raises inside into one kind of error: it raises a dozen unrelated types, even assertions."""
    try:
        yield
    except NameError:  # a fault of this program's, or of TVM's: no model is refused for it
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise kind(plain(lines[-1] if lines else "")) from error
