"""Files with fields that converters of today seldom write: they mean what TFLite makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tflite

from support.models.single_op import Activation, single_op
from support.models.tflite_writer import ModelBuilder
from support.oracle.exactness import assert_exact_random, assert_same
from support.oracle.oracle import random_inputs, run_litert
from uaccel.errors import ModelError
from uaccel.frontend.checks import Budget
from uaccel.frontend.tflite.reader import TfliteGraph, parse

IN, OUT = Activation((1, 3, 4), scale=0.05, zero_point=3), Activation((1, 3, 4), scale=0.02, zero_point=-7)
NO_ACTIVATION = {"fused_activation_function": "NONE"}


def read(data: bytes) -> TfliteGraph:
    return parse(data, "m.tflite", Budget("m.tflite"))


def with_new_codes_alone(data: bytes) -> bytes:
    """The same model with 0 in the old, 8-bit field of operators' codes."""
    changed, model = bytearray(data), tflite.Model.GetRootAs(data, 0)
    for number in range(model.OperatorCodesLength()):
        table = model.OperatorCodes(number)._tab
        if slot := table.Offset(4):
            changed[table.Pos + slot] = 0
    return bytes(changed)


@pytest.mark.parametrize(
    ("operator", "options"),
    [("ADD", NO_ACTIVATION), ("MUL", NO_ACTIVATION), ("SUB", NO_ACTIVATION), ("MAXIMUM", {}), ("MINIMUM", {})],
)
def test_the_new_code_alone_tells_the_operator(operator: str, options: dict[str, Any]) -> None:
    """The package that reads flatbuffers for us would tell an ADD, whatever the operator."""
    data = with_new_codes_alone(single_op(operator, [IN, IN], [IN if not options else OUT], options))
    assert [one.name for one in read(data).operators] == [operator]
    assert_exact_random(data)


def dense(*, outside: bool) -> bytes:
    """A fully connected layer, whose constants lie in the flatbuffer or behind it."""
    generator, model = np.random.default_rng(7), ModelBuilder()
    x = model.input("x", (2, 12), "int8", scale=0.05, zero_point=3)
    weights = model.constant("w", generator.integers(-127, 128, (5, 12)).astype(np.int8), scales=[0.01])
    bias = model.constant("b", generator.integers(-900, 900, 5).astype(np.int32), scales=[0.0005])
    y = model.tensor("y", (2, 5), "int8", scale=0.1, zero_point=-4)
    model.op("FULLY_CONNECTED", [x, weights, bias], [y], NO_ACTIVATION)
    return model.build(y, outside=outside)


def test_constants_may_lie_behind_the_flatbuffer() -> None:
    """As in files above 2 GB; LiteRT knows such files, TFLite Micro does not."""
    inside, outside = dense(outside=False), dense(outside=True)
    for values in random_inputs(inside, 0, 3):
        for one, other in zip(run_litert(inside, values), run_litert(outside, values), strict=True):
            assert_same(other, one, "LiteRT on constants behind the flatbuffer")
    for tensor, same in zip(read(inside).tensors, read(outside).tensors, strict=True):
        assert (tensor.data is None) == (same.data is None)
        if tensor.data is not None and same.data is not None:
            assert_same(same.data, tensor.data, tensor.name)


def test_a_constant_that_ends_behind_the_file_is_refused() -> None:
    data = dense(outside=True)
    with pytest.raises(ModelError, match=r"m.tflite is damaged or truncated \(\d+ bytes\): a buffer of \d+ bytes at "):
        read(data[:-4])
