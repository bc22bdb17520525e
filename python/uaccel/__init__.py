"""Quantised neural networks to bare-metal C firmware.

:class:`Session` talks to that firmware; it is loaded when it is first asked for. :func:`models` has models to try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uaccel.resources import models

if TYPE_CHECKING:
    from uaccel.session.session import Session

__all__ = ["Session", "models"]


def __getattr__(name: str) -> Any:
    if name != "Session":
        raise AttributeError(f"module 'uaccel' has no attribute {name!r}")
    from uaccel.session.session import Session

    return Session
