"""Several models of one export whose files name no state, but ``--state`` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frontend.test_state import ZEROS, cell, looped
from support.device.generated import cc, run
from support.models.networks import OWN
from support.oracle.sanitized import SANITIZE
from support.run.command import call_in

HERE = Path(__file__).parent
STEPS = 20
FRAMES = np.random.default_rng(9).standard_normal((2, STEPS, 1, 3)).astype(np.float32)


def _both(folder: Path, flags: Sequence[str]) -> np.ndarray[Any, Any]:
    """What the exported cells give, frame by frame."""
    (folder / "c/main.c").unlink()
    program, sources = folder / "program", [HERE / "app_cells.c", *sorted((folder / "c").glob("*.c"))]
    cc(*sources, *flags, "-lm", include=[folder / "c"], output=program)
    return np.frombuffer(run(program, FRAMES.swapaxes(0, 1).tobytes()), np.float32).reshape(STEPS, 2, 1, 2)


@pytest.mark.parametrize(
    ("words", "names", "flags"),
    [
        (("one:next=h", "two:h_out=h"), ("h", "next"), ("-O2",)),
        (("two:h_out=h", "one:*N=*"), ("state", "stateN"), ("-O1", *SANITIZE)),
        (("auto",), ("hidden", "next_hidden"), ("-O2",)),
        (("two:auto", "one:next=h"), ("h", "next"), ("-O2",)),
    ],
    ids=["named", "pattern", "auto", "both"],
)
def test_each_goes_on_from_its_own_state(
    words: Sequence[str],
    names: tuple[str, str],
    flags: Sequence[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Two cells take turns, with frames of their own; the third model has no state, and ``auto`` leaves it alone."""
    one, two = cell(tmp_path / "one.onnx", names, width=4), cell(tmp_path / "two.onnx")
    asked = [word for text in words for word in ("--state", text)]
    models = (one, two, OWN / "gesture.tflite")
    done = call_in(capfd)("export", *models, "--to", "c", "--name", "cells", "-o", tmp_path / "c", *asked)
    assert done.status == 0, done.err
    told = (tmp_path / "c/README.md").read_text().replace("'", "")
    assert all(f"--state {text}" in told for text in words)
    got = _both(tmp_path, flags)
    first = looped(one, ZEROS[:, :4], FRAMES[0], names[0])
    np.testing.assert_allclose(got[:, 0], first, atol=1e-5)
    np.testing.assert_allclose(got[:, 1], looped(two, ZEROS, FRAMES[1]), atol=1e-5)


def test_each_begins_with_its_own_values(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """``--state-from`` is a folder with a file for each model; the one without begins with zeros."""
    one, two = cell(tmp_path / "one.onnx", ("h", "next"), width=4), cell(tmp_path / "two.onnx")
    half = np.full((1, 5), 0.5, np.float32)
    (tmp_path / "first").mkdir()
    np.savez(tmp_path / "first/two.npz", h=half)
    asked = ("--state", "one:next=h", "--state", "two:h_out=h", "--state-from", tmp_path / "first")
    done = call_in(capfd)("export", one, two, "--to", "c", "--name", "cells", "-o", tmp_path / "c", *asked)
    assert done.status == 0, done.err
    assert "--state-from first " in (tmp_path / "c/README.md").read_text()
    got = _both(tmp_path, ("-O2",))
    np.testing.assert_allclose(got[:, 0], looped(one, ZEROS[:, :4], FRAMES[0]), atol=1e-5)
    np.testing.assert_allclose(got[:, 1], looped(two, half, FRAMES[1]), atol=1e-5)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (None, "it is no folder, and 2 models are given"),
        ((), "it holds no .npz file"),
        (("one.npz", "three.npz"), "three.npz is of no model"),
    ],
)
def test_first_values_of_no_model(
    files: Sequence[str] | None, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    models, first = [cell(tmp_path / f"{name}.onnx") for name in ("one", "two")], tmp_path / "first"
    if files is None:
        first.touch()
    else:
        first.mkdir()
    for name in files or ():
        np.savez(first / name, h=ZEROS)
    asked = ("--state", "one:h_out=h", "--state-from", first)
    done = call_in(capfd)("export", *models, "--to", "c", "-o", tmp_path / "c", *asked)
    wanted = "wanted a folder with NAME.npz, where NAME is one of one, two"
    assert (done.status, done.complaint) == (1, f"--state-from {first}: {text}; {wanted}")
