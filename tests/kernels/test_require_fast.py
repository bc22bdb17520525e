"""--require-fast: a build fails where plain C computes what the CPU has kernels of its own for."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from support.models.windows import Window, conv_2d
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ModelError
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
        f"--require-fast: plain C computes 1 layer, 100.0 % of the products, since no kernel for {cpu} does: "
        "conv_2d_0; 'uaccel explain' tells the cost. Change them, or leave --require-fast away"
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
