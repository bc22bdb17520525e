"""Where an application's tensors lie is its own matter: drivers read no more than bytes there, or look first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from uaccel.accelerator import load_accelerator
from uaccel.testing.driver import c_files, compile_c


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang, which sees words at odd addresses, is not installed")
def test_dot4_reads_no_word_that_lies_anywhere(tmp_path: Path) -> None:
    """A core that has the instructions may trap at words that lie at no multiple of four."""
    accelerator, program = load_accelerator("dot4"), tmp_path / "anywhere"
    flags = ["-O1", "-fsanitize=alignment", "-fno-sanitize-recover=all"]
    sources = [Path(__file__).with_name("dot4_anywhere.c"), *c_files(accelerator)]
    compile_c(accelerator, sources, program, compiler="clang", flags=flags)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "other results" not in done.stdout
