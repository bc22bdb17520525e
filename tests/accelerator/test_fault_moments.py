"""Devices that fail at any moment: in the middle of a network, in the middle of a layer, and for a while only."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.offload import INTEGER, Offloaded, offload, run
from support.models.float_convolutions import float_convolutions
from support.models.networks import OWN
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call
from uaccel.accelerator import load_accelerator
from uaccel.board import load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.errors import LayerError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.runner.execute import connect

RESIDUAL = OWN / "residual.tflite"
"""Its layers write over what others have read, and an addition wants both of its inputs whole."""
FAULT = "UACCEL_DEVICE_FAULT"
PATIENCE = 30.0
"""Seconds that a command may take on a busy computer; a hanging device adds less than one."""
STREAM = 7

each_board = pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.long)])
each_accelerator = pytest.mark.parametrize("accelerator", INTEGER)


@cache
def sample_and_meaning() -> tuple[list[Array], list[Array]]:
    data = RESIDUAL.read_bytes()
    (sample,) = random_inputs(data, 9, 7)[6:]
    return sample, Tflm(data).run(sample)


def assert_right(offloaded: Offloaded, outputs: dict[str, Array], what: str) -> None:
    for spec, wanted in zip(offloaded.compiled.model.signature.outputs, sample_and_meaning()[1], strict=True):
        got = outputs[spec.name]
        assert np.array_equal(got, wanted.reshape(got.shape)), f"{what}: {spec.name}"


def moments() -> Iterator[str]:
    """Accesses to memory and starts of jobs: the first ones one by one, those further off more and more apart."""
    for kind, last in (("dma", 4000), ("hang", 60), ("error", 60), ("vanish", 60)):
        number = 1
        while number <= last:
            yield f"{kind}@{number}"
            yield f"{kind}@{number}-{number}"
            number += 1 + number // 4


@pytest.mark.slow
@each_accelerator
def test_wherever_it_fails_the_cpu_mends_what_was_begun(
    accelerator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer may have been half written when the CPU takes it over: its inputs must still be there. And a device that
    comes back may have missed what it was told meanwhile.
    """
    firmware = with_fallback(accelerator, "host", tmp_path / "project")
    sample, _ = sample_and_meaning()
    stood_in = set()
    for fault in moments():
        monkeypatch.setenv(FAULT, f"{accelerator}:{fault}")
        counted = run(firmware, [sample])
        assert_right(firmware, counted.results[0].outputs, fault)
        stood_in |= {layer for layer, account in counted.accounts.items() if account.fallbacks}
    assert stood_in == {layer.index for layer in firmware.compiled.program.layers if layer.on_accelerator}


def with_fallback(accelerator: str, board: str, folder: Path) -> Offloaded:
    target = load_board(board) if board == "host" else board_with_tools(board)
    compiled = compile_model(RESIDUAL, board=board, accelerators=[load_accelerator(accelerator)], cpu_fallback=True)
    create_project(archive_of(compiled), target, folder)
    return Offloaded(compiled, target, firmware_of(build_project(folder)))


@pytest.mark.slow
@each_board
@each_accelerator
def test_the_session_goes_on_after_a_fault(
    accelerator: str, board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first job of a session fails, and no other; the driver must have left nothing behind."""
    firmware = offload(RESIDUAL, [accelerator], board, tmp_path / "project")
    sample, _ = sample_and_meaning()
    names = [spec.name for spec in firmware.compiled.model.signature.inputs]
    feed = dict(zip(names, sample, strict=True))
    faults = ["error@1-1", "dma@1-1", "dma@2-2"]
    if accelerator != "matrix8":  # its driver waits for room before it starts a job, so no start ever ends the hanging
        faults.append("hang@1-1")
    for fault in faults:
        monkeypatch.setenv(FAULT, f"{accelerator}:{fault}")
        with connect(firmware.board, firmware.firmware, pack_compiled(firmware.compiled).identity, "") as session:
            with pytest.raises(LayerError):
                list(session.stream([feed]))
            for result in session.stream([feed] * 3):
                assert_right(firmware, result.outputs, fault)


@pytest.mark.slow
@each_board
def test_a_failing_command_ends_in_time_with_one_line_and_status_4(
    board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    if board != "host":
        board_with_tools(board)
    project = tmp_path / "project"
    assert call("run", RESIDUAL, "--accelerator", "nuc_fpga", "--board", board, "--project", project).status == 0
    for fault in ("hang", "hang@2", "error", "vanish", "vanish@2", "version", "dma", "dma@30"):
        monkeypatch.setenv(FAULT, f"nuc_fpga:{fault}")
        begin = time.monotonic()
        done = call("run", project)
        assert time.monotonic() - begin < PATIENCE, fault
        assert done.status == 4, done.err
        assert re.search(r": layer \d+ \(conv_2d_\d+\): nuc_fpga: .+ \(error \d+\)$", done.complaint), done.complaint
        assert done.out == ""


@pytest.mark.slow
@each_board
def test_a_float_accelerator_fails_alike(
    board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    if board != "host":
        board_with_tools(board)
    model = tmp_path / "floats.tflite"
    model.write_bytes(float_convolutions())
    command = ("run", model, "--board", board, "--accelerator", "vanilla", "--verify")
    plain, mended = tmp_path / "plain", tmp_path / "mended"
    assert call(*command, "--project", plain).status == 0
    assert call(*command, "--project", mended, "--fallback", "cpu").status == 0
    for fault in ("hang", "error@2", "vanish", "version", "dma@7"):
        monkeypatch.setenv(FAULT, f"vanilla:{fault}")
        done = call("run", plain)
        assert (done.status, done.out) == (4, "")
        assert re.search(r": layer \d+ \(\w+\): vanilla: ", done.complaint), done.complaint
        done = call("run", mended, "--verify", "--json")
        assert done.status == 0, done.err
        advice, failed = done.report["warnings"]
        assert advice.startswith("all 5,616 multiply-accumulates are in float")
        assert failed.startswith("vanilla failed")
        assert any(row["fallbacks"] for row in done.report["layers"])


@pytest.mark.slow
@each_board
@pytest.mark.parametrize("damage", ["flipped", "erased", "short"])
def test_a_damaged_command_stream_is_told_or_mended(damage: str, board: str, tmp_path: Path, call: Call) -> None:
    """As flash may hold it, after the compiler was done: a bit, everything from the middle on, the length."""
    if board != "host":
        board_with_tools(board)
    for fallback in ("none", "cpu"):
        project = tmp_path / fallback
        command = ("run", RESIDUAL, "--accelerator", "conveyor", "--board", board, "--fallback", fallback)
        assert call(*command, "--project", project).status == 0
        spoil(project, damage)
        done = call("run", project, "--verify", "--json")
        if fallback == "none":
            assert done.status == 4
            assert re.search(rf": layer \d+ \(\w+\): conveyor: .+ \(error {STREAM}\)$", done.complaint)
        else:
            assert done.status == 0, done.err
            assert done.report["verify"]["bit_exact"] is True
            assert re.search(r"warning: .*command stream is (damaged|truncated)", done.err)
            assert len(done.report["warnings"]) == 1


def spoil(project: Path, damage: str) -> None:
    """The first stream that the generated sources hold."""
    (calls,) = (path for path in project.rglob("tvmgen_residual.c"))
    (weights,) = (path for path in project.rglob("tvmgen_residual_weights.c"))
    if damage == "short":
        text = calls.read_text()
        shorter, count = re.subn(
            r"(conveyor_play\([^;]*?, )(\d+)\)", lambda m: f"{m[1]}{int(m[2]) // 2})", text, count=1
        )
        assert count == 1
        calls.write_text(shorter)
        return
    text = weights.read_text()
    start = text.index("{\n", text.index("_stream")) + 2
    end = text.index("\n};", start)
    numbers = [int(word) for word in text[start:end].replace("\n", " ").split(",") if word.strip()]
    middle = len(numbers) // 2
    after = [numbers[middle] ^ 1, *numbers[middle + 1 :]] if damage == "flipped" else [0] * (len(numbers) - middle)
    weights.write_text(text[:start] + ", ".join(map(str, [*numbers[:middle], *after])) + text[end:])
