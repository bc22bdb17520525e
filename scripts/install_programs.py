"""Install the programs that a target of the Makefile needs and this system lacks: ``install_programs.py TARGET``.

With apt-get, as root or where sudo asks for no password. Before that it says what, how large, and with which command.
Elsewhere it prints the one command to paste, and a C compiler comes from the package index. What is missing in the
end is listed; the next call tries it again. The exit status is 1 where the demo cannot work, and in continuous
integration (UACCEL_CI) where anything is missing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import cast, get_args

from uaccel.build.programs import (
    HostTool,
    SetUp,
    apt_command,
    how_to_install,
    may_become_root,
    missing_programs,
    pip_install,
    uses_apt,
)

PATIENCE = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")
"""Without a network apt-get gives up soon."""


def main(target: SetUp) -> int:
    missing = missing_programs(target)
    if missing and uses_apt():
        bring(packages_of(missing))
        missing = missing_programs(target)
    for program in missing:
        if program.required and program.pip and python_package(program.pip):
            missing = missing_programs(target)
    if missing:
        print("setup: not installed:")
        for program in missing:
            print(f"setup:   {program.name}, needed for {program.needed_for}")
        if not uses_apt():
            print(f"setup: to get them: {how_to_install((), ', '.join(program.name for program in missing))}")
        print("setup: the rest works; 'make setup' tries again")
    fails = bool(os.environ.get("UACCEL_CI"))
    return 1 if any(fails or program.required for program in missing) else 0


def packages_of(programs: list[HostTool]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(package for program in programs for package in program.apt))


def bring(packages: tuple[str, ...]) -> None:
    """Where that takes rights that are not to be had, say the command instead."""
    command = apt_command(packages)
    if not may_become_root():
        print(f"setup: missing programs come with this command{size_of(packages)}:\n  {' '.join(command)}", flush=True)
        return
    if not size_of(packages):
        say("apt-get update", "fresh package lists")
        succeeds([*command[: command.index("apt-get") + 1], "update", *PATIENCE, "-qq"])
    say(" ".join(command), f"programs{size_of(packages)}")
    succeeds([*command, *PATIENCE, "-qq"])


def say(command: str, what: str) -> None:
    print(f"setup: with root's rights, {what}:\n  {command}", flush=True)


def size_of(packages: tuple[str, ...]) -> str:
    """In apt-get's words; nothing where it does not know the packages."""
    ask = ["apt-get", "install", "--assume-no", "--no-install-recommends", "-o", "Debug::NoLocking=1", *packages]
    said = subprocess.run(ask, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}).stdout
    needed = re.search(r"Need to get (?:[\d.,]+ \w+/)?([\d.,]+ \w+) of archives", said)
    used = re.search(r"([\d.,]+ \w+) of additional disk space", said)
    return f" ({needed[1]} to fetch, {used[1]} on disk)" if needed and used else ""


def python_package(requirement: str) -> bool:
    command = pip_install(requirement, "--quiet")
    print(f"setup: from the package index: {command}", flush=True)
    return succeeds([sys.executable, "-m", "pip", "install", "--quiet", requirement])


def succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in get_args(SetUp):
        sys.exit(f"usage: install_programs.py {'|'.join(get_args(SetUp))}")
    sys.exit(main(cast(SetUp, sys.argv[1])))
