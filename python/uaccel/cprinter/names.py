"""C names for what TIR names, unique within the block where they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from uaccel.basics.sinks import is_reserved

_LIBRARY = """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp2 fabs floor fmod hypot ldexp log
log10 log1p log2 nearbyint nextafter pow rint round sin sinh sqrt tan tanh trunc"""
LIBRARY_FUNCTIONS = frozenset(name + suffix for name in _LIBRARY.split() for suffix in ("", "f"))


def identifier(name: str) -> str:
    """``name`` as a C identifier that says nothing of the tool it comes from."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    cleaned = re.sub("tvm", "ir", cleaned, flags=re.IGNORECASE)
    cleaned = re.sub(r"^cse_v(\d+)", r"common\1", cleaned)
    cleaned = re.sub(r"^T_", "", cleaned) or "value"
    return f"v{cleaned}" if cleaned[0].isdigit() else cleaned


class Names:
    """Hands out names; those of a block are free again after it."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._scopes: list[set[str]] = [set(taken | LIBRARY_FUNCTIONS)]

    def fresh(self, wanted: str) -> str:
        base = identifier(wanted)
        name, count = base, 1
        while is_reserved(name) or any(name in scope for scope in self._scopes):
            count += 1
            name = f"{base}_{count}"
        self._scopes[-1].add(name)
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        self._scopes.append(set())
        yield
        self._scopes.pop()
