"""Imports a package as if another one, which it would load just in case, were not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Inside, ``import name`` fails; one that was imported before stays."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast(ModuleType, None)  # Python's own sign for that
    try:
        yield
    finally:
        del sys.modules[name]
