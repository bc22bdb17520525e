"""Operators on constants alone are computed ahead of time, and give what the reference computes at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from support.models import layout_ops as ops
from support.models.many import Row, many
from support.models.single_op import Activation
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact_random

ROWS: dict[str, Row] = {
    "pad": ops.pad((2, 3), [(1, 0), (2, 1)]),
    "pad with a value": ops.pad((2, 3), [(1, 0), (2, 1)], value=77),
    "reflect": ops.mirror_pad((3, 4), [(1, 2), (0, 3)], "REFLECT"),
    "symmetric": ops.mirror_pad((3, 4), [(1, 2), (0, 4)], "SYMMETRIC"),
    "concatenate": ops.concatenation((2, 3), [1, 2], 1),
    "pack": ops.pack((2, 3), 3, 1),
    "split": ops.split((2, 6), 3, 1),
    "split unevenly": ops.split_v((5, 2), [1, -1, 2], 0),
    "unpack": ops.unpack((2, 3), 1),
    "slice": ops.slice_part((4, 5), [1, 2], [2, -1]),
    "strided slice": ops.strided_slice((4, 5, 3), [slice(None, None, -2), 3, slice(2, None)]),
    "transpose": ops.transpose((2, 3, 4), [2, 0, 1]),
    "reverse": ops.reverse((2, 3), [0]),
    "gather": ops.gather((4, 3), [[3, 0], [1, 1]], 0),
    "gather elements": ops.gather_nd((4, 3), [[3, 0], [1, 1]]),
    "space to depth": ops.space_to_depth((1, 4, 6, 2), 2),
    "depth to space": ops.depth_to_space((1, 2, 3, 8), 2),
    "space to batch": ops.space_to_batch((1, 4, 6, 2), [2, 3], [(0, 0), (0, 0)]),
    "batch to space": ops.batch_to_space((4, 2, 3, 2), [2, 2], [(1, 0), (0, 2)]),
    "broadcast": ops.broadcast_to((3, 1), (2, 3, 2)),
    "fill": ops.fill((2, 3), value=5),
    "reshape": ops.reshape("RESHAPE", (2, 3), (6,), new_shape=[6]),
    "expand": ops.reshape_by("EXPAND_DIMS", (2, 3), 1, (2, 1, 3)),
}


def of_constants(row: Row) -> Row:
    generator = np.random.default_rng(len(row.operator))
    inputs = [
        ops.constant(generator.integers(-100, 100, given.shape), "int8") if isinstance(given, Activation) else given
        for given in row.inputs
    ]
    return replace(row, inputs=inputs)


@pytest.mark.slow
def test_nothing_is_left_to_do() -> None:
    compiled = assert_exact_random(many({name: of_constants(row) for name, row in ROWS.items()}), runs=1)
    assert {layer.op for layer in compiled.program.layers} == {"copy"}
    assert compiled.placement.arena == 0


def zeros_like(model: ModelBuilder) -> None:
    x = model.input("x", (2, 3), "int8", scale=0.5, zero_point=9)
    y = model.tensor("y", (2, 3), "int8", scale=0.5, zero_point=9)
    model.op("ZEROS_LIKE", [x], [y])
    model.output(y)


def shape(model: ModelBuilder) -> None:
    x = model.input("x", (2, 3), "int8")
    y = model.tensor("y", (2,), "int32")
    model.op("SHAPE", [x], [y], {"out_type": "INT32"})
    model.output(y)


def common_shape(model: ModelBuilder) -> None:
    first, second = (model.constant(f"s{i}", np.array(s, np.int32)) for i, s in enumerate(([2, 1, 3], [4, 1])))
    y = model.tensor("y", (3,), "int32")
    model.op("BROADCAST_ARGS", [first, second], [y])
    model.output(y)


@pytest.mark.parametrize("make", [zeros_like, shape, common_shape], ids=lambda make: make.__name__)
def test_what_follows_from_shapes_is_known(make: Callable[[ModelBuilder], None]) -> None:
    model = ModelBuilder()
    make(model)
    compiled = assert_exact_random(model.build(), runs=2)
    assert [layer.op for layer in compiled.program.layers] == ["copy"]


def test_a_shape_worked_out_by_operators_costs_nothing() -> None:
    """As converters write reshape(x, [shape(x)[0], -1])."""
    model = ModelBuilder()
    x = model.input("x", (2, 3, 4), "int8", scale=0.5)
    found = model.tensor("shape", (3,), "int32")
    model.op("SHAPE", [x], [found], {"out_type": "INT32"})
    batch = model.tensor("batch", (), "int32")
    bounds = [model.constant(name, np.array([i], np.int32)) for i, name in enumerate(("begin", "end"))]
    one = model.constant("one", np.array([1], np.int32))
    model.op("STRIDED_SLICE", [found, *bounds, one], [batch], {"shrink_axis_mask": 1})
    wanted = model.tensor("wanted", (2,), "int32")
    rest = model.constant("rest", np.array(-1, np.int32))
    model.op("PACK", [batch, rest], [wanted], {"axis": 0, "values_count": 2})
    y = model.tensor("y", (2, 12), "int8", scale=0.5)
    model.op("RESHAPE", [x, wanted], [y])
    compiled = assert_exact_random(model.build(y), runs=2)
    assert [layer.op for layer in compiled.program.layers] == ["reshape", "copy"]


def test_a_slice_may_begin_where_operators_worked_out() -> None:
    model = ModelBuilder()
    x = model.input("x", (2, 3), "int8", scale=0.5)
    found = model.tensor("shape", (2,), "int32")
    model.op("SHAPE", [x], [found], {"out_type": "INT32"})
    long = model.input("long", (5, 4), "int8", scale=0.5)
    y = model.tensor("y", (1, 1), "int8", scale=0.5)
    model.op("SLICE", [long, found, model.constant("size", np.array([1, 1], np.int32))], [y])
    assert_exact_random(model.build(y), runs=2)
