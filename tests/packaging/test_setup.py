"""What set-up installs of programs, what it says before, and that it goes on where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from uaccel.build.programs import PROGRAMS, uses_apt

ROOT = Path(__file__).resolve().parents[2]
ROWS = [program for program in PROGRAMS if program.brought_by == "setup"]
PACKAGES = " ".join(dict.fromkeys(package for program in ROWS for package in program.apt))
INSTALL = f"install -y --no-install-recommends {PACKAGES}"
SIZES = "echo 'Need to get 12.3 MB/45.6 MB of archives.'; echo 'After this operation, 789 MB of additional disk space'"
KNOWN = f'case "$*" in *--assume-no*) {SIZES}; exit 1;; esac'
"""What apt-get answers to the question how large it is, where it knows the packages."""

pytestmark = pytest.mark.skipif(not uses_apt(), reason="set-up installs programs on Debian and its kin alone")


@dataclass
class Outcome:
    status: int
    said: list[str]
    asked: list[str]
    """What apt-get was asked to do, without its options for networks that are down."""


def place(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def brings(folder: Path, name: str) -> str:
    """Shell that makes a program, as a package does."""
    return f"printf '#!/bin/sh\\necho version 99.0\\n' > {folder}/{name}; chmod +x {folder}/{name}"


@pytest.fixture
def computer(tmp_path: Path) -> Path:
    """A folder that is all of PATH; Python's own programs lie elsewhere, so that nothing is beside it."""
    (tmp_path / "bin").mkdir()
    for name in ("chmod", "sh"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    return tmp_path / "bin"


def install(
    computer: Path, apt_get: str, target: str = "setup", *, root: bool = True, pip: int = 1, strict: str = ""
) -> Outcome:
    """How set-up ends where apt-get is this script, and pip ends with this status."""
    log = computer.parent / "log"
    log.touch()
    place(computer, "apt-get", f'echo "$@" >> {log}\n{apt_get}')
    prelude = (
        "import os, sys; sys.path.insert(0, sys.argv.pop(1)); import install_programs as script;"
        f"os.geteuid = lambda: {0 if root else 1000};"
        "import pathlib, shutil; sys.executable = '/nowhere/python';"
        "real = script.succeeds;"
        f"script.succeeds = lambda command: {pip} == 0 if 'pip' in command else real(command);"
        "sys.exit(script.main(sys.argv[1]))"
    )
    environment = {**os.environ, "PATH": str(computer), "UACCEL_CI": strict}
    environment.pop("CC", None)
    command = [sys.executable, "-c", prelude, str(ROOT / "scripts"), target]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    asked = [line.partition(" -o ")[0] for line in log.read_text().splitlines() if "--assume-no" not in line]
    return Outcome(done.returncode, done.stdout.splitlines(), asked)


def test_it_says_what_how_large_and_with_which_command_and_installs_it(computer: Path) -> None:
    everything = "; ".join(brings(computer, program.commands[0]) for program in ROWS)
    outcome = install(computer, f"{KNOWN}; {everything}")
    assert outcome.asked == [INSTALL]
    assert outcome.said == [
        "setup: with root's rights, programs (45.6 MB to fetch, 789 MB on disk):",
        f"  apt-get {INSTALL}",
    ]
    assert outcome.status == 0


def test_a_new_container_gets_package_lists_first(computer: Path) -> None:
    everything = "; ".join(brings(computer, program.commands[0]) for program in ROWS)
    unknown = 'case "$*" in *--assume-no*) exit 100;; esac'
    outcome = install(computer, f"{unknown}; {everything}")
    assert outcome.asked == ["update", INSTALL]
    assert outcome.said[:2] == ["setup: with root's rights, fresh package lists:", "  apt-get update"]
    assert outcome.status == 0


def test_without_a_c_compiler_set_up_fails_and_lists_what_is_missing(computer: Path) -> None:
    outcome = install(computer, f"{KNOWN}; exit 100")
    assert outcome.said[-5:] == [
        "setup: not installed:",
        *(f"setup:   {program.name}, needed for {program.needed_for}" for program in ROWS),
        "setup: the rest works; 'make setup' tries again",
    ]
    assert outcome.status == 1


def test_without_rights_it_prints_one_command_and_goes_on(computer: Path) -> None:
    place(computer, "gcc", "echo 12.0")
    outcome = install(computer, KNOWN, root=False)
    rest = INSTALL.replace("gcc libc6-dev ", "")
    assert outcome.asked == []
    assert outcome.said[:2] == [
        "setup: missing programs come with this command (45.6 MB to fetch, 789 MB on disk):",
        f"  sudo apt-get {rest}",
    ]
    assert outcome.said[2] == "setup: not installed:"
    assert outcome.status == 0, "the demo works"
    assert install(computer, KNOWN, root=False, strict="list").status == 1, "continuous integration needs all"


def test_without_rights_a_c_compiler_comes_from_the_package_index(computer: Path) -> None:
    outcome = install(computer, KNOWN, root=False)
    assert "setup: from the package index: /nowhere/python -m pip install --quiet 'uaccel[cc]'" in outcome.said
    assert outcome.status == 1, "this pip failed"


def test_what_is_there_is_left_alone(computer: Path) -> None:
    for program in ROWS:
        place(computer, program.commands[0], "echo version 99.0")
    outcome = install(computer, "exit 0")
    assert (outcome.status, outcome.said, outcome.asked) == (0, [], [])


def test_each_target_brings_its_own_and_those_before(computer: Path) -> None:
    for program in ROWS:
        place(computer, program.commands[0], "echo version 99.0")
    outcome = install(computer, f"{KNOWN}; exit 100", "test")
    (command,) = outcome.asked
    assert "picolibc-riscv64-unknown-elf" in command
    assert "clang" not in command
    assert outcome.status == 0
