"""Every option and type of ATen's operators, one call at a time, against PyTorch: right, or refused in words."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the torch package is not installed")

from support.models.operands import Operand, stored  # after the skip
from support.models.torch_options import Call, call_of, drawn, form, operators
from support.oracle.torch_differential import failures
from support.run.tiers import ROTATION

QUICK = 8  # Calls of one run of ``make test``, drawn anew in each.
S = (2, 3, 4)
INFINITE = Operand((3,), np.inf, np.inf)
MENDED = {
    "truths added": call_of("add.Tensor", form((4,), (4,), types=("bool",))),
    "whether any byte": call_of("any.dim", form(S, 1, types=("uint8",))),
    "one bound of integers": call_of("clamp.Tensor", form(S, None, (3, 1), types=("int32",))),
    "integers beside a fraction": call_of("eq.Scalar", form(Operand(S, -2, 2), -1.5, types=("int8",))),
    "crossed bounds": call_of("clamp.default", form(S, 2, 1)),
    "extremes of truths": call_of("maximum.default", form((4,), (4,), types=("bool",))),
    "place of infinities": call_of("argmin.default", form(INFINITE, 0)),
    "whether any is NaN": call_of("any.dims", form(stored([[np.nan], [0]]), [[1]])),
    "infinite beside NaN": call_of("hypot.default", form(INFINITE, stored([np.nan, 1, np.inf]))),
    "windows of minus infinity": call_of("max_pool2d.default", form(Operand((1, 2, 4, 4), -np.inf, -np.inf), [2, 2])),
    "padded windows of minus infinity": call_of(
        "max_pool2d.default", form(Operand((1, 2, 4, 4), -np.inf, -np.inf), [2, 2], [1, 1], [1, 1])
    ),
    "volumes of minus infinity": call_of(
        "max_pool3d.default", form(Operand((1, 2, 4, 5, 4), -np.inf, -np.inf), [2, 2, 2], [2, 2, 1], [1, 0, 1])
    ),
    "truths in order": call_of("argsort.stable", form((4,), types=("bool",), stable=True)),
    "median with NaN": call_of("median.dim", form(stored([[1, np.nan, 0], [3, 2, 1]]), 1)),
    "NaN times the number 0": call_of("mul.Scalar", form(stored([np.nan, 1]), 0)),
    "bound of truths": call_of("clamp.Tensor", form((4,), None, (4,), types=("bool",))),
    "infinities rounded down": call_of("div.Tensor_mode", form(INFINITE, stored([2, -2, 0]), rounding_mode="floor")),
    "rounded down once": call_of(
        "div.Tensor_mode", form(stored([1.0, -1.0]), stored([0.1, 0.1]), rounding_mode="floor")
    ),
}


def test_what_was_wrong(tmp_path: Path) -> None:
    assert failures(list(MENDED.values()), tmp_path) == {}


def test_a_share_of_all_options_and_types(tmp_path: Path) -> None:
    rng = np.random.default_rng(int(os.environ.get(ROTATION, "0")))
    calls: list[Call] = []
    for operator in rng.permutation(operators())[:QUICK]:
        some = list(drawn(str(operator), 4))
        calls += [some[rng.integers(len(some))]] if some else []
    assert failures(calls, tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize("operator", operators())
def test_all_options_and_types(operator: str, tmp_path: Path) -> None:
    assert failures(list(drawn(operator)), tmp_path) == {}
