"""`uaccel run --sequence`: a model that remembers is given frames in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.models.networks import OWN
from support.oracle.oracle import Array, Tflm
from support.run.command import Call

STREAM = OWN / "stream.tflite"
FRAMES = np.random.RandomState(6).randint(-128, 128, (7, 16)).astype(np.int8)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "frames.npz"
    np.savez(path, frame=FRAMES)
    return path


def reference(*, together: bool) -> list[list[int]]:
    """The logits: of one interpreter for all frames, or of one for each."""
    interpreter = Tflm(STREAM.read_bytes())
    return [
        (interpreter if together else Tflm(STREAM.read_bytes())).run([frame[None]])[1].ravel().tolist()
        for frame in FRAMES
    ]


def logits(report: dict[str, dict[str, dict[str, Array]]]) -> list[list[int]]:
    given: list[list[int]] = np.reshape(report["outputs"]["logits"]["data"], (len(FRAMES), -1)).tolist()
    return given


@pytest.mark.slow
def test_frames_go_on_and_samples_begin_anew(call: Call, frames: Path, tmp_path: Path) -> None:
    for option, together in ((["--sequence", "--project", str(tmp_path / "project")], True), ([], False)):
        done = call("run", STREAM, "--inputs", frames, "--verify", "--json", *option)
        assert done.status == 0, done.err
        assert logits(done.report) == reference(together=together)
        assert done.report["verify"]["bit_exact"]
        assert done.report["ram"]["state"] == 228
        assert list(done.report["state"]) == ["first_state", "second_state"]
    done = call("run", tmp_path / "project", "--inputs", frames, "--verify", "--json", "--sequence")
    assert logits(done.report) == reference(together=True)
    assert done.report["verify"]["bit_exact"]
    assert done.report["ram"]["state"] == 228


def test_a_compilation_shows_the_state(call: Call, tmp_path: Path) -> None:
    done = call("compile", STREAM, "-o", tmp_path / "stream.tar")
    assert " + state 228 + io " in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            [OWN / "gesture.tflite", "--sequence"],
            "--sequence is for models that keep a state between runs, and gesture.tflite keeps none; leave it away",
        ),
        (
            [STREAM, "--sequence", "--repeat", "2"],
            "--sequence runs each frame once, in order; leave --repeat away",
        ),
    ],
)
def test_refusals(call: Call, arguments: list[str | Path], words: str) -> None:
    done = call("run", *arguments)
    assert (done.status, done.complaint) == (1, words)
