"""Commands as the planner sees them: which engine, what they touch, how long they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from uaccel.streams.code import Code
from uaccel.streams.results import Results


class Access(NamedTuple):
    """Bytes ``begin`` to ``end`` of a memory, on chip (by its name) or outside (``place 3``)."""

    memory: str
    begin: int
    end: int
    writes: bool


@dataclass(frozen=True)
class Command:
    """``kind`` and ``fields`` are the vendor's, but for transfers (``load`` and ``store``); ``size`` is its length.

    ``moved``: bytes that it carries between memory and chip. ``code``: how what it loads is packed, if it is;
    ``results``: when it writes what it computes. ``layer`` and ``label`` are for readers.
    """

    kind: str
    engine: str
    fields: Mapping[str, int]
    accesses: tuple[Access, ...]
    cycles: int
    size: int
    layer: str
    label: str
    moved: int = 0
    code: Code | None = None
    results: Results | None = None


@dataclass(frozen=True)
class Tokens:
    """What a command waits for and tells when it is done, by the engine before its own and the one after."""

    wait_previous: bool = False
    wait_next: bool = False
    push_previous: bool = False
    push_next: bool = False


def place_name(number: int) -> str:
    """The memory outside that a stream knows by this number."""
    return f"place {number}"
