"""Sums and products whose real result is rounded once, half to even, with broadcasting."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import BroadcastableShapes, mutually_broadcastable_shapes

from ops.rounded_once import Case, check, check_ideal, module_of
from ops.rounded_once_cases import binary
from support.device.hostlib import Array
from support.models.relax_modules import compiled_module
from uaccel.errors import ModelError
from uaccel.model import Quantisation
from uaccel.ops.binary import weighted_sum_attrs
from uaccel.ops.fixedpoint import fixed_ratios
from uaccel.tvm_api.executor import Executor

OPERATORS = ("Add", "Sub", "Mul")


def table(operator: str, dtype: str) -> dict[str, Case]:
    rows: dict[str, dict[str, Any]] = {
        "any scales": {},
        "equal scales": {"scales": (0.1, 0.1, 0.1)},
        "ties": {"scales": (0.1, 0.1, 0.2)},
        "ties of thirds": {"scales": (0.75, 0.5, 1.5)},
        "powers of two": {"scales": (0.5, 0.25, 0.125)},
        "odd fractions": {"scales": (0.75, 0.625, 1.0)},
        "first much finer": {"scales": (1e-6, 0.5, 0.3)},
        "second much finer": {"scales": (0.5, 1e-6, 0.3)},
        "saturates": {"scales": (0.3, 0.2, 0.0004)},
        "all zero": {"scales": (0.3, 0.2, 5e10)},
        "lowest zero points": {"points": (-128, -128, -128)},
        "highest zero points": {"points": (127, 127, 127)},
        "far zero points": {"points": {"int8": (-128, 127, 1), "int16": (32767, -32768, 5)}[dtype]},
        "rectified": {"points": (3, -5, -11), "clamp": (-11, 60)},
        "channel": {"shapes": ((1, 4, 4, 5), (1, 1, 1, 5))},
        "scalar": {"shapes": ((), (1, 4, 4, 5))},
        "both ways": {"shapes": ((2, 1, 4, 1), (1, 3, 1, 5))},
    }
    return {name: binary(operator, dtype=dtype, **row) for name, row in rows.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "dtype"), [("Add", "int8"), ("Sub", "int16"), ("Mul", "int8"), ("Mul", "int16")])
def test_nearest(operator: str, dtype: str) -> None:
    check(table(operator, dtype), runs=2, meaning=dtype == "int8")


@st.composite
def binaries(draw: st.DrawFn) -> Case:
    shapes: BroadcastableShapes = draw(mutually_broadcastable_shapes(num_shapes=2, min_side=1, max_side=4, max_dims=4))
    scale, point = st.floats(1e-4, 10.0), st.integers(-128, 127)
    return binary(
        draw(st.sampled_from(OPERATORS)),
        (draw(scale), draw(scale), draw(scale)),
        (draw(point), draw(point), draw(point)),
        (shapes.input_shapes[0] or (1,), shapes.input_shapes[1] or (1,)),
        draw(st.sampled_from(["int8", "int8", "int16"])),
    )


@given(cases=st.lists(binaries(), min_size=20, max_size=20), seed=st.integers(0, 1000))
@settings(max_examples=2, deadline=None)
def test_any(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2, meaning=False)


@pytest.mark.long
@given(cases=st.lists(binaries(), min_size=20, max_size=20), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_many(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=4)


def every_pair(case: Case) -> tuple[Array, Array]:
    values = np.arange(-128, 128, dtype=np.int8)
    pairs = np.meshgrid(values, values)
    return np.ascontiguousarray(pairs[0]), np.ascontiguousarray(pairs[1])


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_of_bytes_where_ties_abound(operator: str) -> None:
    """Also where a multiplier of finitely many bits misses the middle: thirds of an odd number and halves."""
    shapes = ((256, 256), (256, 256))
    scales = (0.1, 0.3, 0.06) if operator == "Mul" else (0.75, 0.5, 1.5)
    case = binary(operator, scales, (3, -128, 5), shapes)
    values = every_pair(case)
    (got,) = Executor(module_of([case])).run(values)
    check_ideal(case, values, got, operator)


@pytest.mark.parametrize(
    ("ratios", "multipliers", "shift", "exact"),
    [
        ((Fraction(1), Fraction(1, 2)), (1 << 30, 1 << 29), 30, True),
        ((Fraction(3, 4), Fraction(-5, 8)), (3 << 29, -5 << 28), 31, True),
        ((Fraction(1, 3),), (0x55555555,), 32, False),
        ((Fraction(2) - Fraction(1, 1 << 40),), (1 << 30,), 29, False),
        ((Fraction(1, 1 << 40),), (1 << 22,), 62, True),
        ((Fraction(1, 1 << 70),), (0,), 62, False),
        ((Fraction(1 << 30) - 1,), ((1 << 31) - 2,), 1, True),
    ],
    ids=str,
)
def test_ratios(ratios: tuple[Fraction, ...], multipliers: tuple[int, ...], shift: int, exact: bool) -> None:
    found = fixed_ratios(ratios, 31)
    assert (found.multipliers, found.shift, found.exact) == (multipliers, shift, exact)


@pytest.mark.parametrize(
    ("scales", "words"),
    [
        (
            (1.0, 1.0, 1e-10),
            "its quantisation scales give the factor 1e+10, at most 1.07374e+09 is possible: the output's scale is too "
            "small; quantise the model again",
        ),
        ((0.0, 1.0, 1.0), "a scale is 0; scales are positive numbers: quantise the model again"),
        ((1.0, float("nan"), 1.0), "a scale is nan; scales are positive numbers: quantise the model again"),
        ((1.0, 1.0, float("inf")), "a scale is inf; scales are positive numbers: quantise the model again"),
        ((1.0, -1.0, 1.0), "a scale is -1; scales are positive numbers: quantise the model again"),
    ],
    ids=str,
)
def test_scales_that_are_refused(scales: tuple[float, float, float], words: str) -> None:
    first, second, output = (Quantisation((scale,), (0,)) for scale in scales)
    with pytest.raises(ModelError) as caught:
        weighted_sum_attrs(first, second, output, "int8")
    assert str(caught.value) == words


def test_the_output_may_overwrite_an_input() -> None:
    (layer,) = compiled_module(module_of([binary("Add", shapes=((4, 5), (5,)))])).program.layers
    assert layer.kernel.inplace == (0,)
