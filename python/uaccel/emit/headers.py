"""The firmware headers that generated code includes, and what those include in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable

from uaccel.errors import InternalError
from uaccel.resources import data_dir

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)
ALWAYS = ("uaccel_kernel.h", "uaccel_observe.h")


def kernel_files(names: Iterable[str]) -> dict[str, str]:
    """File name -> text, closed under inclusion."""
    found: dict[str, str] = {}
    wanted = [*ALWAYS, *names]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = _read(name)
            wanted += INCLUDE.findall(found[name])
    return found


def _read(name: str) -> str:
    firmware = data_dir("firmware")
    for folder in ("kernels", "include"):
        path = firmware / folder / name
        if path.is_file():
            return path.read_text()
    raise InternalError(f"generated code includes {name}, which is not in {firmware}")
