"""What a comparison says: bits, distances, tolerances, and whether it proves anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uaccel.runner.compare import Comparison, Mismatch, compare, differing, moved, steps_between
from uaccel.runner.samples import default_samples
from uaccel.session.tensors import TensorType, ramp


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
    assert compared([np.nan, np.inf], [np.copysign(np.nan, -1.0), np.inf], "float32")["bit_exact"] is True


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
        ([7, 7, 7], "int8", True),
        ([7], "int8", False),
        ([0.5, 0.5], "float32", True),
        ([np.nan, np.nan], "float32", True),
        ([np.nan, 0.5, 0.25], "float32", False),
        ([], "int8", True),
    ],
)
def test_saturated_and_constant_values_prove_little(values: list[float], dtype: str, little: bool) -> None:
    assert compared(values, values, dtype)["proves_little"] is little


def test_an_output_that_is_the_same_for_samples_that_differ_proves_little() -> None:
    values = np.array([1, 2], np.int8)
    for varied, inner, little in ((True, values, True), (False, values, False), (True, values + np.int8(1), False)):
        found = Comparison(varied=varied)
        for tensor in (values, inner):
            found.add(0, "y", values, values)
            found.add(0, "inner", tensor, tensor, kind="tensor")
        assert found.proves_little is little


def test_what_is_counted_of_many_tensors() -> None:
    found = Comparison()
    assert (found.proves_little, found.to_json()["top_class_agrees"], found.snr_db) == (True, None, None)
    found.add(0, "y", np.array([127, 2, 40], np.int8), np.array([127, 2, 60], np.int8))
    found.add(0, "inner", np.array([True]), np.array([True]), kind="tensor")
    found.add(1, "y", np.array([1, 2, 3], np.int8), np.array([2, 1, 3], np.int8))
    found.add(1, "inner", np.array([True]), np.array([False]), kind="tensor")
    assert (found.compared, found.unequal, found.tensors) == (8, 4, ["inner"])
    assert (found.classes, found.agreeing, found.largest) == (2, 2, {"steps": 20})
    assert (found.power, found.noise) == (127**2 + 2**2 + 40**2 + 1 + 1**2 + 2**2 + 3**2 + 1, 20**2 + 1 + 1 + 1)
    assert found.snr_db == pytest.approx(10 * np.log10(found.power / found.noise))
    assert found.first is not None
    assert found.beyond == found.first
    assert str(found.first) == 'sample 0, output "y", element [2] is 60, expected 40; 1 of 3 elements differ'
    counts = {"-1": 1, "0": 3, "1": 1, "16": 1}
    assert found.to_json()["differences"] == [{"tensor": "y", "what": "output", "counts": counts}]


def test_the_larger_difference_is_told_in_its_units() -> None:
    found = Comparison()
    found.add(0, "y", np.array([1, 2], np.int8), np.array([1, 4], np.int8))
    found.add(0, "z", np.array([1.0, 2.0], np.float32), np.array([1.0, 12.0], np.float32))
    assert found.largest == {"steps": 2, "relative": 5}
    assert (found.to_json()["units"], found.to_json()["largest_difference"]) == ("relative", 5)
    assert found.to_json()["first_difference"]["got"] == 4


def test_the_first_element_that_differs() -> None:
    expected = np.array([[1, 2], [3, 4]], np.int8)
    mismatch = compare(np.array([[1, 3], [3, 5]], np.int8), expected)
    assert mismatch == Mismatch((0, 1), expected=2, got=3, differing=2, size=4)
    assert str(mismatch) == "[0,1] is 3, expected 2; 2 of 4 elements differ"
    assert compare(expected, expected) is None
    assert differing(expected, expected + np.int8(1)).all()
    assert compare(expected + np.int8(1), expected, tolerance=1) is None
    assert compare(np.array([1.0, np.inf, np.nan]), np.array([1.0, np.inf, np.nan])) is None
    assert compare(np.array([1.0, np.inf]), np.array([1.0, 5.0])) is not None
    assert compare(np.array([1.0 + 4e-3]), np.array([1.0]), tolerance=5e-3) is None


def test_differences_at_the_ends_of_a_type() -> None:
    """As far as a type reaches, and no farther: what would wrap is wide."""
    assert compare(np.array([-128], np.int8), np.array([127], np.int8), tolerance=254) is not None
    assert compare(np.array([-128], np.int8), np.array([127], np.int8), tolerance=255) is None
    assert steps_between(np.array([0, 15, 16, 17], np.uint8), np.array([17, 0, 0, 0], np.uint8)) == {
        -16: 1,
        15: 1,
        16: 2,
    }
    assert not steps_between(np.array([1.0]), np.array([2.0]))


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


def test_floats_move_by_roundings_of_their_own_and_zeros_by_what_they_are_told() -> None:
    value = np.array([0, 1, -4, np.inf], np.float32)
    apart = np.abs(moved(value, np.random.default_rng(0), 16, zero=2.0)[:3] - value[:3])
    assert (apart == 16 * np.float32(2.0**-23) * np.array([2, 1, 4], np.float32)).all()
    assert np.isinf(moved(value, np.random.default_rng(0))[3])
