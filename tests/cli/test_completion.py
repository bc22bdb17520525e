"""Completion as a real bash does it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.models.networks import OWN

BASH = shutil.which("bash")
SCRIPT = """
source <(uaccel --show-completion bash)
while IFS= read -r line; do
    COMP_WORDS=($line)
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _uaccel_completion uaccel
    echo "${COMPREPLY[*]}" | tr '\\n' ' '
    echo
done
"""
ROWS = [
    ("uaccel run m.tflite --board mps2_an38", "mps2_an385 mps2_an386"),
    ("uaccel run m.tflite -a matr", "matrix8"),
    ("uaccel run m.tflite -a matrix8 --pin conv_2d_0", "conv_2d_0=cpu conv_2d_0=matrix8"),
    ("uaccel explain none.tflite --forbid fully", ""),
    ("uaccel flash d --port /dev/ttyTES", "/dev/ttyTEST4"),
]
PROGRAM = """\
import sys
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo
list_ports.comports = lambda: [ListPortInfo("/dev/ttyTEST4"), ListPortInfo("/dev/other")]
from uaccel.cli import main
sys.argv[0] = "uaccel"
status = main()
assert "tvm" not in sys.modules
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_offers_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.py").write_text(PROGRAM)
    program = tmp_path / "uaccel"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/main.py" "$@"\n')
    program.chmod(0o755)
    shutil.copy(OWN / "gesture.tflite", tmp_path / "m.tflite")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = subprocess.run(
        [str(BASH), "--norc", "-c", SCRIPT],
        input="".join(f"{line}\n" for line, _ in ROWS),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.strip() for line in done.stdout.splitlines()] == [wanted for _, wanted in ROWS], done.stderr
