"""MLPerf Tiny's own runner drives a board on a desk, in accuracy and in performance mode. ``UACCEL_MLPERF_RUNNER``
names the folder ``benchmark/runner`` of a checkout of mlcommons/tiny. The data and their labels are made here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlperf import official_runner
from support.device.boards import board_with_tools
from support.models.networks import OWN, network_named
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call, call_in
from support.run.mlperf_runner import printed
from uaccel.session.emulated_board import Desk

VARIABLE = "UACCEL_MLPERF_RUNNER"
FILES = {"gesture": "gesture", "ad": "ad01", "ic": "ic01", "kws": "kws01", "vww": "vww01"}
"""The wake word's network is streamed through an interface board, which the runner has no other way to."""
IMAGES = ("ic", "vww")
DEVICE = """\
- name: desk
  type: dut
  baud: {energy: 9600, performance: 115200, accuracy: 115200}
  usb: {0x0483: 0x374B}
"""
SCRIPT = """\
%s:
  name: of_ours
  model: %s
  truth_file: y_labels.csv
  script: [{loop%s: [download, %s]}]
"""
SAMPLES = 6
STRIDE = 4 * 320
"""Of the autoencoder's windows, in bytes."""


@pytest.fixture(scope="module")
def runner() -> Path:
    named = os.environ.get(VARIABLE)
    if not named or not (Path(named) / "main.py").is_file():
        pytest.skip(f"MLPerf Tiny's runner is in no folder that {VARIABLE} names")
    return Path(named)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


def drive(
    runner: Path, name: str, model: Path, mode: str, script: str, folder: Path, call: Call
) -> list[dict[str, Any]]:
    """Flash the board on a desk, have the runner drive it; what it stored of each inference, and its last words."""
    with Desk(folder / "desk", board_with_tools("mps2_an386").name) as desk:
        for words in (
            ("compile", model, "-b", desk.board_file, "-o", folder / "m.tar"),
            ("create", folder / "m.tar", folder / "p", "-b", desk.board_file, "--protocol", "mlperf-tiny"),
            ("build", folder / "p"),
            ("flash", folder / "p"),
        ):
            done = call(*words)
            assert done.status == 0, done.err
        (folder / "devices.yaml").write_text(DEVICE)
        (folder / "tests.yaml").write_text(script)
        program = [sys.executable, official_runner.__file__, str(runner), desk.port]
        options = ["-d", "devices.yaml", "-t", "tests.yaml", "-s", "data", "-m", mode]
        ran = subprocess.run([*program, *options], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    (session,) = (folder / "sessions").iterdir()
    assert (session / "results.json").is_file(), ran.stdout + ran.stderr
    found: list[dict[str, Any]] = json.loads((session / "results.json").read_text())
    return [*found, {"said": (session / "results.txt").read_text()}]


def write_data(folder: Path, name: str, samples: list[Array], labels: list[int], classes: int) -> None:
    """As the benchmark's sets are: a file for each sample, and a table."""
    place = folder / "data" / FILES[name]
    place.mkdir(parents=True)
    rows = []
    for number, (values, label) in enumerate(zip(samples, labels, strict=True)):
        data = values.view(np.uint8) ^ 0x80 if name in IMAGES else values
        (place / f"{number}.bin").write_bytes(data.tobytes())
        rows.append(f"{number}.bin,{classes},{label},{640 * 4},{STRIDE}\n")
    (place / "y_labels.csv").write_text("".join(rows))


def classified(path: Path) -> tuple[list[Array], list[list[float]]]:
    network = Tflm(path.read_bytes())
    samples = [values for (values,) in random_inputs(path.read_bytes(), 3, SAMPLES)]
    results = [[(int(element) + 128) / 256 for element in network.run([values])[0].reshape(-1)] for values in samples]
    return samples, [printed(row) for row in results]


def model_of(name: str) -> Path:
    return OWN / "gesture.tflite" if name == "gesture" else network_named(name).path


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in FILES if name != "ad"])
def test_accuracy(name: str, runner: Path, tmp_path: Path, call: Call) -> None:
    """Each result is the model's, and the share of right ones is what the labels make it."""
    path = model_of(name)
    samples, expected = classified(path)
    labels = [int(np.argmax(row)) for row in expected]
    labels[0] = (labels[0] + 1) % len(expected[0])
    labels[1] = (labels[1] + 1) % len(expected[0])
    write_data(tmp_path, name, samples, labels, len(expected[0]))
    script = SCRIPT % (FILES[name], FILES[name], "", "infer 1 0")
    *found, last = drive(runner, name, path, "a", script, tmp_path, call)
    assert [one["infer"]["results"] for one in found] == expected
    assert "Top 1% = 66.7" in last["said"]


@pytest.mark.long
def test_accuracy_of_the_autoencoder(runner: Path, tmp_path: Path, call: Call) -> None:
    """By windows of each file, whose mean is the file's score: a loud one is a fault."""
    path, rng = model_of("ad"), np.random.default_rng(4)
    samples = [rng.normal(0, scale, 640 + 320).astype(np.float32) for scale in (1, 1, 30, 30)]
    write_data(tmp_path, "ad", samples, [0, 0, 1, 1], 2)
    script = SCRIPT % ("ad01", "ad01", "", "infer 1 0")
    *found, last = drive(runner, "ad", path, "a", script, tmp_path, call)
    assert [one["file"] for one in found] == [f"{number // 2}.bin" for number in range(8)]
    assert "AUC = 1.000" in last["said"]


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_performance(name: str, runner: Path, tmp_path: Path, call: Call) -> None:
    """Five windows, by the runner's own script where it knows the model."""
    path = model_of(name)
    samples = [np.zeros(640, np.float32)] if name == "ad" else classified(path)[0][:1]
    write_data(tmp_path, name, samples * 5, [0] * 5, 2)
    own = SCRIPT % (FILES[name], FILES[name], " 5", "infer 8000 10")
    script = own if name == "gesture" else (runner / "tests_performance.yaml").read_text()
    *found, last = drive(runner, name, path, "p", script, tmp_path, call)
    windows = [one["infer"] for one in found if "infer" in one]
    assert len(windows) == 5
    assert all(window["elapsed_time"] > 0 for window in windows)
    medians = [float(words) for words in re.findall(r"Median throughput is +([\d.]+) inf./sec", last["said"])]
    throughput = sorted(window["iterations"] / window["elapsed_time"] * 1e6 for window in windows)
    assert medians in ([pytest.approx(throughput[2], abs=1e-3)], []), last["said"]
    assert medians or "loop exited before 10 seconds" in last["said"]
