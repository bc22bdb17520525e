"""Quantised neural networks to bare-metal C firmware.

:class:`Session` talks to that firmware; it is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uaccel.session.session import Session

__all__ = ["Session"]


def __getattr__(name: str) -> Any:
    if name != "Session":
        raise AttributeError(f"module 'uaccel' has no attribute {name!r}")
    from uaccel.session.session import Session

    return Session
