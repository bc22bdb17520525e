"""Models whose inputs and outputs are unusual: none, unused, passed through, named twice, constant, of every type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codegen.shapes import SHAPES
from support.device.generated import Unpacked, archive, cc
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import compile_pooled, run_sanitized
from support.run.command import call_in
from uaccel.util.files import data_dir

RAMP = np.array([[-125, -118, -111, -104]], np.int8)


each_model = pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)


@pytest.mark.sample(3)
@each_model
def test_outputs_are_exact_and_sanitizers_find_nothing(make: Callable[[], bytes]) -> None:
    data = make()
    reference, inputs = Tflm(data), random_inputs(data, 0, 3)
    for values, outputs in zip(inputs, run_sanitized(compile_pooled(data), inputs), strict=True):
        for got, wanted in zip(outputs, reference.run(values), strict=True):
            np.testing.assert_array_equal(got, wanted.reshape(got.shape))


@each_model
def test_the_archive_compiles_without_a_warning(make: Callable[[], bytes], tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    tree = Unpacked(tmp_path / "tree", archive(model))
    for source in (*tree.sources, *tree.descriptions):
        include = [tree.include, data_dir("firmware") / "include"]
        cc(source, "-fsyntax-only", "-DUACCEL_OBSERVE", include=include)


@pytest.mark.slow
@each_model
def test_the_command_runs_it_and_reports_every_output(
    make: Callable[[], bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    report = call_in(capfd)("run", model, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    outputs = Tflm(model.read_bytes()).run([RAMP] * len(report["inputs"]))
    assert len(report["outputs"]) == len(outputs)
    for entry, wanted in zip(report["outputs"].values(), outputs, strict=True):
        assert entry["data"] == wanted.ravel().tolist()
