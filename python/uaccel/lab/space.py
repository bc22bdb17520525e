"""Accelerators of a design space: copies of a folder in which stated numbers are others."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from uaccel.basics.suggest import did_you_mean
from uaccel.cache import cache_folder, folder_digest
from uaccel.errors import AcceleratorError
from uaccel.lab.matrix import Matrix, combinations
from uaccel.lab.row import Row
from uaccel.resources import data_dir

_C: Final = r"^[ \t]*#[ \t]*define[ \t]+({name})[ \t]+\(?(-?\d+)[uUlL]*\)?"
_PYTHON: Final = r"^({name})(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(-?\d+)[ \t]*(?:#.*)?$"
_VERILOG: Final = r"^[ \t]*(?:parameter|localparam)[ \t]+({name})[ \t]*=[ \t]*(-?\d+)"
_SUFFIXES: Final = {".h": _C, ".c": _C, ".py": _PYTHON, ".v": _VERILOG}


def all_rows(matrix: Matrix, folder: Path | None = None) -> list[Row]:
    """The rows, with those of spaces; their accelerators are made in ``folder``, else in the cache, where the next
    sweep finds them."""
    rows, folder = list(matrix.rows), folder or cache_folder() / "spaces"
    for row, space in matrix.spaces:
        for numbers in combinations(space):
            made = variant(space.accelerator, numbers, folder)
            rows.append(replace(row, accelerators=(str(made),), tags=numbers))
    return rows


def variant(accelerator: str, numbers: Mapping[str, int], folder: Path) -> Path:
    """A copy of the accelerator's folder with these numbers, below ``folder``; of equal numbers the same."""
    source = _source(accelerator)
    words = "_".join(f"{name}_{value}" for name, value in sorted(numbers.items())).lower()
    target = folder / folder_digest(source)[:12] / words / source.name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        made = Path(temporary) / source.name
        shutil.copytree(source, made, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        for name, value in numbers.items():
            _set(made, name, value)
        with contextlib.suppress(OSError):  # another process was first
            made.rename(target)
    return target


def _source(accelerator: str) -> Path:
    folder = Path(accelerator) if "/" in accelerator else data_dir("accelerators") / accelerator
    if not (folder / "accelerator.py").is_file():
        raise AcceleratorError(f"a design space varies an accelerator's folder, and {folder} is none")
    return folder.resolve()


def _set(folder: Path, name: str, value: int) -> None:
    """Where the number is stated: once in the folder's C, Python or Verilog."""
    places = [(path, match) for path, match in _stated(folder, re.escape(name))]
    if len(places) != 1:
        known = sorted({match[1] for _, match in _stated(folder, r"\w+")})
        seen = "is not stated" if not places else f"is stated {len(places)} times"
        raise AcceleratorError(
            f"{name} {seen} in {folder.name}{did_you_mean(name, known)}; wanted a number that its C, Python or "
            "Verilog defines once"
        )
    path, match = places[0]
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text[: match.start(2)]}{value}{text[match.end(2) :]}", encoding="utf-8")


def _stated(folder: Path, name: str) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in sorted(folder.rglob("*")):
        pattern = _SUFFIXES.get(path.suffix)
        if pattern is not None and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            yield from ((path, match) for match in re.finditer(pattern.replace("{name}", name), text, re.MULTILINE))
