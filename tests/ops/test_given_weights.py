"""Weights that come at run time, weights with a zero point, transposed convolution in float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reference_rows import conv, numbers, tensor, transposed
from support.models.single_op import Activation, Constant
from support.oracle.exactness import assert_exact_random
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.refusal import refused

Weights = Activation | Constant


def dense(dtype: str, weights: Weights, bias: bool = True) -> Row:
    kind = "int64" if dtype == "int16" else "int32"
    inputs = [tensor(dtype, (6, 8)), weights, Constant(np.arange(5).astype(kind) * 700, (0.001,)) if bias else None]
    return Row("FULLY_CONNECTED", inputs, [tensor(dtype, (6, 5), 0.5)], {"fused_activation": "RELU"})


def given(row: Row, position: int = 1) -> Row:
    """The row with weights that come at run time, of one scale."""
    weights = row.inputs[position]
    assert isinstance(weights, Constant)
    inputs = list(row.inputs)
    inputs[position] = Activation(weights.values.shape, "int8", 0.01)
    return replace(row, inputs=inputs)


DRAWN = np.random.RandomState(3).randint(-127, 128, (5, 8)).astype(np.int8)
ROWS: dict[str, Callable[[], Row]] = {
    "int8": lambda: dense("int8", Activation((5, 8), "int8", 0.02)),
    "a zero point": lambda: dense("int8", Activation((5, 8), "int8", 0.02, 9)),
    "int16": lambda: dense("int16", Activation((5, 8), "int8", 0.02)),
    "no bias": lambda: dense("int8", Activation((5, 8), "int8", 0.02), bias=False),
    "constant with a zero point": lambda: dense("int8", Constant(DRAWN, (0.02,), (-17,))),
    "constant with a zero point, int16": lambda: dense("int16", Constant(DRAWN, (0.02,), (5,))),
    "CONV_2D": lambda: given(conv("CONV_2D", 5, (5, 3, 3, 8), 0, "int8")),
    "CONV_2D, int16": lambda: given(conv("CONV_2D", 5, (5, 3, 3, 8), 0, "int16")),
    "DEPTHWISE_CONV_2D": lambda: given(conv("DEPTHWISE_CONV_2D", 8, (1, 3, 3, 8), 3, "int8")),
    "TRANSPOSE_CONV": lambda: given(transposed("int8")),
}


@pytest.mark.parametrize("chosen", [list(ROWS)[:6], list(ROWS)[6:]], ids=["dense", "convolutions"])
def test_as_the_reference(chosen: list[str]) -> None:
    assert_exact_random(many({name: ROWS[name]() for name in chosen}), runs=7)


def test_a_transposed_convolution_ignores_the_zero_point_of_its_weights() -> None:
    """As the reference does."""
    row = transposed("int8")
    weights = row.inputs[1]
    assert isinstance(weights, Constant)
    asymmetric = replace(weights, zero_points=(3,) * len(weights.scales))
    assert_exact_random(many({"row": replace(row, inputs=[row.inputs[0], asymmetric, *row.inputs[2:]])}), runs=3)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transposed_convolution_in_float(padding: str) -> None:
    row = transposed("float32")
    shape = (1, 8, 12, 4) if padding == "SAME" else (1, 9, 13, 4)
    rows = {
        f"{padding} {activation}": Row(
            "TRANSPOSE_CONV",
            [numbers(list(shape)), *(row.inputs[1:] if activation != "NONE" else row.inputs[1:3])],
            [Activation(shape, "float32")],
            {**row.options, "padding": padding, "fused_activation": activation},
        )
        for activation in ("NONE", "RELU", "RELU6")
    }
    data = many(rows)
    host, reference = HostModel(compile_bytes(data)), Tflm(data)
    for values in random_inputs(data, 0, 7):
        for got, wanted in zip(host(*values), reference.run(values), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


def test_zero_points_that_differ() -> None:
    weights = Constant(DRAWN, (0.02,) * 5, (1, 2, 3, 4, 5))
    assert refused(dense("int8", weights)) == (
        'operator 0 FULLY_CONNECTED ("row: output 0"): '
        "the weights have 5 zero points; one for all, or none, can be compiled"
    )
