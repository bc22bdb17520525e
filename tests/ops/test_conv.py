"""CONV_2D and DEPTHWISE_CONV_2D: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.models.single_op import Activation, Constant, single_op
from support.models.tflite_writer import ModelBuilder
from support.models.windows import Window, conv_2d, depthwise_conv_2d, spread_scales
from support.oracle.exactness import assert_exact_random
from support.oracle.refusal import refused

CONV = {
    "plain": Window(),
    "pointwise": Window(kernel=(1, 1)),
    "pointwise strided": Window(kernel=(1, 1), stride=(2, 2), padding="VALID"),
    "pointwise strided SAME": Window(input=(1, 7, 7, 3), kernel=(1, 1), stride=(2, 3)),
    "valid": Window(padding="VALID"),
    "stride 2": Window(stride=(2, 2), input=(1, 9, 8, 3)),
    "stride 2x1, valid": Window(stride=(2, 1), padding="VALID"),
    "dilated": Window(dilation=(2, 3), input=(1, 9, 11, 2)),
    "dilated valid": Window(dilation=(2, 1), padding="VALID"),
    "even kernel": Window(kernel=(2, 4)),
    "kernel larger than input": Window(input=(1, 2, 2, 3), kernel=(5, 5)),
    "batch of 3": Window(input=(3, 4, 4, 2)),
    "two groups": Window(input=(1, 5, 5, 4), channels=6, groups=2),
    "as many groups as channels": Window(input=(1, 5, 5, 4), channels=8, groups=4),
    "one channel in and out": Window(input=(1, 5, 5, 1), channels=1),
    "per channel": Window(weight_scales=spread_scales(6)),
    "no bias": Window(bias=None),
    "relu": Window(activation="RELU"),
    "relu6": Window(activation="RELU6"),
    "relu n1 to 1": Window(activation="RELU_N1_TO_1"),
    "zero points at the edges": Window(input_zero_point=-128, output_zero_point=127),
    "other zero points at the edges": Window(input_zero_point=127, output_zero_point=-128),
    "saturates": Window(output_scale=0.0001),
    "all zero": Window(output_scale=1000.0),
    "multiplier above one": Window(output_scale=0.00002, weight_range=3, bias_range=10),
    "multiplier that rounds up to one": Window(
        (1, 6, 5, 1), kernel=(1, 1), input_scale=1 + 2**-20, weight_scales=(1 - 2**-20,), output_scale=1, weight_range=1
    ),
    "huge bias": Window(bias_range=2**30),
    "int16, int64 bias": Window(dtype="int16", bias="int64", output_scale=10.0),
    "int16, no bias": Window(dtype="int16", bias=None, output_scale=10.0),
    "int16, int32 bias": Window((1, 9, 9, 16), 16, dtype="int16", bias="int32", output_scale=1.0),
    "int16, int32 bias, overflows": Window((1, 6, 6, 64), 16, dtype="int16", bias="int32", output_scale=3.0),
    "int16, dilated, per channel": Window(dtype="int16", bias="int64", dilation=(2, 2), weight_scales=spread_scales(6)),
    "int16, multiplier just below one": Window(
        (1, 6, 5, 1),
        kernel=(1, 1),
        dtype="int16",
        bias="int64",
        input_scale=1 - 2**-18,
        weight_scales=(1.0,),
        output_scale=1,
        weight_range=1,
    ),
    "int16, groups": Window(dtype="int16", bias="int64", groups=2, output_scale=10.0),
}

DEPTHWISE = {
    "plain": Window(channels=4),
    "multiplier 3": Window(channels=12),
    "multiplier 2 of one channel": Window(input=(1, 6, 5, 1), channels=2),
    "valid": Window(channels=4, padding="VALID"),
    "stride 2": Window(channels=4, stride=(2, 2)),
    "dilated": Window(channels=4, dilation=(2, 2), input=(1, 9, 9, 4)),
    "1x1": Window(channels=4, kernel=(1, 1)),
    "tall": Window(input=(1, 12, 1, 4), channels=4, kernel=(5, 1), padding="VALID"),
    "kernel larger than input": Window(input=(1, 2, 3, 4), channels=4, kernel=(5, 7)),
    "batch of 2": Window(input=(2, 4, 4, 4), channels=4),
    "per channel": Window(channels=8, weight_scales=spread_scales(8)),
    "no bias": Window(channels=4, bias=None),
    "relu6": Window(channels=4, activation="RELU6"),
    "zero points at the edges": Window(channels=4, input_zero_point=-128, output_zero_point=127),
    "int16": Window(channels=4, dtype="int16", bias="int64", output_scale=5.0),
    "int16, multiplier 2": Window(channels=8, dtype="int16", bias="int64", output_scale=5.0),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("case", CONV.values(), ids=CONV.keys())
def test_conv_2d(case: Window) -> None:
    assert_exact_random(conv_2d(case), runs=9)


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", DEPTHWISE.values(), ids=DEPTHWISE.keys())
def test_depthwise_conv_2d(case: Window) -> None:
    assert_exact_random(depthwise_conv_2d(case), runs=9)


def test_depthwise_whose_quantised_axis_a_reshape_made() -> None:
    """The weights have a scale for each slice along axis 3, which the model's input lacks."""
    generator = np.random.RandomState(2)
    model = ModelBuilder()
    flat = model.input("flat", (1, 96), "int8", scale=0.1, zero_point=3)
    image = model.tensor("image", (1, 4, 4, 6), "int8", scale=0.1, zero_point=3)
    shape = model.constant("shape", np.array([1, 4, 4, 6], np.int32))
    model.op("RESHAPE", [flat, shape], [image], {"new_shape": [1, 4, 4, 6]})
    values = generator.randint(-127, 128, (1, 3, 3, 6)).astype(np.int8)
    weights = model.constant("weights", values, scales=spread_scales(6), axis=3)
    output = model.tensor("output", (1, 4, 4, 6), "int8", scale=0.3, zero_point=-4)
    options: dict[str, int | str] = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    model.op("DEPTHWISE_CONV_2D", [image, weights], [output], options)
    assert_exact_random(model.build(output), runs=4)


@st.composite
def windows(draw: st.DrawFn, *, depthwise: bool) -> Window:
    depth = draw(st.integers(1, 5))
    groups = 1 if depthwise else draw(st.sampled_from([1, 1, 2]))
    channels = depth * draw(st.integers(1, 3)) if depthwise else groups * draw(st.integers(1, 5))
    dtype = draw(st.sampled_from(["int8", "int8", "int16"]))
    case = Window(
        input=(draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9)), depth * groups),
        channels=channels * (groups if depthwise else 1),
        groups=groups,
        kernel=(draw(st.integers(1, 4)), draw(st.integers(1, 4))),
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        dilation=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        padding=draw(st.sampled_from(["SAME", "VALID"])),
        dtype=dtype,
        input_zero_point=draw(st.integers(-128, 127)),
        output_zero_point=draw(st.integers(-128, 127)),
        input_scale=draw(st.sampled_from([1e-4, 0.02, 0.5, 3.0])),
        output_scale=draw(st.sampled_from([0.003, 0.1, 1.0, 40.0])),
        weight_scales=draw(st.sampled_from([(0.01,), (0.5,), spread_scales(16)])),
        activation=draw(st.sampled_from(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])),
        bias=draw(st.sampled_from([None, "int64" if dtype == "int16" else "int32"])),
        seed=draw(st.integers(0, 1000)),
    )
    refused = dtype == "int16" and case.input_scale * max(case.weight_scales) >= 2**7 * case.output_scale
    return case if case.fits and not refused else Window(channels=depth, input=(1, 6, 5, depth))


@pytest.mark.slow
@given(case=windows(depthwise=False))
@settings(max_examples=25, deadline=None)
def test_any_conv_2d(case: Window) -> None:
    assert_exact_random(conv_2d(case), runs=3, seed=case.seed, meaning=False)


@pytest.mark.slow
@given(case=windows(depthwise=True))
@settings(max_examples=25, deadline=None)
def test_any_depthwise_conv_2d(case: Window) -> None:
    assert_exact_random(depthwise_conv_2d(case), runs=3, seed=case.seed, meaning=False)


@pytest.mark.long
@given(case=windows(depthwise=False), depthwise=windows(depthwise=True))
@settings(max_examples=300, deadline=None)
def test_many_windows(case: Window, depthwise: Window) -> None:
    assert_exact_random(conv_2d(case), runs=4, seed=case.seed)
    assert_exact_random(depthwise_conv_2d(depthwise), runs=4, seed=case.seed)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(
    ("op", "weights"),
    [
        ("CONV_2D", (2, 1, 1, 2)),
        ("CONV_2D", (2, 1, 1, 0)),
        ("DEPTHWISE_CONV_2D", (1, 1, 1, 0)),
        ("FULLY_CONNECTED", (2, 0)),
    ],
)
def test_weights_that_do_not_fit_are_refused(op: str, weights: tuple[int, ...], dtype: str) -> None:
    import numpy as np

    scale = 0.1 if dtype == "int8" else None
    options = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    data = single_op(
        op,
        [Activation((1, 4, 4, 3), dtype, scale), Constant(np.ones(weights, dtype), (scale,) if scale else ())],
        [Activation((1, 4, 4, 2), dtype, scale)],
        {} if op == "FULLY_CONNECTED" else {"padding": "SAME", **options},
    )
    why = f"input {dtype} [1,4,4,3] does not fit weights {dtype} [{','.join(map(str, weights))}]"
    assert f'operator 0 {op} ("output_0"): {why}' in refused(data)


def test_outputs_that_the_file_declares_otherwise_are_refused() -> None:
    data = single_op(
        "MAX_POOL_2D",
        [Activation((1, 4, 4, 2), "int8", 0.1, 0)],
        [Activation((1, 3, 3, 2), "int8", 0.1, 0)],
        {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2},
    )
    assert refused(data) == (
        'operator 0 MAX_POOL_2D ("output_0"): the file declares "output_0" as int8 [1,3,3,2], '
        "the operator computes int8 [1,2,2,2]"
    )


def test_scales_beyond_16_bit_activations_are_refused() -> None:
    case = Window(dtype="int16", bias="int64", output_scale=1e-6, weight_scales=(0.5,))
    assert refused(conv_2d(case)) == (
        "operator 0 CONV_2D (\"output_0\"): the output's scale is finer than the products' by 2**15; "
        "16-bit activations allow 2**7"
    )
