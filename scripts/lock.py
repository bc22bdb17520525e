#!/usr/bin/env python3
"""Renew ``scripts/locked``: what ``make setup`` and ``make test`` install, each file of it with its digests.

``scripts/lock.py`` keeps the versions that are locked as far as pyproject.toml allows them. With ``--upgrade`` it takes
the newest. The resolver is uv (``pip install uv``): it solves for every Python and platform at once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "scripts" / "locked"
SETS = {"test": ("test", "oracles", "dev"), "setup": ("test",)}
"""What each file holds: uaccel with these extras. Each begins with the versions of the one before."""

BESIDE = """
hatchling
editables
annotated-doc<0.0.7 ; python_version < '3.11'
backports-strenum<1.3 ; python_version >= '3.11'
"""
"""What puts uaccel itself into the environment; and packages whose newest is for other Pythons."""

OPTIONS = ["--universal", "--python-version", "3.10", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]


def main(arguments: list[str]) -> None:
    before = LOCKED / "test.txt"
    for name, extras in SETS.items():
        file = LOCKED / f"{name}.txt"
        if file != before:
            shutil.copy(before, file)
        wanted = [word for extra in extras for word in ("--extra", extra)]
        command = ["uv", "pip", "compile", "pyproject.toml", "-", *wanted, "--output-file", str(file)]
        subprocess.run([*command, *OPTIONS, *arguments], cwd=ROOT, input=BESIDE, text=True, check=True)
        before = file


if __name__ == "__main__":
    main(sys.argv[1:])
