"""What a comparison says: bits, distances, tolerances, and whether it proves anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uaccel.running.compare import Comparison
from uaccel.running.samples import default_samples
from uaccel.session.inputs import ramp
from uaccel.session.tensors import TensorType


def compared(expected: Any, got: Any, dtype: str, tolerance: float = 0) -> dict[str, Any]:
    found = Comparison(tolerance)
    found.add(0, "y", np.array(expected, dtype), np.array(got, dtype))
    return found.to_json()


def test_equal_bits() -> None:
    report = compared([1, 2, 3], [1, 2, 3], "int8")
    assert (report["bit_exact"], report["compared"], report["largest_difference"]) == (True, 3, 0)
    assert (report["snr_db"], report["first_difference"], report["tolerance"]) == (None, None, 0)
    assert "within_tolerance" not in report


def test_floats_that_are_nearly_equal_are_not_bit_exact() -> None:
    report = compared([1.0, 2.0], [1.0 * (1 + 4e-6), 2.0 * (1 + 4e-6)], "float32")
    assert (report["bit_exact"], report["within_tolerance"], report["units"]) == (False, True, "relative")
    assert report["largest_difference"] == pytest.approx(4e-6, rel=0.1)
    assert report["tolerance"] == pytest.approx(1e-5)
    assert 100 < report["snr_db"] < 115
    assert compared([1.0, 2.0], [1.0, 2.0 * (1 + 4e-5)], "float32")["within_tolerance"] is False
    assert compared([0.0], [-0.0], "float32")["bit_exact"] is False
    assert compared([np.nan, np.inf], [np.nan, np.inf], "float32")["bit_exact"] is True


def test_what_sums_cancel_is_judged_by_the_size_of_the_tensor() -> None:
    assert compared([100.0, 1e-3], [100.0, 1.1e-3], "float32")["within_tolerance"] is True


def test_steps_of_an_accelerator_that_rounds_by_itself() -> None:
    report = compared([10, -20, 30, 40], [10, -18, 30, 40], "int8", tolerance=2)
    assert (report["bit_exact"], report["within_tolerance"], report["units"]) == (False, True, "steps")
    assert (report["largest_difference"], report["tolerance"]) == (2, 2)
    assert report["first_difference"]["index"] == [1]
    assert report["top_class_agrees"] == 1
    assert compared([10, -20], [10, -17], "int8", tolerance=2)["within_tolerance"] is False


@pytest.mark.parametrize(
    ("values", "dtype", "little"),
    [
        ([-128, 127, -128], "int8", True),
        ([-128, 0, -128], "int8", False),
        ([0, 255], "uint8", True),
        ([-32768, 32767], "int16", True),
        ([0.0, 1.0], "float32", False),
    ],
)
def test_saturated_values_prove_little(values: list[float], dtype: str, little: bool) -> None:
    assert compared(values, values, dtype)["proves_little"] is little


def test_samples_are_the_ramp_first_then_what_a_ramp_does_not_show() -> None:
    tensor = TensorType("x", (1, 300), "int8")
    samples = [values[0] for values in default_samples([tensor], 8, seed=3)]
    np.testing.assert_array_equal(samples[0], ramp(tensor))
    assert [(int(s.min()), int(s.max())) for s in samples[1:5]] == [(0, 0), (-128, -128), (127, 127), (-128, 127)]
    assert len({sample.tobytes() for sample in samples}) == 8
    again, other = default_samples([tensor], 8, seed=3), default_samples([tensor], 8, seed=4)
    np.testing.assert_array_equal(again[7][0], samples[7])
    assert not np.array_equal(other[7][0], samples[7])
    assert len(default_samples([tensor], 1)) == 1


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "bool"])
def test_samples_of_any_type_have_it(dtype: str) -> None:
    tensor = TensorType("x", (2, 3), dtype)
    for (values,) in default_samples([tensor], 8):
        assert (str(values.dtype), values.shape) == (dtype, (2, 3))
        assert dtype not in ("int32", "int64") or np.abs(values).max() <= 128, "they are often indices"
