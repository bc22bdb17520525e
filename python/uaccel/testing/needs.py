"""What a test needs of a board: the arguments of the marker ``uaccel_needs``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, get_args

from uaccel.basics.suggest import did_you_mean
from uaccel.board import Board
from uaccel.board.types import Feature
from uaccel.errors import UaccelError
from uaccel.testing.choose import over_line

KINDS: Final = ("host", "qemu", "rtl", "serial")
_RAM: Final = ("ram", "tcm", "external")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def lacks(board: Board, port: str, need: str) -> str | None:
    """Why the board does not meet the need, if so; :class:`UaccelError` for a need that nobody knows.

    A computer as a board has all the memory that is asked for, and can be any accelerator.
    """
    word, equals, amount = need.partition("=")
    check = _AMOUNTS.get(word) if equals else None
    if check is not None:
        return check(board, _bytes(need, amount))
    features = get_args(Feature)
    if need in features:
        return None if need in board.cpu.features else f"{board.cpu.name} has no {need}"
    if need in KINDS:
        kind = "serial" if over_line(board, port) else board.runs[0].kind
        return None if need == kind else f"it runs by {kind}"
    if need == "accelerator":
        reached = board.cpu.arch == "native" or any(memory.accelerator for memory in board.memories)
        return None if reached else "no memory of it is for an accelerator"
    known = [*features, *KINDS, "accelerator", *(f"{name}=SIZE" for name in _AMOUNTS)]
    raise UaccelError(f"uaccel_needs: there is no need {need!r}{did_you_mean(need, known)} (known: {', '.join(known)})")


def _bytes(need: str, text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,10})([KMG]?)", text)
    if match is None:
        raise UaccelError(f"uaccel_needs: {need!r} names no size; wanted a number of bytes such as 4096, 64K or 16M")
    return int(match[1]) * _UNITS[match[2]]


def _memory(kinds: tuple[str, ...], what: str) -> Callable[[Board, int], str | None]:
    """In one piece: an arena, as anything, lies in one memory."""

    def check(board: Board, wanted: int) -> str | None:
        largest = max((memory.length for memory in board.memories if memory.kind in kinds), default=0)
        enough = board.cpu.arch == "native" or largest >= wanted
        return None if enough else f"its largest {what} has {largest:,} bytes, wanted {wanted:,}"

    return check


_AMOUNTS: Final = {"memory": _memory(_RAM, "RAM"), "flash": _memory(("flash",), "flash")}
