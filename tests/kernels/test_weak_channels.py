"""A trained channel that is too weak to move half a step does not take its layer off the fast kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.models.windows import Window, conv_2d, depthwise_conv_2d
from support.run.command import call_in

WEAK = np.array([0.01, 0.004, 1e-10, 0.02, 0.03, 3e-9, 0.01, 0.007])
LAYERS = {
    "conv": conv_2d(Window((1, 9, 9, 8), 8, weight_scales=tuple(WEAK), bias_range=500)),
    "depthwise": depthwise_conv_2d(Window((1, 9, 9, 8), 8, kernel=(5, 5), weight_scales=tuple(WEAK), bias_range=500)),
}


@pytest.mark.parametrize(("board", "family"), [("mps2_an386", "arm_dsp"), ("mps3_an547", "arm_helium")])
@pytest.mark.parametrize("layer", LAYERS)
def test_it_is_a_known_number(
    layer: str, board: str, family: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(LAYERS[layer])
    report = call_in(capfd)("run", tmp_path / "m.tflite", "--board", board, "--verify", "--json").report
    assert family in report["layers"][0]["reason"]
    assert (report["verify"]["bit_exact"], report["verify"]["against"]) == (True, ["exact meaning", "tflite-micro"])
