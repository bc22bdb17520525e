"""Weights of -128 beside negative ones: few of them stay on the fast kernels, and of many the reason is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.models.drawn_layers import Options
from support.models.single_op import Activation, Constant, single_op
from support.run.command import call_in

CONV: Options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
SHAPES = {"conv": (16, 3, 3, 8), "groups": (16, 3, 3, 4), "dense": (20, 40)}


def layer(name: str, pairs: range) -> bytes:
    """A layer whose pairs of output channels cannot share words: the first has -128 where the second is negative."""
    generator, shape = np.random.default_rng(5), SHAPES[name]
    values = generator.integers(-127, 128, shape).astype(np.int8).reshape(shape[0], -1)
    for pair in pairs:
        values[2 * pair, 3], values[2 * pair + 1, 3] = -128, -5
    bias = generator.integers(-900, 900, shape[0]).astype(np.int32)
    scales = np.linspace(0.003, 0.01, shape[0]) if name != "dense" else np.array([0.004])
    constants = [Constant(values.reshape(shape), scales=tuple(scales), axis=0)]
    constants += [Constant(bias, scales=tuple(0.05 * scales))]
    given, result = ((1, 40), (1, 20)) if name == "dense" else ((1, 7, 9, 8), (1, 7, 9, 16))
    operator = "FULLY_CONNECTED" if name == "dense" else "CONV_2D"
    return single_op(
        operator,
        [Activation(given, "int8", 0.05, 3), *constants],
        [Activation(result, "int8", 0.1, -7)],
        None if name == "dense" else CONV,
    )


@pytest.mark.parametrize(("name", "pairs"), [("conv", 2), ("groups", 1), ("dense", 1)])
def test_few_are_computed_apart(name: str, pairs: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(layer(name, range(2, 2 + pairs)))
    report = call_in(capfd)("run", tmp_path / "m.tflite", "-b", "mps2_an386", "--verify", "--json").report
    assert "arm_dsp" in report["layers"][0]["reason"]
    assert (report["verify"]["bit_exact"], report["verify"]["against"]) == (True, ["exact meaning", "tflite-micro"])


def test_of_many_the_reason_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(layer("conv", range(8)))
    slow = call_in(capfd)("explain", tmp_path / "m.tflite", "-b", "mps2_an386", "--json").report["slow"]
    (told,) = slow["layers"]
    reason = "8 of its channels have weights of -128 beside negative ones, from channel 0 on"
    assert (told["layer"], told["reason"], told["remedy"]) == ("conv_2d_0", reason, "quantise weights to -127..127")
    assert told["fast_cycles"] < 0.7 * told["cycles"]
    assert slow["share"] == 1
