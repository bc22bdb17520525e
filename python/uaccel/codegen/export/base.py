"""Holds what formats of an export share: the row of a format, the devices, the README."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from uaccel.board import Board
from uaccel.board.accelerator_devices import CXX, board_devices_source, rack_source
from uaccel.codegen.describe import is_converted
from uaccel.codegen.export.library import Export, Library, folder_of, listed
from uaccel.codegen.header import include_closure
from uaccel.errors import AcceleratorError, one_line
from uaccel.lower.program import Engine
from uaccel.util import incoming
from uaccel.util.files import data_dir
from uaccel.util.text import code_span

# A format: a row that says where each kind of file lies, and a function for what only this format has.

Files = dict[str, str]  # Path in the folder -> text.
# Forms of the example's function: its head, its end after success, and its end after an error.
MAIN: Final = ("int main(void)", "    return 0;", "        return 1;")
APP_MAIN: Final = ("void app_main(void)", "    return;", "        return;")
# Rows of the README's table about the library, where it lies in the usual folders.
ROWS: Final = [
    ("include/", "the interface"),
    ("src/", "the model, its constants, and kernels that it is compiled from"),
]


@dataclass(frozen=True)
class Rest:
    """Holds what only one format has: its own files, and for the README commands, rows on files, and notes."""

    files: Files
    commands: Sequence[str]
    contents: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Format:
    """Describes a format: the folders of its files, and in ``rest`` a function that gets them and returns the rest.

    ``root`` is the library's folder, with ``{name}`` for its name; ``include`` and ``src`` lie in it. Without ``src``
    there are neither sources nor their headers, without ``main`` only the sample. Access to devices that is ``apart``
    lies in the folders ``desk`` and ``hardware``; else the library reaches registers, and the example says where.
    ``alone``: why it holds one model only; empty if it holds several.
    ``assembles``: its build system takes an assembler file that includes a binary one.
    """

    rest: Callable[[Library, Files], Rest]
    root: str = ""
    include: str = "include"
    src: str | None = "src"
    example: str = "example"
    main: tuple[str, str, str] | None = MAIN
    apart: bool = False
    alone: str = ""
    assembles: bool = True


def below(folder: str, files: Mapping[str, str]) -> Files:
    """The files with their paths moved into a folder."""
    return {str(PurePosixPath(folder, name)): text for name, text in files.items()}


def sources_of(files: Files, folder: str) -> list[str]:
    """Paths of the C and assembler files below a folder, as seen from there."""
    return sorted(
        name.removeprefix(folder) for name in files if name.startswith(folder) and name.endswith((".c", ".S"))
    )


# Device access for drivers: registers on the hardware, or a desk, where models of the devices run in the same process.

HARDWARE: Final = ("hal_common", "hal_plain", "hal_board", "hal_mmio")
DESK: Final = ("hal_common", "hal_plain", "hal_host", "device_rack")
DESK_HEADER: Final = "desk/uaccel_desk.h"
TABLE: Final = "uaccel_devices.c"


def hardware(export: Library) -> dict[str, str]:
    """Sources by which drivers reach registers in the CPU's address space; nothing without accelerators."""
    return _ports(HARDWARE) | include_closure(["uaccel_hal.h"]) if export.engines else {}


def device_table(export: Library) -> dict[str, str]:
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


def desk(export: Library) -> Files:
    """The files of ``desk``, which replace the hardware on a computer: models, a folder for each accelerator."""
    if not export.engines:
        return {}
    files = _ports(DESK) | include_closure(
        ["uaccel_hal.h", "uaccel_device.h", "uaccel_registers.h", "uaccel_account_state.h"]
    )
    files |= {TABLE: rack_source([engine.name for engine in export.engines]), Path(DESK_HEADER).name: DESK_PLACES}
    for engine in export.engines:
        _require_c(engine)
        files |= below(engine.name, folder_of(engine, "device"))
    return below("desk", files)


def _require_c(engine: Engine) -> None:
    """Refuses devices that are more than C, since an export's build files compile C only."""
    other = [name for name, _ in engine.files if name.endswith(CXX)]
    if other or engine.device_build:
        raise AcceleratorError(
            f"the device of {engine.name} is more than C ({other[0] if other else 'device_build'}), and exports take C "
            "alone; use 'uaccel create', whose projects build it"
        )


def desk_folders(export: Library, suffix: str = "") -> list[str]:
    """The folders of the desk that hold files, or only those with files of such names."""
    return sorted({name.rpartition("/")[0] for name in desk(export) if name.endswith(suffix)})


def desk_options(export: Library) -> tuple[str, str]:
    """The compiler's options for folders of the desk, and patterns of its sources."""
    sources = " ".join(f"{folder}/*.c" for folder in desk_folders(export, ".c"))
    return " ".join(f"-I{folder}" for folder in desk_folders(export)), sources


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


# The README of an export: one screen; its commands work in the folder as it is.

COLUMNS: Final = 110


def apart_contents(export: Library) -> list[tuple[str, str]]:
    """Rows about the folders by which a model reaches its accelerators."""
    if not export.engines:
        return []
    return [
        ("desk/", "models of the accelerators, to try it on a computer"),
        ("hardware/", "instead of `desk/`: registers at the addresses of `uaccel_devices.c`"),
    ]


def embedded_notes(export: Library) -> list[str]:
    """The note on how an application states the addresses of its accelerators."""
    if not export.engines:
        return []
    macros = " and ".join(f"`UACCEL_{engine.name.upper()}_BASE`" for engine in export.engines)
    return [f"The model uses accelerators: `uaccel_devices.c` beside the example says where they lie ({macros})."]


@dataclass(frozen=True)
class CrossCompiler:
    """Names the compiler of a board, the prefix of its tools and the options that say for which CPU code is."""

    prefix: str
    flags: str

    @property
    def program(self) -> str:
        return f"{self.prefix}-gcc"


def cross_compiler(board: Board) -> CrossCompiler | None:
    """The compiler of a board; None for this computer."""
    cpu = board.cpu
    return None if cpu.arch == "native" else CrossCompiler(cpu.toolchain, " ".join(cpu.flags))


def readme(export: Library, rest: Rest) -> str:
    """The README's text. Its commands build the export and try it."""
    cross = cross_compiler(export.board)
    each = " to each" if len(export.models) > 1 else ""
    made_for = ". Try it:" if cross is None else f", for board `{export.board.name}`. Compile it:"
    lines = [
        f"# {export.name}",
        "",
        f"The {export.described} as C99 without a heap{made_for}",
        "",
        "```sh",
        *rest.commands,
        "```",
        "",
        f"The example feeds a sample{each} and says how many elements differ from what the model means: none.",
        "",
        "| file | what it is |",
        "|---|---|",
        *(f"| `{path}` | {what} |" for path, what in rest.contents),
        "",
        *([] if cross is None else [f"Options of the board's compiler, `{cross.program}`:", f"`{cross.flags}`.", ""]),
        *[line for note in rest.notes for line in (note, "")],
        _use(export),
        "",
        f"Made by {code_span(export.command)}.",
        "",
    ]
    return "\n".join(lines)


def _use(export: Library) -> str:
    text = _use_of_several(export) if len(export.models) > 1 else _use_of_one(export.models[0])
    return "\n".join(textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False))


def _use_of_several(export: Library) -> str:
    runs = listed(f"`{model.name}_run`" for model in export.models)
    return (
        f"In your application: include `{export.header}`, and call {runs}, one at a time: they share an arena of "
        f"{export.arena:,} bytes. Each model's header says the rest."
    )


def _use_of_one(export: Export) -> str:
    name = export.name
    quantised, back = (f"`{found[0]}`" if found else "" for found in conversions(export))
    fill = f"fill the inputs ({quantised} makes elements of real numbers)" if quantised else "fill the inputs"
    read = f"read the outputs ({back} makes real numbers of elements)" if back else "read the outputs"
    return f"In your application: include `{name}.h`, {fill}, call `{name}_run`, {read}. The header says the rest."


def conversions(export: Export) -> tuple[list[str], list[str]]:
    """The functions that make elements of real numbers, for inputs, and real numbers of elements, for outputs."""
    signature, names = export.program.signature, export.names
    inputs = zip(names.inputs, signature.inputs, strict=True)
    outputs = zip(names.outputs, signature.outputs, strict=True)
    return (
        [f"{export.name}_quantize_{member}" for member, spec in inputs if is_converted(spec)],
        [f"{export.name}_dequantize_{member}" for member, spec in outputs if is_converted(spec)],
    )


def summary(export: Library) -> str:
    """The description of one line that a manifest has."""
    several = len(export.models) > 1
    what = "quantised neural networks" if several else "a quantised neural network"
    names = listed(model.program.name for model in export.models)
    return one_line(f"{names}, {what} in C: {sized(export)}, no heap.")


def sized(export: Library) -> str:
    """The memory that it takes, for a description of one line."""
    return f"{export.weight_bytes:,} bytes of constants, {export.arena:,} bytes of workspace"
