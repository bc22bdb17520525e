"""The outcome of looking for one thing that uaccel needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "missing", "too old", "too new", "broken"]


@dataclass(frozen=True)
class Check:
    """One row of ``uaccel doctor``."""

    name: str
    status: Status
    version: str | None
    path: str | None
    required: bool
    needed_for: str
    detail: str | None
    """What is wrong, in words; none where nothing is."""
    fix: str | None
    """The command, or the sentence, that puts it right."""
