"""A disk that is full for the programs that uaccel starts, too: compilers and Verilator, of which some notice nothing.

It is a file system in memory of a few hundred kilobytes, which holds temporary files and the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.models.networks import OWN

UNSHARE = shutil.which("unshare")
SCRIPT = """
mount -t tmpfs -o size="$0" tmpfs "$1" || exit 99
folder="$1"; listing="$2"; shift 2
"$@"; status=$?
ls -A "$folder" > "$listing"
exit $status
"""
RTL = ("-a", "nuc_fpga", "--device", "rtl")
ROWS = {
    "while C is compiled": ("700k", ()),
    "before RTL is verilated": ("150k", RTL),
    "while RTL is verilated": ("700k", RTL),
    "behind RTL": ("3m", RTL),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", ROWS)
def test_a_disk_that_is_full(where: str, tmp_path: Path) -> None:
    size, more = ROWS[where]
    if more and shutil.which("verilator") is None:
        pytest.skip("verilator is not installed")
    disk = tmp_path / "disk"
    disk.mkdir()
    if UNSHARE is None or subprocess.run([UNSHARE, "-rm", "true"], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    words = [sys.executable, "-m", "uaccel", "run", str(OWN / "gesture.tflite"), *more]
    done = subprocess.run(
        [UNSHARE, "-rm", "/bin/sh", "-c", SCRIPT, size, str(disk), str(tmp_path / "left"), *words],
        env=os.environ | {"TMPDIR": str(disk), "UACCEL_CACHE": str(disk / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 99:
        pytest.skip(done.stderr)
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert (done.returncode, len(errors)) == (1, 1), done.stderr
    assert "No space left on device" in errors[0]
    assert "standard output" not in errors[0]
    assert (tmp_path / "left").read_text().split() in ([], ["cache"])
