"""Products of functions of two tensors, and PReLU with many slopes: the real result rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from ops.rounded_once import Case, check
from ops.rounded_once_cases import gate, slopes
from uaccel.errors import ModelError
from uaccel.model import Quantisation
from uaccel.ops.activation import function_product_operands, prelu_once_operands

GATES = {
    "a gate": gate(),
    "two functions": gate(("tanh", "sigmoid"), (0.04, 0.06, 1 / 128)),
    "a gate for each row": gate(shapes=((2, 4, 40), (4, 1))),
    "rows for each gate": gate(shapes=((1, 40), (2, 4, 40))),
    "rectified": gate(clamp=(7, 60)),
    "far zero points": gate(points=(-128, 127, -128)),
    "a function with a wide range": gate(("identity", "exp"), (0.04, 0.1, 0.5)),
    "coarse output": gate(scales=(0.04, 0.06, 1e6)),
    "fine output": gate(scales=(0.04, 0.06, 1e-7)),
    "nothing": gate(("identity", "nothing")),
    "a quotient": gate(("identity", "reciprocal"), (0.04, 0.06, 0.005)),
    "a quotient of integers, with ties": gate(("identity", "reciprocal"), (1.0, 1.0, 0.5)),
}
SLOPES = {
    "channels": slopes(0.1, -0.4, 1.5, 0.0, 1.0, -1.0, 3.0),
    "ties": slopes(0.5, -0.5, 0.25, scales=(0.1, 0.1)),
    "saturates": slopes(0.1, 0.3, scales=(0.3, 0.0004)),
    "rectified": slopes(0.1, -0.4, clamp=(-20, 60)),
    "far zero points": slopes(0.1, -0.4, points=(-128, 127)),
    "16 bits": slopes(0.1, -0.4, 1.5, scales=(3e-4, 2e-4), points=(0, 0), dtype="int16"),
}

PLAIN = ("identity", "sigmoid", "tanh")
DRAWN = [("identity", "reciprocal"), *((first, second) for first in PLAIN for second in PLAIN)]


@pytest.mark.slow
def test_nearest() -> None:
    check(SLOPES, runs=2)
    check(GATES, runs=2, onnx=False)


def drawn(random: np.random.Generator) -> Case:
    names = DRAWN[random.integers(len(DRAWN))]
    a, b, c = random.integers(-128, 128, 3).tolist()
    scales = random.uniform(1e-3, 0.1, 3)
    return gate(names, (scales[0], scales[1], scales[2]), (a, b, c), ((3, 50), (3, 50)))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 30))])
def test_any(seed: int) -> None:
    random = np.random.default_rng(seed)
    check({f"case {i}": drawn(random) for i in range(8)}, seed=seed, runs=2, meaning=False, onnx=False)


def test_factors_too_wide_for_32_bits_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        gate(("exp", "exp"), (0.08, 0.08, 0.02))
    assert str(caught.value) == "its factors have so wide ranges that 32 bits leave them 49.3 steps"


def test_a_function_that_is_no_number_is_refused() -> None:
    values = np.ones(256)
    values[3] = np.nan
    with pytest.raises(ModelError) as caught:
        function_product_operands(0, values, 0, (-128, 127), "log")
    assert str(caught.value) == "a function of one of its inputs has a value that is no number"


def test_a_division_by_nothing_saturates() -> None:
    values = np.ones(256)
    values[:2] = np.inf, -np.inf
    attrs, _, table = function_product_operands(0, values, 0, (-128, 127), "reciprocal")
    low, high = table.reshape(2, 256).astype(np.int64)
    assert ((high[:3] * 2**32 + low[:3]) / 2**attrs.shift).tolist() == [1024, -1024, 1]


def test_a_slope_that_is_no_number_is_refused() -> None:
    one = Quantisation((0.1,), (0,))
    with pytest.raises(ModelError) as caught:
        prelu_once_operands(one, one, "int8", np.array([0.1, np.nan], np.float32), (-128, 127))
    assert str(caught.value) == "one of its slopes is no number"
