"""Devices that fail in the middle of a network: the layer is named, or the CPU computes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.offload import INTEGER, Offloaded, run
from support.models.networks import network_named
from support.oracle.oracle import Tflm, random_inputs
from support.run.command import call_in
from uaccel.accelerator import load_accelerator
from uaccel.board import load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.errors import LayerError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of

MODEL = network_named("gesture").path
BOARDS = ("host", "mps2_an386")
FAULTS = {
    "hang": (1, "did not finish"),
    "error": (2, ""),
    "vanish": (3, "does not answer"),
    "version": (5, "version"),
    "dma": (6, ""),
}
"""The driver's code, and what it must at least say."""
OWN = 64
"""Codes from here on are a vendor's."""
STREAM = 7


def build(accelerator: str, board: str, folder: Path, *, cpu_fallback: bool) -> Offloaded:
    target = load_board(board) if board == "host" else board_with_tools(board)
    engines = [load_accelerator(accelerator)]
    compiled = compile_model(MODEL, board=board, accelerators=engines, cpu_fallback=cpu_fallback)
    create_project(archive_of(compiled), target, folder)
    return Offloaded(compiled, target, firmware_of(build_project(folder)))


def cases() -> list[object]:
    rows = [(accelerator, board) for accelerator in INTEGER for board in BOARDS]
    return [pytest.param(*row, id="-".join(row), marks=() if row[1] == "host" else pytest.mark.long) for row in rows]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("accelerator", "board"), cases())
def test_a_fault_ends_the_run_with_the_layers_name(
    accelerator: str, board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firmware = build(accelerator, board, tmp_path / "project", cpu_fallback=False)
    (sample,) = random_inputs(MODEL.read_bytes(), 1, 1)
    layers = [layer.name for layer in firmware.compiled.program.layers if layer.on_accelerator]
    for fault, (code, words) in FAULTS.items():
        monkeypatch.setenv("UACCEL_DEVICE_FAULT", f"{accelerator}:{fault}")
        with pytest.raises(LayerError) as caught:
            run(firmware, [sample])
        assert f"({layers[0]}): {accelerator}: " in str(caught.value), fault
        assert caught.value.code == code or (fault == "error" and caught.value.code >= OWN), str(caught.value)
        assert words in caught.value.text, fault
    monkeypatch.delenv("UACCEL_DEVICE_FAULT")
    (wanted, *_) = Tflm(MODEL.read_bytes()).run(sample)
    (result,) = run(firmware, [sample]).results
    assert np.array_equal(next(iter(result.outputs.values())), wanted), "the same firmware, unharmed"


@pytest.mark.slow
@pytest.mark.parametrize(("accelerator", "board"), cases())
def test_the_cpu_computes_what_the_accelerator_does_not(
    accelerator: str, board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firmware = build(accelerator, board, tmp_path / "project", cpu_fallback=True)
    samples = random_inputs(MODEL.read_bytes(), 2, 2)
    reference = Tflm(MODEL.read_bytes())
    layers = {layer.index for layer in firmware.compiled.program.layers if layer.on_accelerator}
    for fault in ("", *FAULTS):
        monkeypatch.setenv("UACCEL_DEVICE_FAULT", f"{accelerator}:{fault}" if fault else "")
        counted = run(firmware, samples)
        for values, result in zip(samples, counted.results, strict=True):
            (wanted, *_) = reference.run(values)
            assert np.array_equal(next(iter(result.outputs.values())), wanted), fault
        stood_in = {layer: account.fallbacks for layer, account in counted.accounts.items() if account.fallbacks}
        assert set(stood_in) == (layers if fault else set()), fault
        assert all(count == len(samples) for count in stood_in.values()), fault


@pytest.mark.slow
def test_the_person_sees_that_the_cpu_stood_in(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "matrix8:hang")
    done = call_in(capfd)("run", MODEL, "--accelerator", "matrix8", "--fallback", "cpu", "--verify", "--json")
    assert done.status == 0, done.err
    (warning,) = done.report["warnings"]
    assert warning.startswith("matrix8 failed in 1 of 1 runs, and the CPU computed in its place: conv_2d_0, ")
    assert "warning: the device did not finish" in done.err
    assert done.report["verify"]["bit_exact"] is True
    assert all(row["fallbacks"] == 1 for row in done.report["layers"] if row["engine"] == "matrix8")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["a flipped bit", "a cut"])
def test_a_damaged_command_stream_is_refused_before_anything_runs(damage: str, tmp_path: Path) -> None:
    """As flash may hold it, after the compiler was done."""
    target = load_board("host")
    compiled = compile_model(MODEL, board="host", accelerators=[load_accelerator("conveyor")])
    files = archive_of(compiled)
    name = next(name for name in files if name.endswith("_weights.c"))
    files[name] = damaged(files[name].decode(), damage).encode()
    create_project(files, target, tmp_path / "project")
    firmware = firmware_of(build_project(tmp_path / "project"))
    (sample,) = random_inputs(MODEL.read_bytes(), 1, 1)
    firm = Offloaded(compiled, target, firmware)
    with pytest.raises(LayerError, match=": conveyor: ") as caught:
        run(firm, [sample])
    assert caught.value.code == STREAM, str(caught.value)


def damaged(source: str, how: str) -> str:
    """One byte of the stream's middle, or its second half, is another."""
    start = source.index("{\n", source.index("_stream")) + 2
    end = source.index("\n};", start)
    numbers = [int(word) for word in source[start:end].replace("\n", " ").split(",") if word.strip()]
    middle = len(numbers) // 2
    rest = [numbers[middle] ^ 1, *numbers[middle + 1 :]] if how == "a flipped bit" else [0] * (len(numbers) - middle)
    kept = [*numbers[:middle], *rest]
    return source[:start] + ", ".join(map(str, kept)) + source[end:]
