"""Models of devices behind an emulated board: a plugin for QEMU that runs them, and a file that is the board's RAM."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uaccel.board.device_tables import rack_source
from uaccel.errors import ToolError
from uaccel.project.devices import DeviceModel
from uaccel.project.elf import symbols
from uaccel.resources import data_dir
from uaccel.session.plugins import PluginSource, build_library, build_plugin, code_address, plugin_words, ports_folder
from uaccel.toolchain import FoundProgram

_LAYER: Final = "uaccel_account_state"
"""Begins with the number of the layer under way."""
_SYMBOLS: Final = {
    "rung": "uaccel_mailbox_rung",
    "mailbox": "uaccel_mailbox",
    "shared": "uaccel_shared_start",
    "shared_end": "uaccel_shared_end",
    "constants": "uaccel_device_constants_start",
    "constants_end": "uaccel_device_constants_end",
}


@dataclass(frozen=True)
class Ram:
    """Of an emulated machine: what a shared file can stand behind."""

    origin: int
    length: int


@dataclass(frozen=True)
class DeviceOptions:
    """``words`` for QEMU's command line; ``ram`` is deleted by QEMU itself once it has it, and else by us."""

    words: list[str] = field(default_factory=list)
    ram: Path | None = None

    def remove(self) -> None:
        """When QEMU has ended, or never begun."""
        if self.ram is not None:
            self.ram.unlink(missing_ok=True)


def device_plugin(models: Sequence[DeviceModel], qemu: FoundProgram) -> Path:
    """The plugin with these models in it, built where it is not there yet."""
    return build_plugin(_source(models, "device", "plugin", ["qemu_device", "qemu_plugin", "hal_qemu"]), qemu)


def device_library(models: Sequence[DeviceModel]) -> Path:
    """The same as a library for the machine around a simulated core."""
    source = _source(models, "machine", "library", ["machine_devices"])
    return build_library(source, source.name)


def _source(models: Sequence[DeviceModel], kind: str, what: str, ports: Sequence[str]) -> PluginSource:
    """The first of these ports has the source that serves the models, the others headers for it."""
    folders = [ports_folder(name) for name in ("device_rack", "device_library")]
    sources = [source for folder in (ports_folder(ports[0]), *folders) for source in sorted(folder.glob("*.c"))]
    includes = [*map(ports_folder, ports), *folders, data_dir("firmware") / "include"]
    names = [model.name for model in models]
    return PluginSource(
        f"{kind}-{'-'.join(names)}"[:80],
        f"the {what} that runs the {'models' if len(names) > 1 else 'model'} of {' and '.join(names)}",
        [*sources, *(source for model in models for source in model.sources)],
        [*includes, *(folder for model in models for folder in model.includes)],
        {"devices.c": rack_source(names)},
        "; run the model on board host, or install a QEMU with them",
        tuple(word for model in models for word in model.build.flags),
        tuple(f"-l{name}" for model in models for name in model.build.libraries),
    )


def machine_devices(models: Sequence[DeviceModel], firmware: Path, base: int) -> list[str]:
    """Words for the machine around a simulated core; none for firmware that looks for no devices."""
    at = symbols(firmware)
    reached = [_SYMBOLS[name] for name in ("shared", "shared_end", "constants", "constants_end")]
    if not models or not all(symbol in at for symbol in reached):
        return []
    numbers = [base, *(at[symbol] for symbol in reached), at.get(_LAYER, 0)]
    return [f"devices={device_library(models)}," + ",".join(map(str, numbers))]


def device_options(models: Sequence[DeviceModel], qemu: FoundProgram, ram: Ram | None, firmware: Path) -> DeviceOptions:
    """None for firmware that looks for no devices."""
    if not models or ram is None:
        return DeviceOptions()
    at = symbols(firmware)
    if not all(symbol in at for symbol in _SYMBOLS.values()):
        return DeviceOptions()
    plugin = device_plugin(models, qemu)
    options: dict[str, int | str] = {option: at[symbol] for option, symbol in _SYMBOLS.items()}
    options["rung"] = code_address(at[_SYMBOLS["rung"]])
    if _LAYER in at and ram.origin <= at[_LAYER] < ram.origin + ram.length:
        options["layer"] = at[_LAYER]
    file = _ram_file(ram.length)
    words = ["-machine", "memory-backend=uaccel_ram", "-m", f"{ram.length}B", "-object"]
    words.append(f"memory-backend-file,id=uaccel_ram,share=on,size={ram.length},mem-path={_doubled(file)}")
    options |= {"ram": str(file), "origin": ram.origin, "remove": 1}
    return DeviceOptions([*words, *plugin_words(plugin, options)], file)


def _ram_file(length: int) -> Path:
    """Sparse: it takes what is written to it."""
    try:
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".ram")
        os.close(number)
        os.truncate(name, length)
    except OSError as error:
        raise ToolError(f"cannot make a file for the board's memory in {tempfile.gettempdir()}: {error}") from error
    return Path(name)


def _doubled(path: Path) -> str:
    return str(path).replace(",", ",,")
