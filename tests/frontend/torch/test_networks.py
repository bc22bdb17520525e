"""Whole networks: the imported module executed by TVM, and firmware on board host, against the exported program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from frontend.torch.real_meaning import evaluated
from support.models.exported import computed, imported, save
from support.models.torch_networks import NETWORKS, inputs_of, program_of, quantised
from support.run.command import Call
from uaccel.frontend.torch.importer import import_torch
from uaccel.model import Origin, write_npz
from uaccel.ops.operator import info_of
from uaccel.tvm_api import is_constant, is_operator_call, main_bindings
from uaccel.tvm_api.executor import Executor


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_computes_what_pytorch_does(network: str, tmp_path: Path) -> None:
    program, values = program_of(network), inputs_of(network)
    model = imported(save(program, tmp_path / "model.pt2"))
    got = Executor(model.module).run([np.asarray(value) for value in values])
    for expected, value in zip(computed(program, values), got, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
    names = [spec.name for spec in model.signature.outputs]
    assert names == [spec.arg.name for spec in program.graph_signature.output_specs]
    assert [spec.name for spec in model.signature.inputs] == list(program.graph_signature.user_inputs)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["residual", pytest.param("attention", marks=pytest.mark.long)])
def test_firmware_computes_what_pytorch_does(network: str, tmp_path: Path, call: Call) -> None:
    program, values = program_of(network), inputs_of(network)
    model = save(program, tmp_path / f"{network}.pt2")
    with (tmp_path / "in.npz").open("wb") as stream:
        write_npz(stream, {f"x_{number}": np.asarray(value) for number, value in enumerate(values)})
    ends = ("--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    done = call("run", model, "--board", "host", *ends, "--json")
    assert done.status == 0
    assert all(line.startswith("uaccel: ") for line in done.err.splitlines()), done.err
    outputs = np.load(tmp_path / "out.npz")
    for name, expected in zip(done.report["outputs"], computed(program, values), strict=True):
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-5, atol=1e-5)


QUANTISED = [
    ("cnn", "xnnpack"),
    ("residual", "x86"),
    *(pytest.param(*row, marks=pytest.mark.long) for row in (("cnn", "arm"), ("residual", "xnnpack"), ("mlp", "arm"))),
]


@pytest.mark.parametrize(("network", "quantiser"), QUANTISED)
def test_a_quantised_network_is_within_a_step(network: str, quantiser: str, tmp_path: Path) -> None:
    """TVM rounds halves away from zero where PyTorch rounds to even."""
    pytest.importorskip("torchao")
    program, values = quantised(network, quantiser), inputs_of(network, seed=77)
    model = imported(save(program, tmp_path / "model.pt2"))
    (got,), (expected,) = Executor(model.module).run([np.asarray(v) for v in values]), computed(program, values)
    steps = [q.scale for spec in model.tensors.values() if (q := spec.quantisation) and not q.per_channel]
    assert len(steps) > 1
    assert np.abs(got - expected).max() <= max(steps)


@pytest.mark.parametrize("network", ["depthwise", "wavenet"])
def test_no_element_differs_from_the_real_meaning(network: str, tmp_path: Path) -> None:
    """PyTorch's biases are real numbers: rounded to whole products they would move results."""
    pytest.importorskip("torchao")
    program = quantised(network, "xnnpack")
    executor = Executor(imported(save(program, tmp_path / "model.pt2")).module)
    differing = 0
    for seed in range(5):
        values = inputs_of(network, seed=100 + seed)
        (got,), (wanted,) = executor.run([np.asarray(value) for value in values]), evaluated(program, values)
        differing += int((np.abs(got - wanted) > 1e-4 * np.abs(wanted).max()).sum())
    assert differing == 0


def test_weights_stay_integers(tmp_path: Path) -> None:
    """Whether they are stored so or quantised by the program itself."""
    pytest.importorskip("torchao")
    folded, whole = (
        import_torch(save(quantised("cnn", "xnnpack", fold=fold), tmp_path / f"{fold}.pt2")) for fold in (True, False)
    )
    for model in (folded, whole):
        calls = [expr for _, expr in main_bindings(model.module)[1] if is_operator_call(expr)]
        weights = [call.args[0] for call in calls if call.op.name == "relax.dequantize" and is_constant(call.args[0])]
        assert [str(info_of(weight)) for weight in weights] == ["int8 [8,3,3,3]", "int8 [6,8,3,3]", "int8 [4,6]"]


def test_names_and_origins_are_those_of_the_program(tmp_path: Path) -> None:
    """As ``print(program)`` lists its operators; what is taken apart keeps the number of the whole."""
    model = imported(save(program_of("residual"), tmp_path / "model.pt2"))
    shown = {name: origin for name, origin in model.origins.items() if not name.startswith("lv")}
    assert shown == {
        "conv2d_0": Origin(0, "conv2d", "conv2d"),
        "relu_1": Origin(1, "relu", "relu"),
        "conv2d_2": Origin(2, "conv2d", "conv2d_1"),
        "relu_4": Origin(4, "relu", "relu_1"),
        "conv2d_5": Origin(5, "conv2d", "conv2d_2"),
        "add_7": Origin(7, "add", "add"),
        "relu_8": Origin(8, "relu", "relu_2"),
        "mean_9": Origin(9, "mean", "mean"),
        "linear_10": Origin(10, "linear", "linear"),
    }
    assert (model.source_format, model.name) == ("torch.export", "model")


@pytest.mark.slow
def test_nothing_is_said_but_by_us(tmp_path: Path) -> None:
    model = save(program_of("cnn"), tmp_path / "model.pt2")
    code = f"from pathlib import Path; from uaccel.frontend import import_model; import_model(Path({str(model)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
