"""Accelerators that are a function and no device: C or C++, weights at run time; and few of the hooks."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx import TensorProto, helper, save_model

from support.device.boards import board_with_tools
from support.run.command import Call, is_exact
from uaccel.accelerator import load_accelerator

MY_AI_HW = Path(__file__).parents[1] / "support" / "device" / "accelerators" / "my_ai_hw"
STARTER = Path(__file__).parents[2] / "accelerator_template"


def convolution(path: Path, kernel: int = 3) -> Path:
    """Of two inputs, data and weights; the driver refuses even kernels."""
    before, after = (kernel - 1) // 2, kernel // 2
    shapes = {"data": [1, 2, 6, 5], "weight": [3, 2, kernel, kernel], "out": [1, 3, 6, 5]}
    data, weight, out = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    node = helper.make_node("Conv", ["data", "weight"], ["out"], pads=[before, before, after, after])
    graph = helper.make_graph([node], "conv", [data, weight], [out])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def in_c(folder: Path) -> Path:
    """The same accelerator with its driver in C."""
    shutil.copytree(MY_AI_HW, folder)
    source = folder / "driver" / "conv2dnchw.cc"
    text = source.read_text().replace('extern "C" ', "").replace("auto ", "float ")
    source.with_suffix(".c").write_text(text)
    source.unlink()
    return folder


@pytest.mark.long
@pytest.mark.parametrize("board", ["host", "mps2_an386", "qemu_riscv32"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_function_needs_no_device(language: str, board: str, tmp_path: Path, call: Call) -> None:
    if board != "host":
        board_with_tools(board)
    accelerator = in_c(tmp_path / "my_ai_hw") if language == "c" else MY_AI_HW
    model = convolution(tmp_path / "conv.onnx")
    done = call("run", model, "-a", accelerator, "-b", board, "--verify", "--json")
    assert done.status == 0, done.err  # within the tolerance
    assert [layer["engine"] for layer in done.report["layers"]] == ["my_ai_hw"]
    assert done.report["verify"]["samples"] >= 8


def test_what_is_generated_for_a_function(tmp_path: Path, call: Call) -> None:
    """Its application gives no device, and there are no hooks."""
    assert call("compile", convolution(tmp_path / "conv.onnx"), "-a", MY_AI_HW, "-o", f"{tmp_path}/made/").status == 0
    header = (tmp_path / "made/codegen/host/include/tvmgen_conv.h").read_text()
    assert "devices" not in header
    assert "TVMDevice" not in header
    source = (tmp_path / "made/codegen/host/src/tvmgen_conv.c").read_text()
    assert re.search(r"my_ai_hw_conv2dnchw\(\s*input0,\s*input1,\s*output0,\s*3, 5, 6, 2, 3, 3\)", source) is not None


def test_a_code_below_zero_is_told(tmp_path: Path, call: Call) -> None:
    done = call("run", convolution(tmp_path / "even.onnx", kernel=2), "-a", MY_AI_HW)
    assert (done.status, done.complaint) == (4, "the firmware: layer 0 (conv_0): my_ai_hw: error -1")


@pytest.mark.slow
def test_the_cpu_computes_what_a_function_refuses(tmp_path: Path, call: Call) -> None:
    model = convolution(tmp_path / "even.onnx", kernel=2)
    report = call("run", model, "-a", MY_AI_HW, "--fallback", "cpu", "--verify", "--json").report
    assert report["verify"]["first_difference"] is None
    assert [layer["fallbacks"] for layer in report["layers"]] == [1]


@pytest.mark.slow
def test_a_function_is_exported(tmp_path: Path, call: Call) -> None:
    model, accelerator = convolution(tmp_path / "conv.onnx"), in_c(tmp_path / "my_ai_hw")
    done = call("export", model, "-a", accelerator, "--to", "make", "-o", tmp_path / "made")
    assert done.status == 0, done.err
    subprocess.run(["make", "-C", tmp_path / "made", "check"], check=True, capture_output=True)
    done = call("export", model, "-a", MY_AI_HW, "--to", "make", "-o", tmp_path / "other")
    assert done.complaint == (
        "accelerator my_ai_hw: its driver conv2dnchw.cc is C++, and exports are C; write it in C, "
        "or make a project with 'uaccel create'"
    )


def starter_without(folder: Path, hooks: Sequence[str]) -> Path:
    """The accelerator to start from, whose driver lacks these hooks."""
    shutil.copytree(STARTER, folder)
    for name in ("starter.c", "starter.h"):
        file = folder / "driver" / name
        text = file.read_text()
        for hook in hooks:
            text = re.sub(
                rf"int32_t TVMDeviceStarter{hook}\(void \*device\)(;\n|\n\{{.*?\n\}}\n)", "", text, flags=re.S
            )
        file.write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("fallback", ["none", "cpu"])
@pytest.mark.parametrize("lacking", [("Open", "Close"), ("Deactivate",), ("Open", "Close", "Deactivate")], ids="-".join)
def test_a_driver_has_the_hooks_that_it_needs(
    lacking: tuple[str, ...], fallback: str, tmp_path: Path, call: Call
) -> None:
    folder = starter_without(tmp_path / "starter", lacking)
    assert set(load_accelerator(str(folder)).hooks) == {"Activate", "Open", "Close", "Deactivate"} - {*lacking}
    model = folder / "tests" / "model.tflite"
    report = call("run", model, "-a", folder, "--fallback", fallback, "--verify", "--json").report
    assert is_exact(report)
    assert any(layer["engine"] == "starter" and layer["calls"] for layer in report["layers"])
