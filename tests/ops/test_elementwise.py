"""Operators of two inputs with broadcasting: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import BroadcastableShapes, mutually_broadcastable_shapes

from support.device.hostlib import compile_bytes
from support.models.many import Row, many
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact_random
from support.oracle.refusal import refused
from support.oracle.sanitized import assert_clean
from uaccel.ops.binary import LOOPS, collapse
from uaccel.pipeline import Compiled

OPERATORS = ("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE")
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
FUSING = ("ADD", "SUB", "MUL")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Binary:
    """``constant`` is 1 or 2 where that input lies in the file; ``dtype`` int16 has zero points of 0 throughout."""

    operator: str = "ADD"
    shape1: Shape = (1, 4, 3, 5)
    shape2: Shape = (1, 4, 3, 5)
    dtype: str = "int8"
    scales: tuple[float, float, float] = (0.11, 0.043, 0.12)
    zero_points: tuple[int, int, int] = (3, -5, 7)
    activation: str = "NONE"
    constant: int = 0
    seed: int = 0

    @property
    def row(self) -> Row:
        points = self.zero_points if self.dtype == "int8" else (0, 0, 0)
        inputs = [
            self._input(i, shape, scale, point)
            for i, shape, scale, point in zip((1, 2), (self.shape1, self.shape2), self.scales, points, strict=False)
        ]
        shape = np.broadcast_shapes(self.shape1, self.shape2)
        output = Activation(shape, self.dtype, self.scales[2], points[2])
        options = {"fused_activation_function": self.activation} if self.operator in FUSING else {}
        return Row(self.operator, inputs, [output], options)

    def _input(self, number: int, shape: Shape, scale: float, zero_point: int) -> Activation | Constant:
        if number != self.constant:
            return Activation(shape, self.dtype, scale, zero_point)
        info = np.iinfo(self.dtype)
        values = np.random.default_rng(self.seed).integers(info.min, info.max, shape, self.dtype, endpoint=True)
        return Constant(np.asarray(values), (scale,), (zero_point,))


SHAPES = {
    "one element": Binary(shape1=(1,), shape2=(1,)),
    "scalar second": Binary(shape2=()),
    "scalar first": Binary(shape1=(1, 1)),
    "channel": Binary(shape2=(5,)),
    "channel first": Binary(shape1=(1, 1, 1, 5)),
    "per pixel": Binary(shape2=(1, 4, 3, 1)),
    "row and column": Binary(shape1=(4, 1), shape2=(1, 6)),
    "batch": Binary(shape1=(3, 2, 4), shape2=(1, 2, 4)),
    "middle": Binary(shape1=(2, 3, 4), shape2=(2, 1, 4)),
    "middle of first": Binary(shape1=(2, 1, 4), shape2=(2, 3, 4)),
    "both ways": Binary(shape1=(2, 1, 4, 1), shape2=(1, 3, 1, 5)),
    "rank 5": Binary(shape1=(2, 1, 3, 1, 2), shape2=(2, 2, 1, 2, 1)),
    "rank 6, every axis": Binary(shape1=(2, 1, 3, 1, 2, 1), shape2=(1, 2, 1, 2, 1, 3)),
    "ranks differ": Binary(shape1=(3, 1), shape2=(2, 1, 4)),
    "constant first": Binary(constant=1),
    "constant second": Binary(constant=2),
    "constant channel": Binary(shape2=(5,), constant=2),
    "constant scalar": Binary(shape2=(), constant=2),
    "constant scalar first": Binary(shape1=(1,), constant=1),
}

EDGES = {
    "lowest zero points": Binary(zero_points=(-128, -128, -128)),
    "highest zero points": Binary(zero_points=(127, 127, 127)),
    "mixed zero points": Binary(zero_points=(-128, 127, 0)),
    "equal scales": Binary(scales=(0.1, 0.1, 0.1)),
    "powers of two": Binary(scales=(0.5, 0.25, 0.125)),
    "first much finer": Binary(scales=(1e-6, 0.5, 0.3)),
    "second much finer": Binary(scales=(0.5, 1e-6, 0.3)),
    "saturates": Binary(scales=(0.3, 0.2, 0.0004)),
    "all zero": Binary(scales=(0.3, 0.2, 5000.0)),
    "relu": Binary(activation="RELU", scales=(0.3, 0.2, 0.4)),
    "relu6": Binary(activation="RELU6", scales=(0.3, 0.2, 0.4)),
    "relu n1 to 1": Binary(activation="RELU_N1_TO_1", scales=(0.3, 0.2, 0.04)),
    "relu6 beyond range": Binary(activation="RELU6", scales=(0.3, 0.2, 0.01)),
}


def table(operator: str, dtype: str, cases: dict[str, Binary]) -> bytes:
    return many({name: replace(case, operator=operator, dtype=dtype).row for name, case in cases.items()})


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_quantisation(operator: str, dtype: str) -> None:
    assert_exact_random(table(operator, dtype, EDGES), runs=9, meaning=False)


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_meaning(operator: str) -> None:
    """The meanings take long to compile: a few rows that use all of them."""
    telling = ("mixed zero points", "first much finer", "saturates", "relu6")
    rows = {
        f"{name}, {dtype}": replace(EDGES[name], operator=operator, dtype=dtype).row
        for name in telling
        for dtype in ("int8", "int16")
    }
    assert_exact_random(many(rows), runs=9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("operator", OPERATORS)
def test_broadcast(operator: str) -> None:
    assert_exact_random(table(operator, "int8", SHAPES), runs=4, meaning=False)


def test_broadcast_of_int16() -> None:
    assert_exact_random(table("SUB", "int16", SHAPES), runs=4, meaning=False)


@pytest.mark.slow
def test_meaning_of_broadcast() -> None:
    """It lies in one place for all operators."""
    assert_exact_random(table("MINIMUM", "int8", SHAPES), runs=4)


@st.composite
def binaries(draw: st.DrawFn) -> Binary:
    shapes: BroadcastableShapes = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=1, max_side=4, max_dims=5))
    coarse = draw(st.sampled_from([0.001, 0.0235, 0.5, 7.0]))
    ratio = draw(st.floats(1e-4, 1.0))
    scales = draw(st.permutations([coarse, coarse * ratio]))
    point = st.integers(-128, 127)
    return Binary(
        operator=draw(st.sampled_from(OPERATORS)),
        shape1=shapes.input_shapes[0] or (1,),
        shape2=shapes.input_shapes[1] or (1,),
        dtype=draw(st.sampled_from(["int8", "int8", "int16"])),
        scales=(scales[0], scales[1], coarse * draw(st.floats(0.01, 30.0))),
        zero_points=(draw(point), draw(point), draw(point)),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        constant=draw(st.integers(0, 2)),
        seed=draw(st.integers(0, 1000)),
    )


@pytest.mark.slow
@given(cases=st.lists(binaries(), min_size=10, max_size=10))
@settings(max_examples=6, deadline=None)
def test_any(cases: list[Binary]) -> None:
    data = many({f"case {i}": case.row for i, case in enumerate(cases)})
    assert_exact_random(data, runs=4, seed=cases[0].seed, meaning=False)


@pytest.mark.long
@given(cases=st.lists(binaries(), min_size=10, max_size=10))
@settings(max_examples=200, deadline=None)
def test_many(cases: list[Binary]) -> None:
    data = many({f"case {i}": case.row for i, case in enumerate(cases)})
    assert_exact_random(data, runs=6, seed=cases[0].seed, meaning=False)


@given(shapes=mutually_broadcastable_shapes(num_shapes=2, min_side=1, max_side=5, max_dims=LOOPS))
@settings(max_examples=300, deadline=None)
def test_loops_visit_what_numpy_broadcasts(shapes: BroadcastableShapes) -> None:
    first, second = shapes.input_shapes
    loops = collapse(first, second)
    steps = np.indices(loops.extents).reshape(len(loops.extents), -1)
    for shape, strides in ((first, loops.strides1), (second, loops.strides2)):
        visited = np.tensordot(np.array(strides), steps, 1)
        wanted = np.broadcast_to(np.arange(np.prod(shape, dtype=int)).reshape(shape), shapes.result_shape)
        assert visited.tolist() == wanted.ravel().tolist()
        assert strides[-1] in (0, 1)


@pytest.mark.parametrize(
    ("first", "second", "extents"),
    [
        ((1, 8, 8, 16), (1, 8, 8, 16), (1024,)),
        ((1, 8, 8, 16), (1, 1, 1, 1), (1024,)),
        ((1, 8, 8, 16), (16,), (64, 16)),
        ((1, 8, 8, 16), (1, 8, 8, 1), (64, 16)),
        ((4, 8, 8, 16), (4, 1, 1, 16), (4, 64, 16)),
        ((1,), (1,), (1,)),
    ],
    ids=str,
)
def test_loops_are_few(first: Shape, second: Shape, extents: Shape) -> None:
    assert collapse(first, second).extents == extents


@pytest.mark.parametrize(
    ("case", "inplace"),
    [
        (Binary(), (0, 1)),
        (Binary(shape2=(5,)), (0,)),
        (Binary(shape1=(5,)), (1,)),
        (Binary(shape1=(4, 1), shape2=(1, 6)), ()),
        (Binary(shape2=(4, 3, 5)), (0, 1)),
        (Binary(constant=1), (0,)),
        (Binary(constant=1, shape2=(5,)), ()),
    ],
    ids=str,
)
def test_inputs_that_the_output_may_overwrite(case: Binary, inplace: tuple[int, ...]) -> None:
    (layer,) = compile_bytes(many({"row": case.row})).program.layers
    assert layer.kernel.inplace == inplace


def chain(operators: tuple[str, ...]) -> bytes:
    """Each operator on the result of the one before and one input of the model."""
    model = ModelBuilder()
    shapes = [(1, 6, 6, 8), (8,), (1, 6, 6, 8), (1, 6, 6, 1), (1, 6, 6, 8)]
    value = model.input("x", (1, 6, 6, 8), "int8", scale=0.1, zero_point=3)
    for i, operator in enumerate(operators):
        other = model.input(f"y{i}", shapes[i % len(shapes)], "int8", scale=0.07, zero_point=-2)
        result = model.tensor(f"z{i}", (1, 6, 6, 8), "int8", scale=0.15, zero_point=1)
        model.op(operator, [value, other] if i % 2 else [other, value], [result])
        value = result
    return model.build(value)


@pytest.mark.slow
def test_a_chain_computes_in_place() -> None:
    compiled: Compiled = assert_exact_random(chain(OPERATORS), runs=4)
    assert compiled.placement.arena == 6 * 6 * 8


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_clean_under_sanitizers(dtype: str) -> None:
    rows = {
        f"{operator}, {name}": replace(case, operator=operator, dtype=dtype).row
        for operator in OPERATORS
        for name, case in {**SHAPES, **EDGES}.items()
        if name in ("both ways", "constant channel", "rank 6, every axis", "saturates", "lowest zero points")
    }
    assert_clean(many(rows), runs=4)


def test_int32_adds_as_int32() -> None:
    """Unquantised integers go through TVM; they wrap as the reference's do."""
    plain = [Activation((2, 3), "int32"), Activation((3,), "int32")]
    output = [Activation((2, 3), "int32")]
    rows = {operator: Row(operator, plain, output) for operator in ("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM")}
    assert_exact_random(many(rows), runs=9)


def test_mixed_types_are_refused() -> None:
    inputs = [Activation((2,), "int8", 0.1), Activation((2,), "int16", 0.1)]
    assert refused(Row("ADD", inputs, [Activation((2,), "int8", 0.1)])) == (
        'operator 0 ADD ("row: output 0"): input "row: input 1" is int16, supported is int8'
    )


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    inputs = [Activation((2, 3), "int8", 0.1), Activation((2,), "int8", 0.1)]
    assert refused(Row("MUL", inputs, [Activation((2, 3), "int8", 0.1)])) == (
        'operator 0 MUL ("row: output 0"): the shapes [2, 3] and [2] cannot be broadcast'
    )


def test_an_output_of_another_shape_is_refused() -> None:
    inputs = [Activation((2, 3), "int8", 0.1), Activation((3,), "int8", 0.1)]
    assert refused(Row("SUB", inputs, [Activation((3,), "int8", 0.1)])) == (
        'operator 0 SUB ("row: output 0"): int8 [2,3] and int8 [3] broadcast to [2, 3], not int8 [3]'
    )


def test_a_sum_whose_scale_is_too_small_is_refused() -> None:
    """The reference stops the process there."""
    assert refused(Binary(scales=(1.0, 1.0, 1e-6)).row) == (
        'operator 0 ADD ("row: output 0"): relative scale of the sum 1.90735 is not between 0 and 1: '
        "the output's scale is too small"
    )


def test_int16_zero_points_in_a_product_are_refused() -> None:
    inputs = [Activation((2,), "int16", 0.1, 4), Activation((2,), "int16", 0.1)]
    assert refused(Row("MUL", inputs, [Activation((2,), "int16", 0.1)])) == (
        'operator 0 MUL ("row: output 0"): int16 zero points are [4, 0, 0]; '
        "the reference multiplies only with zero points of 0"
    )


def test_more_loops_than_the_kernels_have_are_refused() -> None:
    case = Binary(shape1=(2, 1, 2, 1, 2, 1, 2), shape2=(1, 2, 1, 2, 1, 2, 1))
    assert refused(case.row).endswith("takes 7 loops, at most 6")


def test_a_scale_per_channel_is_refused() -> None:
    constant = Constant(np.ones((3,), np.int8), (0.1, 0.2, 0.3), axis=0)
    row = Row("ADD", [Activation((2, 3), "int8", 0.1), constant], [Activation((2, 3), "int8", 0.1)])
    assert refused(row) == (
        'operator 0 ADD ("row: output 0"): "row: input 1" has a scale for each slice along an axis; '
        "this operator takes one for the tensor"
    )
