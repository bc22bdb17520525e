"""--require-fast: a build fails where plain C computes what the CPU has kernels of its own for."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from support.models.windows import Window, conv_2d
from support.run.command import call_in
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ModelError
from uaccel.report.page import page
from uaccel.runner.job import Job

LARGE = conv_2d(Window((1, 9, 9, 8), 8, weight_scales=(100.0,)))
"""Multipliers above one, which no kernel for Arm's cores takes."""


def _compile(path: Path, board: str) -> None:
    Job.of(path, board, options=EmitOptions(require_fast=True)).compiled()


@pytest.mark.parametrize(("board", "cpu"), [("mps2_an386", "cortex-m4"), ("mps3_an547", "cortex-m55")])
def test_a_declined_layer_fails_the_build(board: str, cpu: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(LARGE)
    words = (
        f"--require-fast: the best kernels for {cpu} do not compute 1 layer, 100.0 % of the cycles: conv_2d_0. "
        "conv_2d_0: channel 0 scales its sums by 50, and below 0.5 is taken; quantise with a larger output scale, or "
        "leave --require-fast away. 'uaccel explain' tells the reason of each"
    )
    with pytest.raises(ModelError, match=f"^{words}$"):
        _compile(path, board)


def test_a_core_without_kernels_of_its_own_requires_none(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(LARGE)
    _compile(path, "microbit")


@pytest.mark.parametrize("name", ["residual", "branches", "gesture"])
def test_fast_networks_pass(name: str) -> None:
    _compile(OWN / f"{name}.tflite", "mps2_an386")


def test_a_page_tells_why_a_layer_is_slow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(LARGE)
    stored = call_in(capfd)("run", path, "-b", "mps2_an386", "--details", "--json").report
    (layer,) = stored["slow"]["layers"]
    shown = page([stored])
    assert "channel 0 scales its sums by 50, and below 0.5 is taken" in shown
    assert f"{layer['cycles']:,}</td>" in shown
    assert f"{layer['fast_cycles']:,}</td>" in shown
