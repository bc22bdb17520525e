"""The firmware headers that generated code includes, and what those include in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uaccel.errors import InternalError
from uaccel.lower.program import Program
from uaccel.resources import data_dir

INCLUDE: Final = re.compile(r'^\s*#(?:include|define UACCEL_BODY) "([^"]+)"', re.MULTILINE)
ALWAYS: Final = ("uaccel_kernel.h", "uaccel_observe.h")
ACCELERATOR: Final = "uaccel_accelerator.h"
ROWS: Final = "uaccel_rows.h"


def kernel_headers(program: Program) -> list[str]:
    """Those of the kernels that the layers call."""
    calls = [call for layer in program.layers for form in layer.functions for call in form.kernel.calls]
    rows = {ROWS for layer in program.layers if layer.streaming is not None}
    return sorted({call.header for call in calls if call.header} | rows)


def firmware_headers(program: Program, *more: str) -> dict[str, str]:
    """File name -> text, closed under inclusion."""
    accelerator = [ACCELERATOR] if program.engines else []
    return closed([*ALWAYS, *sorted([*kernel_headers(program), *accelerator, *more])])


def closed(names: Iterable[str]) -> dict[str, str]:
    """These headers of ``firmware/`` and what they include in turn, by name."""
    found: dict[str, str] = {}
    wanted = list(names)
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
