"""``make setup``: which programs it installs, and that it goes on where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uaccel.toolchain import PROGRAMS
from uaccel.toolchain.install import uses_apt

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = " ".join(dict.fromkeys(package for program in PROGRAMS for package in program.apt))
INSTALL = f"install -y --no-install-recommends {PACKAGES}"

pytestmark = pytest.mark.skipif(not uses_apt(), reason="set-up installs programs on Debian and its kin alone")


def place(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def install_programs(folder: Path, apt_get: str) -> tuple[str, list[str]]:
    """What set-up prints, and what it asks of apt-get, where the computer has no other program."""
    log = folder / "log"
    log.touch()
    place(folder, "apt-get", f'echo "$@" >> {log}\n{apt_get}')
    place(folder, "sudo", 'if [ "$1" = -n ]; then exit 0; fi\nexec "$@"')
    script = ROOT / "scripts" / "install_programs.py"
    environment = {**os.environ, "PATH": str(folder)}
    environment.pop("CC", None)
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, log.read_text().splitlines()


def test_what_is_missing_is_installed(tmp_path: Path) -> None:
    printed, asked = install_programs(tmp_path, "exit 0")
    assert asked == [INSTALL]
    assert printed == f"setup: installing {PACKAGES}\n"


def test_a_failure_is_tried_again_with_fresh_package_lists(tmp_path: Path) -> None:
    state = tmp_path / "updated"
    _, asked = install_programs(tmp_path, f'[ "$1" = update ] && : > {state}\n[ -e {state} ]')
    assert asked == [INSTALL, "update", INSTALL]


def test_where_nothing_helps_the_command_is_printed_and_set_up_goes_on(tmp_path: Path) -> None:
    printed, asked = install_programs(tmp_path, "exit 100")
    assert asked == [INSTALL, "update"]
    last = printed.splitlines()[-1]
    assert last.startswith("setup: some programs are missing; to get them: ")
    assert last.endswith(f"apt-get {INSTALL}")


def test_where_all_is_there_nothing_is_asked(tmp_path: Path) -> None:
    for program in PROGRAMS:
        place(tmp_path, program.commands[0], "echo version 99.0")
    assert install_programs(tmp_path, "exit 0") == ("", [])
