"""Whole numbers of pieces."""

from __future__ import annotations


def pieces(whole: int, size: int) -> int:
    """How many pieces of a size it takes; the last may be smaller."""
    return -(-whole // size)


def round_up(value: int, unit: int) -> int:
    """The next multiple of ``unit``."""
    return -(-value // unit) * unit
