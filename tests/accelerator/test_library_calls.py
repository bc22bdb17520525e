"""The accelerators that are called as C libraries, on whole models: what they claim, and that nothing changes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.models.float_convolutions import float_convolutions
from support.models.onnx_networks import Net, quantised
from support.oracle.exactness import assert_same
from support.oracle.oracle import random_inputs
from uaccel.accelerator import load_accelerator
from uaccel.api import verify
from uaccel.pipeline import Compiled, compile_model
from uaccel.tvm_api.executor import Executor

Array = NDArray[Any]

MODELS = Path(__file__).resolve().parents[1] / "models"
MULTIPLYING = {"uaccel.conv2d", "uaccel.depthwise_conv2d", "uaccel.fully_connected"}


def compiled_for(path: Path, accelerator: str) -> Compiled:
    return compile_model(path, board="host", accelerators=[load_accelerator(accelerator)])


def outputs_by_stage(compiled: Compiled, inputs: list[Array]) -> dict[str, list[Array]]:
    return {stage: Executor(module).run(inputs) for stage, module in compiled.stages.items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gesture", "residual", "branches", "mixed"])
def test_nuc_fpga_takes_what_multiplies_and_changes_nothing(model: str) -> None:
    path = MODELS / f"{model}.tflite"
    compiled = compiled_for(path, "nuc_fpga")
    for decision in compiled.partitioned.decisions:
        wanted = "nuc_fpga" if decision.op in MULTIPLYING else "cpu"
        assert decision.engine == wanted, f"{decision.layer}: {decision.reason}"
    (inputs,) = random_inputs(path.read_bytes(), 0, 1)
    stages = outputs_by_stage(compiled, inputs)
    assert "partition" in stages
    for stage, outputs in stages.items():
        for number, (got, wanted_output) in enumerate(zip(outputs, stages["import"], strict=True)):
            assert_same(got, wanted_output, f"output {number} after {stage}")


@pytest.mark.slow
def test_sums_of_nuc_fpga_take_no_more_than_results_do(tmp_path: Path) -> None:
    """A quarter of a layer's int32 sums at a time, of filters or of channels."""
    net = Net(1, 4, 15, 15)
    for channels, inputs, group in ((32, 4, 1), (32, 32, 32), (24, 32, 1)):
        net.conv(channels, inputs, group=group, dilations=[2, 2], pads=[2] * 4)
    path = quantised(net, tmp_path, "QDQ", "QInt8", per_channel=True)
    program = compiled_for(path, "nuc_fpga").program
    sums = [layer for layer in program.layers if layer.engine == "nuc_fpga"]
    assert [layer.outputs[0].info.shape[1] for layer in sums] == [8] * 11
    verify(path, board="host", accelerators=["nuc_fpga"])


def test_nuc_fpga_says_why_it_takes_no_16_bits() -> None:
    compiled = compiled_for(MODELS / "int16.tflite", "nuc_fpga")
    reasons = {d.layer: d.reason for d in compiled.partitioned.decisions if d.op in MULTIPLYING}
    assert reasons
    assert set(reasons.values()) == {"nuc_fpga: its input is int16, wanted int8"}


@pytest.mark.slow
def test_vanilla_takes_floats_in_the_layout_of_tflite(tmp_path: Path) -> None:
    model = tmp_path / "floats.tflite"
    model.write_bytes(float_convolutions())
    compiled = compiled_for(model, "vanilla")
    convolutions = [d for d in compiled.partitioned.decisions if d.op == "relax.nn.conv2d"]
    assert [d.engine for d in convolutions] == ["vanilla", "cpu", "vanilla"]
    assert convolutions[1].reason == "vanilla: strides (2, 2) and dilation (1, 1), and it has neither"
    x = np.random.default_rng(2).normal(size=(1, 8, 6, 3)).astype(np.float32)
    stages = outputs_by_stage(compiled, [x])
    for stage, (got,) in stages.items():
        np.testing.assert_allclose(got, stages["import"][0], rtol=1e-5, atol=1e-5, err_msg=stage)
