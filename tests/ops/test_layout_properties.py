"""Random shapes and parameters of the operators that move bytes, several operators in a model for speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.models import layout_ops as ops
from support.models.many import Row, many
from support.oracle.exactness import assert_exact_random

Draw = Callable[[st.SearchStrategy[Any]], Any]

FOUR = ["int8", "int16", "int32", "float32"]
TWO = ["int8", "float32"]


def shape(draw: Draw, low: int = 1, high: int = 4, extent: int = 6) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, extent), min_size=low, max_size=high)))


def axis_of(draw: Draw, rank: int) -> int:
    return int(draw(st.integers(-rank, rank - 1)))


def pad(draw: Draw) -> Row:
    extents = shape(draw, high=5, extent=4)
    widths = [draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in extents]
    value = draw(st.sampled_from([None, -128, 0, 1, 127]))
    return ops.pad(extents, widths, draw(st.sampled_from(FOUR)), value)


def mirror_pad(draw: Draw) -> Row:
    extents, mode = shape(draw, high=3), draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))
    most = [extent - (mode == "REFLECT") for extent in extents]
    widths = [draw(st.tuples(st.integers(0, n), st.integers(0, n))) for n in most]
    return ops.mirror_pad(extents, widths, mode, draw(st.sampled_from(TWO)))


def concatenation(draw: Draw) -> Row:
    extents = shape(draw, high=5, extent=4)
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    constants = draw(st.sets(st.integers(0, len(sizes) - 1), max_size=len(sizes) - 1))
    kind = draw(st.sampled_from([*FOUR, "int64"]))
    return ops.concatenation(extents, sizes, axis_of(draw, len(extents)), kind, sorted(constants))


def pack(draw: Draw) -> Row:
    extents = shape(draw, low=0, high=3)
    return ops.pack(extents, draw(st.integers(1, 4)), axis_of(draw, len(extents) + 1), draw(st.sampled_from(FOUR)))


def split(draw: Draw) -> Row:
    extents, count = list(shape(draw)), draw(st.integers(1, 4))
    axis = axis_of(draw, len(extents))
    extents[axis] *= count
    return ops.split(tuple(extents), count, axis, draw(st.sampled_from(FOUR)))


def split_v(draw: Draw) -> Row:
    extents, sizes = list(shape(draw)), draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axis = axis_of(draw, len(extents))
    extents[axis] = sum(sizes)
    return ops.split_v(tuple(extents), sizes, axis, draw(st.sampled_from(FOUR)))


def unpack(draw: Draw) -> Row:
    extents = shape(draw, extent=4)
    return ops.unpack(extents, axis_of(draw, len(extents)), draw(st.sampled_from(FOUR)))


def slice_part(draw: Draw) -> Row:
    extents = shape(draw, high=5)
    begins = [draw(st.integers(0, extent - 1)) for extent in extents]
    sizes = [draw(st.integers(1, extent - b) | st.just(-1)) for extent, b in zip(extents, begins, strict=True)]
    return ops.slice_part(extents, begins, sizes, draw(st.sampled_from([*FOUR, "bool"])))


def index(draw: Draw, extent: int) -> slice | int:
    """A slice that holds at least one element, written in one of its many ways."""
    if draw(st.integers(0, 4)) == 0:
        return int(draw(st.integers(-extent, extent - 1)))
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    steps = st.sampled_from([1, 2, 3, -1, -2, -3])
    slices: st.SearchStrategy[slice] = st.builds(slice, bound, bound, steps)
    found: slice = draw(slices.filter(lambda part: bool(range(extent)[part])))
    return found


def strided_slice(draw: Draw) -> Row:
    extents = shape(draw)
    entries = [index(draw, extent) for extent in extents]
    return ops.strided_slice(extents, entries, draw(st.sampled_from([*FOUR, "bool"])))


def transpose(draw: Draw) -> Row:
    extents = shape(draw, high=5)
    order = draw(st.permutations(range(len(extents))))
    return ops.transpose(extents, order, draw(st.sampled_from(["int8", "int16", "float32"])))


def reverse(draw: Draw) -> Row:
    extents = shape(draw)
    axis = axis_of(draw, len(extents))
    return ops.reverse(extents, [axis], draw(st.sampled_from(FOUR)))


def gather(draw: Draw) -> Row:
    extents = shape(draw, high=4)
    axis = axis_of(draw, len(extents))
    indices = draw(st.lists(st.integers(0, extents[axis] - 1), min_size=1, max_size=8))
    return ops.gather(extents, indices, axis, draw(st.sampled_from(TWO)))


def broadcast_to(draw: Draw) -> Row:
    output = shape(draw, high=5, extent=4)
    kept = draw(st.lists(st.booleans(), min_size=len(output), max_size=len(output)))
    given_shape = [extent if keep else 1 for extent, keep in zip(output, kept, strict=True)]
    dropped = draw(st.integers(0, len(output) - 1))
    return ops.broadcast_to(tuple(given_shape[dropped:]), output, draw(st.sampled_from(FOUR)))


def space_to_depth(draw: Draw) -> Row:
    n, h, w, c, size = (draw(st.integers(1, 3)) for _ in range(5))
    return ops.space_to_depth((n, h * size, w * size, c), size, draw(st.sampled_from(TWO)))


def depth_to_space(draw: Draw) -> Row:
    n, h, w, c, size = (draw(st.integers(1, 3)) for _ in range(5))
    return ops.depth_to_space((n, h, w, c * size * size), size, draw(st.sampled_from(TWO)))


def batch_to_space(draw: Draw) -> Row:
    n, h, w, c, rows, columns = (draw(st.integers(1, 3)) for _ in range(6))
    crops = [draw(st.tuples(*[st.integers(0, (extent - 1) // 2)] * 2)) for extent in (h * rows, w * columns)]
    return ops.batch_to_space((n * rows * columns, h, w, c), [rows, columns], crops, draw(st.sampled_from(TWO)))


MAKERS = (
    pad,
    mirror_pad,
    concatenation,
    pack,
    split,
    split_v,
    unpack,
    slice_part,
    strided_slice,
    transpose,
    reverse,
    gather,
    broadcast_to,
    space_to_depth,
    depth_to_space,
    batch_to_space,
)


@st.composite
def models(draw: Draw) -> dict[str, Row]:
    """One row of each operator."""
    return {make.__name__: make(draw) for make in MAKERS}


QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@QUICK
@given(models())
def test_exact_over_random_parameters(rows: dict[str, Row]) -> None:
    assert_exact_random(many(rows), runs=2, meaning=False)


@pytest.mark.long
@settings(QUICK, max_examples=150)
@given(models())
def test_exact_over_many_random_parameters(rows: dict[str, Row]) -> None:
    assert_exact_random(many(rows), runs=3)
