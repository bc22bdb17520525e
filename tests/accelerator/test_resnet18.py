"""The network that people ask for by name, at its full size, on the accelerator that they ask for by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.oracle.oracle import Tflm
from support.run.command import Call, call_in

ROOT = Path(__file__).resolve().parents[2]
CONVOLUTIONS = 20


@pytest.mark.long
def test_every_convolution_of_resnet_18_runs_on_nuc_fpga(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, outputs = tmp_path / "resnet18.tflite", tmp_path / "out.npz"
    subprocess.run([sys.executable, str(ROOT / "scripts" / "networks.py"), "resnet18", "-o", str(tmp_path)], check=True)
    call: Call = call_in(capfd)
    done = call("run", model, "--accelerator", "nuc_fpga", "--verify", "--outputs", outputs, "--json")
    assert done.status == 0, done.err
    report = done.report
    assert report["verify"]["bit_exact"] is True
    convolutions = [row for row in report["layers"] if row["op"] == "conv2d"]
    assert {(row["engine"], row["calls"]) for row in convolutions} == {("nuc_fpga", 1)}
    assert len({row["name"].partition("_sums")[0] for row in convolutions}) == CONVOLUTIONS
    assert all(row["cycles"] > 0 for row in convolutions)
    assert report["ram"]["arena"] == report["ram"]["arena_lower_bound"]
    image = ((7 * np.arange(224 * 224 * 3) + 3) % 256 - 128).astype(np.int8).reshape(1, 224, 224, 3)
    (wanted,) = Tflm(model.read_bytes()).run([image])
    (got,) = np.load(outputs).values()
    assert np.array_equal(got, wanted)
    assert len(np.unique(got)) > 10, "a saturated network would hide errors"
