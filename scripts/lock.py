#!/usr/bin/env python3
"""Renew ``scripts/locked``: what ``make setup`` and ``make test`` install, each file of it with its digests.

``scripts/lock.py`` keeps the versions that are locked as far as pyproject.toml allows them; ``scripts/lock.py --upgrade`` takes
the newest. The resolver is uv (``pip install uv``): it solves for every Python and platform at once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "scripts" / "locked"
SETS = {"setup": ("test",), "test": ("test", "oracles", "dev")}
"""What each file holds: uaccel with these extras. The larger one is solved first, and the other has the same versions."""

BUILD = "hatchling\neditables\n"
"""What puts uaccel itself into the environment."""


def main(arguments: list[str]) -> int:
    for name in sorted(SETS, key=lambda name: -len(SETS[name])):
        extras = [word for extra in SETS[name] for word in ("--extra", extra)]
        command = ["uv", "pip", "compile", "pyproject.toml", "-", *extras, "--output-file", str(LOCKED / f"{name}.txt")]
        # The bound of tflite-micro names a pre-release; nothing else takes one.
        command += [
            "--universal",
            "--python-version",
            "3.10",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--quiet",
        ]
        done = subprocess.run([*command, *arguments], cwd=ROOT, input=BUILD, text=True, check=False)
        if done.returncode != 0:
            return done.returncode
        if name != "setup":
            (LOCKED / "setup.txt").write_text((LOCKED / f"{name}.txt").read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
