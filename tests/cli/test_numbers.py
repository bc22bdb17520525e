"""Numbers that JSON has no word for: a report holds them as text, and comparing takes them for what they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder
from support.run.command import Call
from uaccel.report.run_json import batched, tensors_report
from uaccel.runner.compare import Difference, Mismatch, compare


def test_infinities_and_no_numbers_are_text() -> None:
    array = np.array([[1.5, np.inf], [-np.inf, np.nan]], np.float32)
    report = tensors_report({"x": array})
    assert report == {"x": {"shape": [2, 2], "dtype": "float32", "data": [1.5, "inf", "-inf", "nan"]}}
    difference = Difference(0, "x", Mismatch((1, 0), float("nan"), float("-inf")))
    assert json.loads(json.dumps(difference.to_json(), allow_nan=False))["expected"] == "nan"


@pytest.mark.parametrize(
    ("expected", "got", "index"),
    [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 9, 3], (1,)),
        ([1.0, np.nan], [1.0, np.nan], None),
        ([1.0, np.inf], [1.0, -np.inf], (1,)),
        ([1.0, 2.0], [1.0 + 1e-6, 2.0], None),
        ([1.0, 2.0], [1.0, 2.001], (1,)),
        ([1.0, 2.0], [np.nan, 2.0], (0,)),
    ],
)
def test_the_first_that_differs(expected: list[float], got: list[float], index: tuple[int, ...] | None) -> None:
    found = compare(np.array(got), np.array(expected))
    assert (None if found is None else found.index) == index


@pytest.mark.parametrize(("shape", "whole"), [((1, 4), (3, 4)), ((2, 4), (3, 2, 4)), ((), (3,)), ((1,), (3,))], ids=str)
def test_several_samples_lie_along_the_batch_or_a_new_axis(shape: tuple[int, ...], whole: tuple[int, ...]) -> None:
    samples = [np.full(shape, number, np.int8) for number in range(3)]
    assert batched(samples).shape == whole
    assert [int(row.max()) for row in batched(samples)] == [0, 1, 2]
    assert batched(samples[:1]).shape == shape


@pytest.mark.slow
def test_a_model_that_makes_infinities_runs_and_is_verified(tmp_path: Path, call: Call) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 3), "float32")
    y = builder.tensor("y", (1, 3), "float32")
    builder.op("EXP", [x], [y])
    builder.output(y)
    model = tmp_path / "model.tflite"
    model.write_bytes(builder.build())
    np.savez(tmp_path / "in.npz", x=np.array([[1000.0, -1000.0, np.nan]], np.float32))
    done = call("run", model, "--inputs", tmp_path / "in.npz", "--verify", "--json")
    assert done.status == 0
    assert done.report["outputs"]["y"]["data"] == ["inf", 0.0, "nan"]
