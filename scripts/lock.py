#!/usr/bin/env python3
"""Renew ``scripts/locked``: what ``make setup`` and ``make test`` install, each file of it with its digests.

``scripts/lock.py`` keeps the versions that are locked as far as pyproject.toml allows them. With ``--upgrade`` it takes
the newest. The resolver is uv (``pip install uv``): it solves for every Python and platform at once. The files change
when it has solved all of them, or not at all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
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


def main(arguments: list[str]) -> int:
    if shutil.which("uv") is None:
        print("lock.py: uv is missing; to get it: pip install uv", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=LOCKED.parent, prefix=".locked-") as folder:
        before = LOCKED / "test.txt"
        for name, extras in SETS.items():
            file = Path(folder) / f"{name}.txt"
            shutil.copy(before, file)
            wanted = [word for extra in extras for word in ("--extra", extra)]
            command = ["uv", "pip", "compile", "pyproject.toml", "-", *wanted, "--output-file", str(file)]
            done = subprocess.run([*command, *OPTIONS, *arguments], cwd=ROOT, input=BESIDE, text=True, check=False)
            if done.returncode != 0:
                print(f"lock.py: uv did not solve {name}.txt; scripts/locked stays as it is", file=sys.stderr)
                return 1
            before = file
        for name in SETS:
            (Path(folder) / f"{name}.txt").replace(LOCKED / f"{name}.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
