"""The folders that formats with a build file share: ``include`` for applications, ``src`` for the library itself."""

from __future__ import annotations

from typing import Final

from uaccel.packagers.devices import hardware
from uaccel.packagers.export import Export, below

ROWS: Final = [
    ("include/", "the interface"),
    ("src/", "the model, its constants, and kernels that it is compiled from"),
]
"""Of a README."""


def library(export: Export) -> dict[str, str]:
    """Without what reaches devices."""
    return {
        **below("include", export.public_headers),
        **below("src", {**export.private_headers, **export.sources}),
    }


def embedded_library(export: Export) -> dict[str, str]:
    """With what reaches devices in the CPU's address space."""
    return library(export) | below("src", hardware(export))


def sources_of(files: dict[str, str], folder: str = "") -> list[str]:
    """The C files of a folder and those below it, by path."""
    return sorted(name for name in files if name.startswith(folder) and name.endswith(".c"))


def embedded_notes(export: Export) -> list[str]:
    """Where an application says where its accelerators lie."""
    if not export.engines:
        return []
    macros = " and ".join(f"`UACCEL_{engine.name.upper()}_BASE`" for engine in export.engines)
    return [f"The model uses accelerators: `uaccel_devices.c` beside the example says where they lie ({macros})."]
