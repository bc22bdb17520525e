"""Install the programs that uaccel calls and this system lacks; part of ``make setup``.

Only Debian, Ubuntu and their kin are served, and only as root or where sudo asks for no password. Elsewhere
the command is printed and set-up goes on: ``uaccel doctor`` says later what is still missing, and for what.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from uaccel.toolchain import missing_packages
from uaccel.toolchain.install import apt_command, how_to_install, uses_apt


def main() -> None:
    """Install what is missing, or say how."""
    packages = tuple(missing_packages())
    if not packages:
        return
    if not (uses_apt() and _may_install() and _install(packages)):
        print(f"setup: some programs are missing; to get them: {how_to_install(packages, ', '.join(packages))}")


def _may_install() -> bool:
    if os.geteuid() == 0:
        return True
    return shutil.which("sudo") is not None and _succeeds(["sudo", "-n", "true"])


def _install(packages: tuple[str, ...]) -> bool:
    """At the second attempt with fresh package lists: a new container has none."""
    print(f"setup: installing {' '.join(packages)}", flush=True)
    command = apt_command(packages)
    update = [*command[: command.index("apt-get") + 1], "update"]
    return _succeeds(command) or (_succeeds(update) and _succeeds(command))


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()
