"""A model that remembers, on emulated boards: frames in order, the layers of a frame, and what an inference takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from uaccel.board import Board, load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.codegen.options import EmitOptions
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of, run_compiled
from uaccel.runner.execute import Looks
from uaccel.runner.verdict import CompiledSubject, judge
from uaccel.runner.verify import exact_layers
from uaccel.session.connect import ProcessTransport
from uaccel.session.description import STATE_ID
from uaccel.session.link import RefusedError
from uaccel.session.qemu import QemuTransport
from uaccel.session.session import Session

STREAM = OWN / "stream.tflite"
SLOW = [pytest.param(name, marks=pytest.mark.long) for name in ("mps3_an547", "qemu_riscv32")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mps2_an386", *SLOW])
def test_frames_of_a_sequence(name: str, tmp_path: Path) -> None:
    board, frames = board_with_tools(name), random_inputs(STREAM.read_bytes(), 4, 8)
    compiled = compile_model(STREAM, board=board.name, options=EmitOptions(workspace_io=True))
    every = range(len(compiled.program.layers))
    measured = run_compiled(compiled, board, frames, tmp_path, lambda _: None, looks=Looks(read=every, sequence=True))
    reference = Tflm(STREAM.read_bytes())
    for number, (frame, outputs) in enumerate(zip(frames, measured.run.outputs, strict=True)):
        for got, wanted in zip(outputs, reference.run(frame), strict=True):
            np.testing.assert_array_equal(got, wanted, f"frame {number}")
    assert judge(CompiledSubject(compiled), measured).report["bit_exact"]
    for key, wanted in exact_layers(compiled, frames[0]).items():
        np.testing.assert_array_equal(measured.computed[0][key].ravel(), wanted.ravel(), f"layer {key}")
    total, layers = measured.run.instructions, [layer.instructions for layer in measured.layers]
    assert total is not None
    assert abs(total - sum(count or 0 for count in layers)) <= 32 * len(layers), "a reset is no part of an inference"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["host", "mps3_an547"])
def test_a_state_is_read_and_written_over_a_session(name: str, tmp_path: Path) -> None:
    """A second stream is heard in between; the first goes on as the reference does. Another file's is refused."""
    board = load_board(name) if name == "host" else board_with_tools(name)
    frames = random_inputs(STREAM.read_bytes(), 5, 6)
    other = tmp_path / "stream.tflite"
    other.write_bytes(STREAM.read_bytes() + bytes(16))
    reference = Tflm(STREAM.read_bytes())
    with _session(STREAM, board, tmp_path / "ours") as session:
        first = session.read_state()
        mark = first.pop(STATE_ID)
        assert {key: value.shape for key, value in first.items()} == {"first_state": (1, 96), "second_state": (1, 32)}
        assert not any(value.any() for value in first.values()), "as before the first run"
        saved = {**first, STATE_ID: mark}
        for number, frame in enumerate(frames):
            session.write_state(saved)
            logits = session.run({"frame": frame[0]}, continues=True)["logits"]
            np.testing.assert_array_equal(logits, reference.run(frame)[1], f"frame {number}")
            saved = session.read_state()
            session.run({"frame": frames[0][0]})
        assert saved["first_state"].any()
    with _session(other, board, tmp_path / "other") as session:
        before = session.read_state()
        with pytest.raises(RefusedError, match=r"of another model file or another build; write what read_state gave"):
            session.write_state(saved)
        for key, value in session.read_state().items():
            np.testing.assert_array_equal(value, before[key])


def _session(model: Path, board: Board, folder: Path) -> Session:
    compiled = compile_model(model, board=board.name, options=EmitOptions(workspace_io=True))
    create_project(archive_of(compiled), board, folder)
    firmware = firmware_of(build_project(folder))
    return Session(ProcessTransport([str(firmware)]) if board.name == "host" else QemuTransport(board, firmware))
