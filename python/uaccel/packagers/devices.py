"""How drivers reach their devices: on the hardware, and on a desk where models stand in for it."""

from __future__ import annotations

from typing import Final

from uaccel.basics.device_build import CXX
from uaccel.board.device_tables import board_devices_source, rack_source
from uaccel.emit.headers import closed
from uaccel.errors import AcceleratorError
from uaccel.lower.program import Engine
from uaccel.packagers.export import Export, folder_of
from uaccel.resources import data_dir

HARDWARE: Final = ("hal_common", "hal_plain", "hal_board", "hal_mmio")
DESK: Final = ("hal_common", "hal_plain", "hal_host", "device_rack")
DESK_HEADER: Final = "uaccel_desk.h"
TABLE: Final = "uaccel_devices.c"


def hardware(export: Export) -> dict[str, str]:
    """Sources that bring drivers to registers in the CPU's address space; nothing without accelerators."""
    return _ports(HARDWARE) | closed(["uaccel_hal.h"]) if export.engines else {}


def device_table(export: Export) -> dict[str, str]:
    """The application's: where its devices lie. The board file's addresses, or macros that one must define."""
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
    """What stands in for the hardware in a process: models of the devices, by the accelerators' names."""
    if not export.engines:
        return {}
    files = _ports(DESK) | closed(["uaccel_hal.h", "uaccel_device.h", "uaccel_registers.h", "uaccel_account_state.h"])
    files |= {TABLE: rack_source([engine.name for engine in export.engines]), DESK_HEADER: DESK_PLACES}
    for engine in export.engines:
        _require_c(engine)
        files |= {f"{engine.name}/{name}": text for name, text in folder_of(engine, "device").items()}
    return files


def _require_c(engine: Engine) -> None:
    """An export's build files know C alone."""
    other = [name for name, _ in engine.files if name.endswith(CXX)]
    if other or engine.device_build:
        raise AcceleratorError(
            f"the device of {engine.name} is more than C ({other[0] if other else 'device_build'}), and exports take C "
            "alone; use 'uaccel create', whose projects build it"
        )


def desk_folders(export: Export) -> list[str]:
    """Where sources and headers of the desk lie, below its folder; '' is itself."""
    folders = {name.rpartition("/")[0] for name in desk(export)}
    return sorted(folders)


def _ports(names: tuple[str, ...]) -> dict[str, str]:
    ports = data_dir("firmware") / "ports"
    return {path.name: path.read_text() for name in names for path in sorted((ports / name).glob("*.[ch]"))}


DESK_PLACES: Final = """\
/* Places the memory that models of devices reach where they look for it; included before all else (-include). */
#ifndef UACCEL_DESK_H
#define UACCEL_DESK_H

#define UACCEL_DEVICE_CONSTANT __attribute__((section("uaccel_device_constants")))
#define UACCEL_WORKSPACE __attribute__((section("uaccel_arena")))
#define UACCEL_IO __attribute__((section("uaccel_io")))

#endif
"""
