"""Several models of one export whose files name no state, but ``--state`` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
    (tmp_path / "c/main.c").unlink()
    program, sources = tmp_path / "program", [HERE / "app_cells.c", *sorted((tmp_path / "c").glob("*.c"))]
    cc(*sources, *flags, "-lm", include=[tmp_path / "c"], output=program)
    got = np.frombuffer(run(program, FRAMES.swapaxes(0, 1).tobytes()), np.float32).reshape(STEPS, 2, 1, 2)
    first = looped(one, ZEROS[:, :4], FRAMES[0], names[0])
    np.testing.assert_allclose(got[:, 0], first, atol=1e-5)
    np.testing.assert_allclose(got[:, 1], looped(two, ZEROS, FRAMES[1]), atol=1e-5)
