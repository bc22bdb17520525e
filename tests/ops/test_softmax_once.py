"""Softmax whose real result is rounded once: exact fractions and ONNX Runtime agree with the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.rounded_once import Case, check, check_onnx, module_of, run_onnx
from ops.rounded_once_cases import softmax
from support.device.hostlib import HostModel
from support.models.relax_modules import compiled_module
from uaccel.errors import ModelError
from uaccel.model import Quantisation
from uaccel.ops.softmax import softmax_once_operands

Shape = tuple[int, ...]


CASES = {
    "classes": softmax(),
    "1000 classes": softmax((1, 1000), (0.06, -10)),
    "attention": softmax((2, 3, 7, 7), (0.02, 0), (1 / 255, -128)),
    "small shares": softmax((3, 200), (0.004, 0), (0.0001, -128)),
    "one element": softmax((4, 1)),
    "a vector": softmax((9,)),
    "steep": softmax((3, 40), (5.0, 0)),
    "flat": softmax((3, 40), (1e-4, 0)),
    "coarse output": softmax((3, 5), (0.05, 0), (0.25, 3)),
    "one step": softmax((3, 5), (0.05, 0), (1.0, 0)),
    "nothing left": softmax((3, 5), (0.05, 0), (1e30, 7)),
    "saturates": softmax((3, 5), (0.05, 0), (1e-8, 7)),
    "16 bits": softmax((3, 20), (0.1, 0), (1 / 32768, 0), "int16"),
    "16 bits to 16": softmax((3, 200), (0.0003, 0), (1 / 32768, 0), "int16", "int16"),
    "16 bits to 16, flat": softmax((3, 1000), (1e-5, 0), (1 / 3276800, 0), "int16", "int16"),
    "16 bits to 16, steep": softmax((20, 10), (0.01, 0), (1 / 32768, 0), "int16", "int16"),
    "16 bits to 8": softmax((3, 20), (0.0003, 0), input_dtype="int16"),
    "16 bits, zero point": softmax((3, 20), (0.1, 0), (1 / 65536, -32768), "int16"),
}


@pytest.mark.slow
def test_nearest() -> None:
    check(CASES)


@st.composite
def any_softmax(draw: st.DrawFn) -> Case:
    point = st.integers(-128, 127)
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 300)))
    wanted = draw(st.sampled_from([1 / 256, 1 / 255, 0.0039, 0.001])), draw(point)
    return softmax(shape, (draw(st.floats(1e-3, 1.0)), draw(point)), wanted)


@given(cases=st.lists(any_softmax(), min_size=8, max_size=8), seed=st.integers(0, 1000))
@settings(max_examples=2, deadline=None)
def test_any(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2, meaning=False)


@pytest.mark.long
@given(cases=st.lists(any_softmax(), min_size=8, max_size=8), seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_many(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2)


def test_equal_elements_share_with_ties_to_the_even_step() -> None:
    """Of 512 each has half a step, of 1024 a quarter, of 342 three quarters."""
    for depth, stored in ((512, 0), (1024, 0), (342, 1), (256, 1), (1, 127), (3, 85)):
        case = softmax((1, depth), (0.1, 0), (1 / 256, 0))
        values = np.full((1, depth), 33, np.int8)
        (got,) = HostModel(compiled_module(module_of([case])))(values)
        assert set(got.ravel().tolist()) == {stored}
        check_onnx(case, [values], got, f"{depth} equal")


def test_differences_to_onnx_runtime_are_rare() -> None:
    """All of them are a step, where float32's noise decides."""
    case = softmax((400, 100), (0.05, 0))
    values = case.inputs[0].random(3)
    (got,) = HostModel(compiled_module(module_of([case])))(values)
    check_onnx(case, [values], got, "many rows")
    assert np.count_nonzero(got != run_onnx(case, [values])) <= 4


def test_an_output_scale_that_is_too_small_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        softmax_once_operands(Quantisation((0.1,), (0,)), Quantisation((1e-12,), (0,)))
    assert str(caught.value).startswith(
        "its quantisation scales give the factor 1e+12, at most 1.07374e+09 is possible"
    )
