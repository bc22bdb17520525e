"""`--workspace-io`: what `compile` and `run` do by default, and that every way of running keeps the bytes right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.oracle.oracle import random_inputs
from support.run.command import Call
from uaccel.model import write_npz

GESTURE, RESIDUAL, BRANCHES = (OWN / f"{name}.tflite" for name in ("gesture", "residual", "branches"))
TEMPLATE = Path(__file__).parents[2] / "project_template"
each_board = pytest.mark.parametrize("board", ["host", "mps2_an386"])
host_first = pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.long)])


def require(board: str) -> None:
    """Skips where its tools are missing."""
    if board != "host":
        board_with_tools(board)


def samples_of(model: Path, names: list[str], path: Path, count: int = 4) -> Path:
    """Different ones, for ``--inputs``."""
    samples = random_inputs(model.read_bytes(), 11, count)
    arrays = {name: np.concatenate([values[i] for values in samples]) for i, name in enumerate(names)}
    with path.open("wb") as stream:
        write_npz(stream, arrays)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "inside"), [((), True), (("--workspace-io",), True), (("--no-workspace-io",), False)]
)
def test_run_puts_inputs_and_outputs_into_the_arena(options: tuple[str, ...], inside: bool, call: Call) -> None:
    report = call("run", GESTURE, *options, "--json").report
    assert report["workspace_io"] is inside
    assert report["ram"]["io"] == (0 if inside else 96 + 6)
    assert report["ram"]["total"] == sum(report["ram"][key] for key in ("arena", "io", "static", "stack"))


@pytest.mark.parametrize(
    ("options", "inside"), [((), False), (("--workspace-io",), True), (("--no-workspace-io",), False)]
)
def test_compile_leaves_them_to_the_caller(options: tuple[str, ...], inside: bool, tmp_path: Path, call: Call) -> None:
    report = call("compile", GESTURE, *options, "-o", tmp_path / "x.tar", "--json").report
    assert report["workspace_io"] is inside
    assert report["ram"]["io"] == (0 if inside else 96 + 6)
    shown = call("compile", GESTURE, *options, "-o", tmp_path / "x.tar").out
    assert ("arena 320 with inputs and outputs (lower bound 272) bytes" in shown) == inside


@pytest.mark.slow
@host_first
@pytest.mark.parametrize(
    ("model", "names"), [(RESIDUAL, ["image"]), (BRANCHES, ["image", "context"])], ids=["residual", "branches"]
)
def test_many_samples_each_several_times(model: Path, names: list[str], board: str, tmp_path: Path, call: Call) -> None:
    require(board)
    inputs = samples_of(model, names, tmp_path / "in.npz")
    done = call("run", model, "-b", board, "--inputs", inputs, "--repeat", "3", "--verify", "--profile", "--json")
    assert done.status == 0, done.err
    assert (done.report["runs"], done.report["verify"]["bit_exact"]) == (12, True)
    layers = call("run", model, "-b", board, "--verify", "layers", "--json").report["verify"]
    assert (layers["bit_exact"], layers["first_wrong_layer"]) == (True, None)


@pytest.mark.slow
@host_first
@pytest.mark.parametrize("accelerator", ["nuc_fpga", "npu"])
def test_accelerators_reach_what_lies_in_the_arena(accelerator: str, board: str, tmp_path: Path, call: Call) -> None:
    require(board)
    inputs = samples_of(RESIDUAL, ["image"], tmp_path / "in.npz")
    options = ("-a", accelerator, "--inputs", inputs, "--repeat", "3", "--verify", "layers", "--json")
    report = call("run", RESIDUAL, "-b", board, *options).report
    assert report["offloaded"] != []
    assert (report["verify"]["bit_exact"], report["verify"]["first_wrong_layer"]) == (True, None)


@pytest.mark.slow
@each_board
@pytest.mark.parametrize("pool", [(), ("--workspace-pool", "sram")], ids=["static", "pool"])
def test_a_project_of_such_an_archive_runs(pool: tuple[str, ...], board: str, tmp_path: Path, call: Call) -> None:
    require(board)
    tar, project = tmp_path / "x.tar", tmp_path / "project"
    assert call("compile", BRANCHES, "-b", board, "--workspace-io", *pool, "-o", tar).status == 0
    assert call("create", tar, project).status == 0
    assert call("build", project).status == 0
    inputs = samples_of(BRANCHES, ["image", "context"], tmp_path / "in.npz")
    done = call("run", project, "--inputs", inputs, "--repeat", "3", "--verify", "--profile", "--json")
    assert done.status == 0, done.err
    assert (done.report["workspace_io"], done.report["verify"]["bit_exact"]) == (True, True)
    ram = done.report["ram"]
    assert (ram["io"], ram["total"]) == (0, ram["arena"] + ram["static"] + ram["stack"])


@pytest.mark.slow
def test_a_template_gets_the_usual_interface_unless_told_otherwise(tmp_path: Path, call: Call) -> None:
    """Whoever wrote it may bring tensors of his own."""
    for options, inside in (((), False), (("--workspace-io",), True)):
        report = call("run", GESTURE, "--template", TEMPLATE, *options, "--verify", "--json").report
        assert (report["workspace_io"], report["verify"]["bit_exact"]) == (inside, True)
