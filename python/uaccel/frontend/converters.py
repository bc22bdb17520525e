"""The table of a format's converters: what makes Relax of an operator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from uaccel.errors import InternalError

C = TypeVar("C", bound=Callable[..., Any])
Condition = Callable[[Any], bool]


def always(_node: Any) -> bool:
    """For converters that take every node of their operator."""
    return True


class Converters(Generic[C]):
    """By the operator's full name. Every module of the package ``home`` may add to it, and is imported for it."""

    def __init__(self, home: str, when: Condition = always) -> None:
        self._home = home
        self._when = when
        self._table: dict[str, tuple[C, Condition]] = {}
        self._complete = False

    def converts(self, *names: str, when: Condition | None = None) -> Callable[[C], C]:
        """Register the converter of these operators, for those nodes where ``when`` holds."""

        def add(function: C) -> C:
            for name in names:
                if name in self._table:
                    raise InternalError(f"{self._home} has two converters of {name}")
                self._table[name] = (function, when or self._when)
            return function

        return add

    def find(self, name: str, node: Any) -> C | None:
        function, takes = self._all().get(name, (None, always))
        return function if takes(node) else None

    @property
    def names(self) -> frozenset[str]:
        """The operators for which there is a converter, whatever nodes it takes."""
        return frozenset(self._all())

    def _all(self) -> dict[str, tuple[C, Condition]]:
        if not self._complete:
            self._complete = True
            for module in pkgutil.iter_modules(importlib.import_module(self._home).__path__, f"{self._home}."):
                importlib.import_module(module.name)
        return self._table
