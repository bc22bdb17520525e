"""Environments that see nothing of the repository, and what is built from it for them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str | Path, cwd: Path, status: int = 0, path: str = "") -> str:
    """Standard output of a program in an environment without the repository; ``path`` goes in front of PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PATH"] = os.pathsep.join(filter(None, [path, environment["PATH"]]))
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """As the build backend does it, in this process: for where the building itself is not the point."""
    backend = pytest.importorskip("hatchling.builders.wheel", reason="the hatchling package is not installed")
    (wheel,) = backend.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(wheel)


def clone(folder: Path) -> Path:
    """What a commit of everything here would hold, and no more."""
    listing = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in listing.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
