"""Compilers that ``make test`` does without where they are absent; ``make setup-full`` brings clang."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator

import pytest

MAY_BE_ABSENT = ("clang", "powerpc-linux-gnu-gcc")


def skip_absent(items: Iterable[pytest.Item]) -> None:
    """Every row of a test that has such a compiler among its parameters is skipped without it."""
    absent = {name for name in MAY_BE_ABSENT if shutil.which(name) is None}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            for name in absent & set(_flat(item.callspec.params.values())):
                hint = ": make setup-full" if name == "clang" else ""
                item.add_marker(pytest.mark.skip(reason=f"{name} is not installed{hint}"))


def _flat(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        elif isinstance(value, str):
            yield value
