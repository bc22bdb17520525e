"""How this system gets programs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

_OS_RELEASE = Path("/etc/os-release")


def uses_apt() -> bool:
    """Whether this is Debian, Ubuntu or one of their kin."""
    if shutil.which("apt-get") is None or not _OS_RELEASE.is_file():
        return False
    fields = dict(line.split("=", 1) for line in _OS_RELEASE.read_text().splitlines() if "=" in line)
    families = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").split()
    return bool({"debian", "ubuntu"} & set(families))


def apt_command(packages: tuple[str, ...]) -> list[str]:
    """What installs packages, from the account that asks."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    return [*sudo, "apt-get", "install", "-y", "--no-install-recommends", *packages]


def may_become_root() -> bool:
    """Whether this account is root's, or gets its rights without a password."""
    if os.geteuid() == 0:
        return True
    sudo = shutil.which("sudo")
    if sudo is None:
        return False
    asked = [sudo, "-n", "true"]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def may_use_apt() -> bool:
    """Whether apt-get is here and this account could run it."""
    return uses_apt() and (os.geteuid() == 0 or shutil.which("sudo") is not None)


def pip_install(requirement: str, *options: str) -> str:
    """The command that installs a Python package beside this uaccel."""
    return shlex.join([sys.executable, "-m", "pip", "install", *options, requirement])


def how_to_install(packages: tuple[str, ...], what: str) -> str:
    """A command for the terminal, or a sentence where the system's own is not known."""
    if uses_apt():
        return " ".join(apt_command(packages))
    return f"install {what} with this system's package manager and see that it is in PATH"
