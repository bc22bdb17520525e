"""Writes the C tables of accelerators' devices on a board, and states how models of these devices are built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uaccel.board.types import Board, RtlRun

# C tables of devices: models in a process, or registers at the addresses of a board.

# Where the machine around a simulated core has its devices, in the order of their names, and how far apart.
FIRST_DEVICE: Final = 0xF100_0000
WINDOW: Final = 0x1_0000


def rack_source(names: Sequence[str]) -> str:
    """C that puts the models of these accelerators into a rack (firmware/ports/device_rack/rack.h)."""
    # Hidden visibility: a missing model is then an error of the linker, even in a shared library.
    model = 'extern const struct uaccel_device_model {}_device __attribute__((visibility("hidden")));\n'
    models = "".join(model.format(name) for name in names)
    entries = "".join(f"    {{.model = &{name}_device}},\n" for name in names)
    return (
        '/* The devices of this project; make a new project instead of editing it. */\n#include "rack.h"\n\n'
        f"{models}\n"
        f"struct uaccel_rack_device uaccel_rack[] = {{\n{entries}}};\n"
        f"const uint32_t uaccel_rack_count = {len(names)};\n"
    )


def board_devices_source(board: Board, names: Sequence[str]) -> str:
    """C that tells where these devices lie on the board (firmware/ports/hal_mmio/board_devices.h)."""
    there = {device.name: device for device in board.devices}
    entries = ""
    for name in names:
        device = there.get(name)
        base = _base(board, names, name) if device is None else f"{device.base:#x}u"
        irq = "UACCEL_NO_INTERRUPT" if device is None or device.irq is None else str(device.irq)
        entries += f'    {{"{name}", {base}, {irq}}},\n'
    return (
        "/* The devices of this project; make a new project instead of editing it. */\n"
        '#include "board_devices.h"\n\n'
        f"const struct uaccel_board_device uaccel_board_devices[] = {{\n{entries}}};\n"
        f"const uint32_t uaccel_board_device_count = {len(names)};\n"
    )


def _base(board: Board, names: Sequence[str], name: str) -> str:
    """The address of a device that the board file does not list; 0 means that there is none."""
    simulated = any(isinstance(run, RtlRun) for run in board.runs)
    return f"{FIRST_DEVICE + WINDOW * sorted(names).index(name):#x}u" if simulated else "0"


# Building a device's model: what it needs beyond the C and C++ in its folder.

# The file beside the sources in an archive that CMake reads (project_template/cmake/accelerators.cmake).
FILE: Final = "build.txt"
CXX: Final = (".cc", ".cpp", ".cxx")
HEADERS: Final = (".h", ".hh", ".hpp")
_FORMS: Final = {
    "flags": (r"-(D\w+(=\w+)?|O[0-3sg]|std=[a-z0-9+]+|[fmW][a-z0-9-]+)", "options such as -O3, -DNAME=1 or -std=c++20"),
    "includes": (r"\w[\w-]*(/\w[\w-]*)*", "folders below device/"),
    "libraries": (r"\w[\w+.-]*", "names such as 'fftw3', without 'lib' and without '-l'"),
}


@dataclass(frozen=True)
class DeviceBuild:
    """Lists compiler ``flags``, ``includes`` (folders below ``device/``) and ``libraries`` by name."""

    flags: Sequence[str] = ()
    includes: Sequence[str] = ()
    libraries: Sequence[str] = ()

    @property
    def text(self) -> str:
        """A line for each flag, folder and library, as CMake reads it."""
        rows = [("flag", self.flags), ("include", self.includes), ("library", self.libraries)]
        return "".join(f"{what} {value}\n" for what, values in rows for value in values)

    @classmethod
    def of(cls, text: str) -> DeviceBuild:
        """Read back what :attr:`text` wrote."""
        rows = [line.partition(" ") for line in text.splitlines()]
        found = {
            what: tuple(value for kind, _, value in rows if kind == what) for what in ("flag", "include", "library")
        }
        return cls(found["flag"], found["include"], found["library"])

    def complaint(self) -> str | None:
        """What is wrong with a field, or None. Fields are restricted to plain words, since a shell and CMake read them
        and an archive may come from anywhere."""
        for name, (form, wanted) in _FORMS.items():
            values = getattr(self, name)
            if isinstance(values, str) or not all(isinstance(v, str) and re.fullmatch(form, v, re.A) for v in values):
                return f"device_build.{name} is {values!r}; wanted a list of {wanted}"
        return None
