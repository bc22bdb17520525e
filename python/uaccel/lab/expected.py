"""Stored figures of a matrix: a row that falls behind them fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from uaccel.basics.documents import parse_json
from uaccel.basics.files import write_atomically
from uaccel.errors import InputError
from uaccel.lab.work import GOOD, Result

Stored = Mapping[str, Mapping[str, float]]
"""Figures of each row, by its title."""


@dataclass(frozen=True)
class Behind:
    """A figure that is worse than the stored one by more than it may be."""

    title: str
    figure: str
    stored: float
    now: float

    def __str__(self) -> str:
        grown = f" ({100 * (self.now / self.stored - 1):+.1f} %)" if self.stored else ""
        return f"{self.title}: {self.figure} is {self.now:,.10g}, stored are {self.stored:,.10g}{grown}"

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "figure": self.figure, "stored": self.stored, "now": self.now}


def read_expected(path: Path) -> Stored:
    """Empty where nothing was stored yet."""
    if not path.exists():
        return {}
    try:
        data = parse_json(path.read_bytes())
        return {title: {name: float(value) for name, value in row.items()} for title, row in data["figures"].items()}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} holds no figures; wanted what 'uaccel sweep --accept' writes") from error


def behind(results: Iterable[Result], figures: Mapping[str, float], stored: Stored) -> list[Behind]:
    """Of the results that are good. More is worse, but for utilisation and layers that are offloaded."""
    found = []
    for result in results:
        before = stored.get(result.row.title, {})
        for name, percent in figures.items():
            now = result.figures.get(name)
            if result.status not in GOOD or name not in before or now is None:
                continue
            if _worse(name, before[name], now, percent):
                found.append(Behind(result.row.title, name, before[name], now))
    return found


def _worse(name: str, stored: float, now: float, percent: float) -> bool:
    if name in ("utilisation", "offloaded"):
        return now < stored * (1 - percent / 100)
    return now > stored * (1 + percent / 100)


def write_expected(path: Path, results: Iterable[Result], figures: Mapping[str, float]) -> None:
    """Those of the good results, for review and the next sweep."""
    rows = {
        result.row.title: {name: value for name, value in sorted(result.figures.items()) if name in figures}
        for result in results
        if result.status in GOOD
    }
    text = json.dumps({"figures": dict(sorted(rows.items()))}, indent=1) + "\n"

    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode())

    write_atomically(path, write, "expected in the matrix file")
