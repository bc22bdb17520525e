"""Layer normalisation in integers: the real result in double precision and ONNX Runtime agree with the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.rounded_once import Case, check, module_of, run_onnx
from ops.rounded_once_cases import norm
from support.device.hostlib import HostModel
from support.models.relax_modules import compiled_module
from uaccel.errors import ModelError
from uaccel.model import Quantisation
from uaccel.ops.normalize import layer_norm_operands

Shape = tuple[int, ...]
ONE = np.ones(4, np.float32)


CASES = {
    "rows": norm(),
    "tokens": norm((1, 5, 192), (0.02, -7), (0.025, 3)),
    "a long row": norm((2, 1024)),
    "two elements": norm((40, 2)),
    "three elements": norm((30, 3), (0.9, 0)),
    "one element": norm((4, 1)),
    "large epsilon": norm(epsilon=0.5),
    "tiny scale": norm(given=(1e-4, 0)),
    "gamma of either sign": norm(gammas=(-3.0, 3.0)),
    "gamma of nothing": norm(gammas=(0.0, 0.0)),
    "beta of nothing": norm(betas=(0.0, 0.0)),
    "beta far out": norm(betas=(-30.0, 30.0)),
    "16 bits": norm(given=(3e-4, 700), wanted=(2e-4, -900), dtype="int16"),
    "16 bits, a long row": norm((2, 1024), given=(3e-4, 0), wanted=(2e-4, 0), dtype="int16"),
    "16 bits, two elements": norm((40, 2), given=(3e-4, 0), wanted=(1e-4, 0), dtype="int16"),
    "16 bits, tiny scale": norm(given=(1e-6, 32767), wanted=(2e-4, -32768), dtype="int16"),
    "fine output": norm(wanted=(1e-4, 0)),
    "coarse output": norm(wanted=(1e6, 5)),
}


@pytest.mark.slow
def test_nearest() -> None:
    check(CASES, runs=2)


@st.composite
def any_norm(draw: st.DrawFn) -> Case:
    scale, point = st.floats(1e-3, 0.5), st.integers(-128, 127)
    return norm(
        (draw(st.integers(1, 4)), draw(st.integers(1, 80))),
        (draw(scale), draw(point)),
        (draw(st.floats(5e-3, 0.1)), draw(point)),
        epsilon=draw(st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3])),
    )


@given(cases=st.lists(any_norm(), min_size=8, max_size=8), seed=st.integers(0, 1000))
@settings(max_examples=2, deadline=None)
def test_any(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2, meaning=False)


@pytest.mark.long
@given(cases=st.lists(any_norm(), min_size=8, max_size=8), seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_many(cases: list[Case], seed: int) -> None:
    check({f"case {i}": case for i, case in enumerate(cases)}, seed=seed, runs=2)


def test_equal_elements_leave_beta() -> None:
    case = norm((1, 8), betas=(0.3, 0.3))
    (got,) = HostModel(compiled_module(module_of([case])))(np.full((1, 8), -77, np.int8))
    assert got.tolist() == [[-1] * 8]


def test_differences_to_onnx_runtime_are_rare() -> None:
    case = norm((300, 128))
    values = case.inputs[0].random(3)
    (got,) = HostModel(compiled_module(module_of([case])))(values)
    difference = np.abs(got.astype(int) - run_onnx(case, [values]))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= 4


@pytest.mark.parametrize(
    ("given", "wanted", "words"),
    [
        (1e-15, 0.1, "epsilon 1e-05 is too large beside the input's scale 1e-15"),
        (0.1, 1e-12, "gamma and beta reach 1e+12 steps of the output's scale, too far"),
    ],
)
def test_scales_that_are_refused(given: float, wanted: float, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        layer_norm_operands(Quantisation((given,), (0,)), Quantisation((wanted,), (0,)), ONE, ONE, 1e-5)
    assert str(caught.value) == words


def test_a_gamma_that_is_no_number_is_refused() -> None:
    quantisation = Quantisation((0.1,), (0,))
    with pytest.raises(ModelError) as caught:
        layer_norm_operands(quantisation, quantisation, ONE * np.float32("nan"), ONE, 1e-5)
    assert str(caught.value) == "gamma and beta reach nan steps of the output's scale, too far"
