"""FULLY_CONNECTED: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.models.single_op import Activation, Constant, single_op
from support.models.windows import spread_scales
from support.oracle.exactness import assert_exact, assert_exact_random


@dataclass(frozen=True)
class Dense:
    """``output`` is the output's shape where it is not input shape with the last axis replaced."""

    input: tuple[int, ...] = (2, 9)
    units: int = 5
    depth: int = 9
    output: tuple[int, ...] | None = None
    keep_num_dims: bool = False
    dtype: str = "int8"
    input_scale: float = 0.05
    output_scale: float = 0.1
    input_zero_point: int = 11
    output_zero_point: int = -20
    weight_scales: tuple[float, ...] = (0.013,)
    weight_zero_point: int = 0
    activation: str = "NONE"
    bias: str | None = "int32"
    bias_range: int = 3000
    seed: int = 0


def dense(case: Dense) -> bytes:
    generator = np.random.default_rng(case.seed)
    weights = generator.integers(-127, 128, (case.units, case.depth)).astype(np.int8)
    wide = case.dtype == "int16"
    zero_points = (case.weight_zero_point,) * len(case.weight_scales)
    arguments: list[Activation | Constant | None] = [
        Activation(case.input, case.dtype, case.input_scale, 0 if wide else case.input_zero_point),
        Constant(weights, scales=case.weight_scales, zero_points=zero_points, axis=0),
    ]
    if case.bias:
        bias = generator.integers(-case.bias_range, case.bias_range + 1, case.units).astype(case.bias)
        scales = tuple(float(np.float32(case.input_scale) * np.float32(s)) for s in case.weight_scales)
        arguments.append(Constant(bias, scales=scales))
    shape = case.output or (int(np.prod(case.input)) // case.depth, case.units)
    output = Activation(shape, case.dtype, case.output_scale, 0 if wide else case.output_zero_point)
    options: dict[str, bool | str] = {"fused_activation_function": case.activation, "keep_num_dims": case.keep_num_dims}
    return single_op("FULLY_CONNECTED", arguments, [output], options)


CASES = {
    "plain": Dense(),
    "one row": Dense(input=(1, 9)),
    "one unit": Dense(units=1),
    "rank 1 input": Dense(input=(9,)),
    "rank 3 input": Dense(input=(2, 3, 9)),
    "rank 4 input": Dense(input=(1, 2, 2, 9)),
    "rank 4 input of which several axes are the depth": Dense(input=(2, 3, 1, 3)),
    "rank 4 input, dimensions kept": Dense(input=(1, 2, 2, 9), output=(1, 2, 2, 5), keep_num_dims=True),
    "no bias": Dense(bias=None),
    "per channel": Dense(weight_scales=spread_scales(5)),
    "relu": Dense(activation="RELU"),
    "relu6": Dense(activation="RELU6"),
    "relu n1 to 1": Dense(activation="RELU_N1_TO_1"),
    "zero points at the edges": Dense(input_zero_point=-128, output_zero_point=127),
    "saturates": Dense(output_scale=0.0002),
    "multiplier above one": Dense(output_scale=0.0004, weight_scales=(0.1,)),
    "all zero": Dense(output_scale=900.0),
    "huge bias": Dense(bias_range=2**30),
    "deep": Dense(input=(1, 700), depth=700),
    "int16, int64 bias": Dense(dtype="int16", bias="int64", output_scale=4.0),
    "int16, int32 bias": Dense((20, 300), 16, 300, dtype="int16", output_scale=0.5),
    "int16, int32 bias, another seed": Dense((20, 300), 16, 300, dtype="int16", output_scale=0.5, seed=4),
    "int16, no bias": Dense(dtype="int16", bias=None, output_scale=4.0),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_fully_connected(case: Dense) -> None:
    assert_exact_random(dense(case), runs=9)


@pytest.mark.slow
@given(
    rows=st.integers(1, 3),
    depth=st.integers(1, 40),
    units=st.integers(1, 9),
    zero_points=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    scales=st.tuples(st.sampled_from([1e-3, 0.03, 0.7]), st.sampled_from([0.004, 0.2, 9.0])),
    per_channel=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=20, deadline=None)
def test_any_fully_connected(
    rows: int,
    depth: int,
    units: int,
    zero_points: tuple[int, int],
    scales: tuple[float, float],
    per_channel: bool,
    seed: int,
) -> None:
    case = Dense(
        input=(rows, depth),
        depth=depth,
        units=units,
        input_zero_point=zero_points[0],
        output_zero_point=zero_points[1],
        input_scale=scales[0],
        output_scale=scales[1],
        weight_scales=spread_scales(units, seed) if per_channel else (0.013,),
        seed=seed,
    )
    assert_exact_random(dense(case), runs=3, seed=seed, meaning=False)


def test_scales_are_multiplied_in_double_precision() -> None:
    """Scales and a bias at which a product in single precision would give 101."""
    scales = (0.2600212097167969, 0.2653520107269287, 438527.6875)
    bias = Constant(np.array([638751473], np.int32), scales=(scales[0] * scales[1],))
    one = Constant(np.array([[1]], np.int8), scales=(scales[1],))
    arguments: list[Activation | Constant | None] = [Activation((1, 1), "int8", scales[0]), one, bias]
    data = single_op("FULLY_CONNECTED", arguments, [Activation((1, 1), "int8", scales[2])], {})
    assert_exact(data, [[np.zeros((1, 1), np.int8)]])
