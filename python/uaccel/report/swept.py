"""Results of a sweep as the sections of a page read them: what ``uaccel sweep`` wrote, a line for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

from uaccel.basics.documents import parse_json
from uaccel.basics.words import CPU
from uaccel.errors import InputError

GOOD: Final = ("right", "ran")
LARGEST: Final = 1 << 30
"""Bytes of a file of results."""
HINT: Final = "wanted what 'uaccel sweep' writes"


@dataclass(frozen=True)
class SweptRow:
    """``number``: its place in the sweep. ``options`` without the design space's numbers, which are ``tags``."""

    number: int
    title: str
    model: str
    board: str
    engines: str
    options: str
    tags: Mapping[str, Any]
    status: str
    figures: Mapping[str, float]
    error: str = ""
    log: str = ""
    took: float = 0.0
    attempts: int = 1

    @property
    def good(self) -> bool:
        return self.status in GOOD

    @property
    def numbers(self) -> tuple[str, ...]:
        """Of a design space, in words."""
        return tuple(f"{name}={value}" for name, value in self.tags.items())


@dataclass(frozen=True)
class Sweep:
    """A file of results. ``label`` is what its sweep was told, else the file's name."""

    path: Path
    label: str
    rows: tuple[SweptRow, ...] = field(default=())


def read_sweep(path: Path) -> Sweep:
    """Of rows with the same title the last counts; a line that was cut off is left out."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has {path.stat().st_size} bytes, more than any sweep; {HINT}")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; {HINT}") from error
    rows: dict[str, SweptRow] = {}
    label = ""
    for number, line in enumerate(lines, 1):
        try:
            data = parse_json(line)
            row = _row(data, rows)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            if number < len(lines) and not rows:
                raise InputError(f"{path}:{number} is no result; {HINT}") from error
            continue  # cut off when its writer was killed
        rows[row.title] = row
        label = str(data.get("label") or label)
    if not rows:
        raise InputError(f"{path} holds no result; {HINT}")
    return Sweep(path, label or path.stem, tuple(rows.values()))


def _row(data: Mapping[str, Any], before: Mapping[str, SweptRow]) -> SweptRow:
    said, title = data["row"], str(data["title"])
    engines = "+".join(PurePath(str(name)).name for name in said["accelerators"]) or CPU
    figures = {str(name): float(value) for name, value in data["figures"].items() if _is_number(value)}
    if (data["report"].get("target") or {}).get("emulated"):
        figures.pop("seconds", None)  # an emulator's own mean nothing
    options = [f"{key}={_word(value)}" for key, value in said["options"].items()]
    number = before[title].number if title in before else len(before)
    names = (title, PurePath(str(said["model"])).stem, str(said["board"]), engines, " ".join(options))
    tags = {str(name): value for name, value in said["tags"].items()}
    told = (str(data["error"]), str(data["log"]), float(data["took"]), int(data["attempts"]))
    return SweptRow(number, *names, tags, str(data["status"]), figures, *told)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
