"""Quantised neural networks to bare-metal C firmware.

What is public stands in ``__all__`` and in ``docs/reference/api.md``; beside it :mod:`uaccel.accelerator` and
:mod:`uaccel.streams` for the designers of accelerators, and :mod:`uaccel.testing` for their tests. Each name is loaded
when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from uaccel.util.files import models

if TYPE_CHECKING:
    from uaccel.api import Run, compile, measure, run, verify
    from uaccel.board import Board, load_board
    from uaccel.build.project_api import ProjectServer
    from uaccel.errors import UaccelError
    from uaccel.session.connect import ProjectTransport
    from uaccel.session.session import Session

__all__ = [
    "Board",
    "ProjectServer",
    "ProjectTransport",
    "Run",
    "Session",
    "UaccelError",
    "compile",
    "load_board",
    "measure",
    "models",
    "run",
    "verify",
]

_HOMES: Final = {
    "Board": "uaccel.board",
    "ProjectServer": "uaccel.build.project_api",
    "ProjectTransport": "uaccel.session.connect",
    "Run": "uaccel.api",
    "Session": "uaccel.session.session",
    "UaccelError": "uaccel.errors",
    "compile": "uaccel.api",
    "load_board": "uaccel.board",
    "measure": "uaccel.api",
    "run": "uaccel.api",
    "verify": "uaccel.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'uaccel' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
