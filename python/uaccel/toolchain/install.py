"""How this system gets programs."""

from __future__ import annotations

import os
import shutil
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


def how_to_install(packages: tuple[str, ...], what: str) -> str:
    """A command for the terminal, or a sentence where the system's own is not known."""
    if uses_apt():
        return " ".join(apt_command(packages))
    return f"install {what} with this system's package manager and see that it is in PATH"
