"""What a tool of hardware says, in one line."""

from __future__ import annotations

from collections.abc import Iterable


def reason(words: str) -> str:
    """The first line that tells what is wrong."""
    lines = [line.strip() for line in words.strip().splitlines() if line.strip()] or ["no message"]
    return _first(lines, ("%Error", " error: ", "undefined reference", "Error: ", "ERROR: ")) or lines[-1]


def _first(lines: Iterable[str], marks: tuple[str, ...]) -> str:
    return next((line for line in lines if any(mark in line for mark in marks)), "")
