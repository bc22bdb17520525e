"""What operators state about themselves fits what they are."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields
from typing import Any

import pytest

from uaccel.ops.operator import (
    REGISTRY,
    Attributes,
    Elementwise,
    IntegerOperator,
    elementwise_of,
    macs_of,
    permuted_axes,
)
from uaccel.tvm_api import relax

importlib.import_module("uaccel.pipeline")  # every operator is registered by now
OPERATORS = sorted(REGISTRY.values(), key=lambda operator: operator.name)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_traits_name_what_is_there(operator: IntegerOperator[Any]) -> None:
    names = {field.name for field in fields(operator.attributes)}
    assert not inspect.isabstract(type(operator))
    assert operator.channel_axis in {"", *names}
    assert not operator.keeps_number or {"clamp_min", "clamp_max"} <= names
    assert operator.elementwise is None or operator.channels is None
    assert operator.elementwise is not Elementwise.EACH or len(operator.arguments) == 2


def test_attributes_are_those_that_the_class_is_generic_in() -> None:
    class Own(Attributes):
        axis: int

    class Between(IntegerOperator[Own]):
        pass

    class Last(Between):
        pass

    assert (Between.attributes, Last.attributes) == (Own, Own)


def call(operator: Any, *shapes: tuple[int, ...], **attributes: Any) -> Any:
    variables = [relax.Var(f"x{i}", relax.TensorType(shape, "float32")) for i, shape in enumerate(shapes)]
    return relax.BlockBuilder().normalize(operator(*variables, **attributes))


def test_relax_own_operators_are_asked_in_the_same_way() -> None:
    assert elementwise_of(call(relax.op.add, (2, 3), (3,))) is Elementwise.EACH
    assert elementwise_of(call(relax.op.matmul, (2, 3), (3, 4))) is None
    assert macs_of(call(relax.op.matmul, (2, 3), (3, 4))) == 2 * 3 * 4
    assert macs_of(call(relax.op.nn.conv2d, (1, 3, 8, 8), (5, 3, 3, 3))) == 5 * 6 * 6 * 27
    assert macs_of(call(relax.op.nn.conv2d_transpose, (1, 3, 8, 8), (3, 5, 2, 2))) == 3 * 64 * 5 * 4
    assert macs_of(call(relax.op.add, (2, 3), (3,))) == 0
    assert permuted_axes(call(relax.op.permute_dims, (2, 3, 4), axes=[0, -1, 1])) == (0, 2, 1)
    assert permuted_axes(call(relax.op.permute_dims, (2, 3, 4))) == (2, 1, 0)
