"""Holds what the export formats share: the model to be exported, trees of files, the README, the drivers' devices."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from uaccel.board import Board
from uaccel.board.accelerator_devices import CXX, board_devices_source, rack_source
from uaccel.codegen.describe import is_converted
from uaccel.codegen.generate import Generated
from uaccel.codegen.header import INCLUDE, include_closure
from uaccel.codegen.options import Names
from uaccel.errors import AcceleratorError
from uaccel.lower.program import Engine, Program
from uaccel.model import Array
from uaccel.util import incoming
from uaccel.util.files import data_dir
from uaccel.util.text import code_span
from uaccel.version import __version__

# The input of every format: generated code, a sample with its expected outputs, and the board.

# The version of what is exported: three numbers, as every manifest takes them.
VERSION: Final = ".".join([*re.findall(r"\d+", __version__), "0", "0"][:3])


@dataclass(frozen=True)
class Sample:
    """Holds inputs and their expected outputs. ``tolerance`` counts steps of integers; for floats it is relative."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    tolerance: float = 0


@dataclass(frozen=True)
class Export:
    """Holds all that a format needs to export a model. ``command`` is what a user types to make it again."""

    generated: Generated
    sample: Sample
    board: Board
    command: str

    @property
    def program(self) -> Program:
        return self.generated.program

    @property
    def names(self) -> Names:
        return self.generated.names

    @property
    def name(self) -> str:
        """The library's name: ``tvmgen_<model>``."""
        return self.names.prefix

    @property
    def title(self) -> str:
        return f"{self.program.name}, a neural network in C"

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The accelerators with a device; drivers that compute by themselves only need to be compiled."""
        return self.program.devices

    @cached_property
    def sources(self) -> dict[str, str]:
        """The sources that an application links: the model, and the drivers of its accelerators."""
        return self.generated.sources | {name: text for name, text in self._drivers.items() if name.endswith(".c")}

    @cached_property
    def private_headers(self) -> dict[str, str]:
        """The headers that these sources include in addition to the public ones."""
        drivers = {name: text for name, text in self._drivers.items() if not name.endswith(".c")}
        found = self.generated.private_headers | self.generated.firmware_headers | drivers
        wanted = [name for text in self._drivers.values() for name in INCLUDE.findall(text)]
        return found | include_closure(name for name in wanted if name.startswith("uaccel_") and name not in found)

    @property
    def public_headers(self) -> dict[str, str]:
        """The headers that an application includes."""
        return self.generated.public_headers

    @property
    def headers(self) -> dict[str, str]:
        return self.public_headers | self.private_headers

    @cached_property
    def _drivers(self) -> dict[str, str]:
        """The drivers' files by their names alone, which must differ: all their folders are on one include path."""
        found: dict[str, str] = {}
        for engine in self.program.engines:
            for name, text in (folder_of(engine, "driver") | folder_of(engine, "unit")).items():
                if name in found or name in self.generated.firmware_headers:
                    raise AcceleratorError(
                        f"accelerator {engine.name}: another file of this export is called {name}, too; "
                        "give the driver's file a name of its own"
                    )
                if name.endswith(CXX):
                    raise AcceleratorError(
                        f"accelerator {engine.name}: its driver {name} is C++, and exports are C; write it in C, "
                        "or make a project with 'uaccel create'"
                    )
                found[name] = text
        return found


def folder_of(engine: Engine, folder: str) -> dict[str, str]:
    """The files of an accelerator's folder, by their path in it."""
    files: list[tuple[str, Path]] = [(name, path) for name, path in engine.files if name.startswith(f"{folder}/")]
    return {name.removeprefix(f"{folder}/"): incoming.read_text(path) for name, path in files}


Packager = Callable[[Export], dict[str, str]]  # Path in the folder -> text.


def below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    """The files with their paths moved into a folder."""
    return {f"{folder}/{name}": text for name, text in files.items()}


# Device access for drivers: registers on the hardware, or a desk, where models of the devices run in the same process.

HARDWARE: Final = ("hal_common", "hal_plain", "hal_board", "hal_mmio")
DESK: Final = ("hal_common", "hal_plain", "hal_host", "device_rack")
DESK_HEADER: Final = "uaccel_desk.h"
TABLE: Final = "uaccel_devices.c"


def hardware(export: Export) -> dict[str, str]:
    """Sources by which drivers reach registers in the CPU's address space; nothing without accelerators."""
    return _ports(HARDWARE) | include_closure(["uaccel_hal.h"]) if export.engines else {}


def device_table(export: Export) -> dict[str, str]:
    """The application's table of its devices: addresses from the board file, or macros that the user must define."""
    if not export.engines:
        return {}
    names = [engine.name for engine in export.engines]
    there = {device.name for device in export.board.devices}
    text = board_devices_source(export.board, names).partition("\n")[2]
    needed = ""
    for name in names:
        if name not in there:
            macro = f"UACCEL_{name.upper()}_BASE"
            needed += f'#ifndef {macro}\n#error "define {macro} as the address of the registers of {name}"\n#endif\n'
            text = text.replace(f'{{"{name}", 0,', f'{{"{name}", {macro},')
    head = "/* Where the accelerators lie, and which interrupt is theirs: the application's own table. */\n"
    return {TABLE: head + text.replace("\n\n", f"\n\n{needed}", 1)}


def desk(export: Export) -> dict[str, str]:
    """The files that replace the hardware on a computer: models of the devices, a folder for each accelerator."""
    if not export.engines:
        return {}
    files = _ports(DESK) | include_closure(
        ["uaccel_hal.h", "uaccel_device.h", "uaccel_registers.h", "uaccel_account_state.h"]
    )
    files |= {TABLE: rack_source([engine.name for engine in export.engines]), DESK_HEADER: DESK_PLACES}
    for engine in export.engines:
        _require_c(engine)
        files |= {f"{engine.name}/{name}": text for name, text in folder_of(engine, "device").items()}
    return files


def _require_c(engine: Engine) -> None:
    """Refuses devices that are more than C, since an export's build files compile C only."""
    other = [name for name, _ in engine.files if name.endswith(CXX)]
    if other or engine.device_build:
        raise AcceleratorError(
            f"the device of {engine.name} is more than C ({other[0] if other else 'device_build'}), and exports take C "
            "alone; use 'uaccel create', whose projects build it"
        )


def desk_folders(export: Export) -> list[str]:
    """The folders with sources and headers of the desk, relative to its own; '' is the desk itself."""
    folders = {name.rpartition("/")[0] for name in desk(export)}
    return sorted(folders)


def _ports(names: tuple[str, ...]) -> dict[str, str]:
    ports = data_dir("firmware") / "ports"
    return {path.name: incoming.read_text(path) for name in names for path in sorted((ports / name).glob("*.[ch]"))}


DESK_PLACES: Final = """\
/* Places the memory that models of devices reach where they look for it; included before all else (-include). */
#ifndef UACCEL_DESK_H
#define UACCEL_DESK_H

#define UACCEL_DEVICE_CONSTANT __attribute__((section("uaccel_device_constants")))
#define UACCEL_WORKSPACE __attribute__((section("uaccel_arena")))
#define UACCEL_IO __attribute__((section("uaccel_io")))

#endif
"""


# Layout of formats with a build file: ``include`` for applications, ``src`` for the library itself.

# Rows of the README's table.
ROWS: Final = [
    ("include/", "the interface"),
    ("src/", "the model, its constants, and kernels that it is compiled from"),
]


def library(export: Export) -> dict[str, str]:
    """The library's files without access to devices."""
    return {
        **below("include", export.public_headers),
        **below("src", {**export.private_headers, **export.sources}),
    }


def embedded_library(export: Export) -> dict[str, str]:
    """The library's files with access to devices in the CPU's address space."""
    return library(export) | below("src", hardware(export))


def sources_of(files: dict[str, str], folder: str = "") -> list[str]:
    """Paths of the C files in a folder and below it."""
    return sorted(name for name in files if name.startswith(folder) and name.endswith(".c"))


def embedded_notes(export: Export) -> list[str]:
    """The README's note on how an application states the addresses of its accelerators."""
    if not export.engines:
        return []
    macros = " and ".join(f"`UACCEL_{engine.name.upper()}_BASE`" for engine in export.engines)
    return [f"The model uses accelerators: `uaccel_devices.c` beside the example says where they lie ({macros})."]


# The README of an export: one screen; its commands work in the folder as it is.

COLUMNS: Final = 110


def readme(export: Export, commands: Sequence[str], contents: Sequence[tuple[str, str]], notes: Sequence[str]) -> str:
    """The README's text. ``commands`` build the export and try it; ``contents`` describes its files."""
    rows = [f"| `{path}` | {what} |" for path, what in contents]
    lines = [
        f"# {export.name}",
        "",
        f"The network {code_span(export.program.model.name)} as C99 without a heap. Try it:",
        "",
        "```sh",
        *commands,
        "```",
        "",
        "The example feeds a sample and says how many elements differ from what the model means: none.",
        "",
        "| file | what it is |",
        "|---|---|",
        *rows,
        "",
        *[line for note in notes for line in (note, "")],
        _use(export),
        "",
        f"Made by {code_span(export.command)}.",
        "",
    ]
    return "\n".join(lines)


def _use(export: Export) -> str:
    name = export.name
    signature, names = export.program.signature, export.names
    inputs, outputs = (
        zip(names.inputs, signature.inputs, strict=True),
        zip(names.outputs, signature.outputs, strict=True),
    )
    quantised = [f"`{name}_quantize_{member}`" for member, spec in inputs if is_converted(spec)]
    back = [f"`{name}_dequantize_{member}`" for member, spec in outputs if is_converted(spec)]
    fill = f"fill the inputs ({quantised[0]} makes elements of real numbers)" if quantised else "fill the inputs"
    read = f"read the outputs ({back[0]} makes real numbers of elements)" if back else "read the outputs"
    text = f"In your application: include `{name}.h`, {fill}, call `{name}_run`, {read}. The header says the rest."
    return "\n".join(textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False))


def sized(export: Export) -> str:
    """The memory that the model takes, for a description of one line."""
    placement, generated = export.generated.placement, export.generated
    return f"{generated.weight_bytes:,} bytes of constants, {placement.arena:,} bytes of workspace"
