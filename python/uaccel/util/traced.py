"""Runs a Python program and writes what it read: ``python -m uaccel.util.traced ROWS.json WORDS``.

The words are those that would follow ``python``: ``-m MODULE`` or a script, and its arguments. Programs that installed
packages start are taken as part of these packages.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

from uaccel.util.reads import UNSEEN, Reads


def main(target: Path, words: list[str]) -> None:
    reads = Reads(ignored=Path.cwd(), trusts_packages=True)
    try:
        with reads:
            if words[0] == "-m":
                sys.argv = words[1:]
                runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            else:
                sys.argv = words
                sys.path[0] = str(Path(words[0]).absolute().parent)
                runpy.run_path(words[0], run_name="__main__")
    finally:
        target.write_text(json.dumps(reads.rows), encoding="utf-8")


def command_for(words: list[str], target: Path) -> tuple[list[str], dict[str, str]]:
    """Returns the command that runs a generator, and what is known of its reading before it has run: nothing can be
    recorded of a program that is not Python's."""
    runs = words[0] == "python" and len(words) > 1 and (words[1] == "-m" or not words[1].startswith("-"))
    if not runs:
        command = [sys.executable if word == "python" else word for word in words]
        return command, {f"{UNSEEN} what {words[0]} reads": ""}
    return [sys.executable, "-m", __name__, str(target), *words[1:]], {}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
