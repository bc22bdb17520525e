"""How a region runs: C calls into the driver, with what they need in memory and in flash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uaccel.ops.kernel import Argument, Definition, KernelCall


@dataclass(frozen=True)
class Lowered:
    """What a region becomes.

    ``scratch``: bytes of memory that the calls share while they run. ``source``: C that goes into the model's source
    beside them. ``artefacts``: files by name for a reader (JSON, disassembly), which ``compile --dump`` writes.
    """

    calls: tuple[KernelCall, ...]
    scratch: int = 0
    source: Definition | None = None
    artefacts: Mapping[str, str | bytes] = field(default_factory=dict)


def library_call(function: str, *arguments: Argument | int | float) -> KernelCall:
    """``function(arguments...)``: tensors by address, numbers as they are; it returns 0 or an error code."""
    return KernelCall(function, "", "", {}, tuple(arguments), checked=True)
