"""What this computer executes is defined where LLVM or TVM leave it open: it is what C computes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from uaccel.tvm_api import ModuleBuilder, relax
from uaccel.tvm_api.executor import Executor
from uaccel.tvm_api.extremes import TvmRefusalError, refusals

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
VALUES: dict[str, list[float]] = {
    "float32": [np.nan, 1, 2, np.inf],
    "float64": [np.nan, -np.inf, 0],
    "bool": [False, True],
}


@pytest.mark.parametrize("dtype", VALUES)
def test_comparisons(dtype: str) -> None:
    """NaN is unequal to itself, and truths can be compared."""
    one, other = np.array(list(itertools.product(VALUES[dtype], repeat=2)), dtype).T
    builder = ModuleBuilder()
    parameters = [relax.Var(name, relax.TensorType(one.shape, dtype)) for name in ("one", "other")]
    with builder.function(parameters) as block:
        results = [block.emit(getattr(relax.op, name)(*parameters), name) for name in COMPARISONS]
        block.finish(relax.Tuple(results))
    for name, got in zip(COMPARISONS, Executor(builder.module).run([one, other]), strict=True):
        np.testing.assert_array_equal(got, getattr(np, name)(one, other), name)


def test_a_name_that_is_not_defined_is_no_refusal() -> None:
    """It is a fault of the program's, which no model is told to be refused for."""
    with pytest.raises(NameError), refusals():
        raise NameError("name 'x' is not defined")
    with pytest.raises(TvmRefusalError), refusals():
        raise AssertionError("no such layout")


def test_a_product_with_the_number_0_is_nan_where_the_other_factor_is() -> None:
    x = np.array([np.nan, np.inf, -2], np.float32)
    builder = ModuleBuilder()
    value, zero = relax.Var("x", relax.TensorType(x.shape, "float32")), relax.const(0, "float32")
    with builder.function([value]) as block:
        products = [relax.op.multiply(value, zero), relax.op.multiply(zero, value)]
        block.finish(relax.Tuple([block.emit(product, "y") for product in products]))
    for got in Executor(builder.module).run([x]):
        np.testing.assert_array_equal(got, x * np.float32(0))
