"""Builds QEMU plugins, and runs models of accelerators' devices in them behind an emulated board."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uaccel.board.accelerator_devices import CXX, HEADERS, rack_source
from uaccel.build.archive_reader import DeviceModel
from uaccel.build.children import run
from uaccel.build.elf import symbols
from uaccel.build.programs import FoundProgram, find_program
from uaccel.errors import ToolError
from uaccel.util import incoming
from uaccel.util.cache import cache_folder
from uaccel.util.files import data_dir

# Plugins: they come as C sources, are built at first use for the installed QEMU, and kept in the cache.

SECOND_INTERFACE: Final = (9, 0)  # The version of QEMU that dropped the first plugin interface.
_FLAGS: Final = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_THUMB_BIT: Final = 1


@dataclass(frozen=True)
class PluginSource:
    """Describes a plugin to build. ``includes`` are folders of headers; ``generated`` are more sources, as text by file
    name."""

    name: str
    about: str  # For messages: "the counting plugin".
    sources: Sequence[Path]
    includes: Sequence[Path] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""  # End of the message for a QEMU without plugins.
    flags: Sequence[str] = ()
    libraries: Sequence[str] = ()

    @property
    def options(self) -> list[str]:
        """The compiler's options; with C++ among the sources, no standard that is for C alone."""
        mixed = any(path.suffix in CXX for path in self.sources)
        return [*(flag for flag in _FLAGS if not (mixed and flag.startswith("-std="))), *self.flags]

    @property
    def linked(self) -> list[str]:
        return [*self.libraries, *(["-lstdc++"] if any(path.suffix in CXX for path in self.sources) else [])]


def ports_folder(name: str) -> Path:
    """A folder of ``firmware/ports``."""
    return data_dir("firmware") / "ports" / name


def build_plugin(plugin: PluginSource, qemu: FoundProgram) -> Path:
    """The plugin, built at first use; :class:`ToolError` where this QEMU takes none or no compiler is there."""
    usage = run([*qemu.command, "-help"])
    if "\n-plugin " not in usage.stdout:
        raise ToolError(f"{qemu.path} was built without support for plugins{plugin.remedy}")
    interface = 2 if qemu.version >= SECOND_INTERFACE else 1
    return build_library(plugin, f"{plugin.name}-{interface}", [f"-DUACCEL_QEMU_PLUGIN_API={interface}"])


def build_library(plugin: PluginSource, name: str, flags: Sequence[str] = ()) -> Path:
    """The shared library of a plugin, built at first use. Its name has a digest of all that it is built from."""
    compiler = find_program("C compiler")
    fingerprint = _fingerprint(plugin, repr((compiler.command, compiler.version, plugin.options, plugin.linked)))
    target = cache_folder() / f"{name}-{fingerprint[:16]}.so"
    if not target.is_file():
        includes = [f"-I{folder}" for folder in plugin.includes]
        _build([*compiler.command, *plugin.options, *flags, *includes], plugin, target)
    return target


def plugin_words(plugin: Path, options: Mapping[str, int | str]) -> list[str]:
    """The words for QEMU's command line."""
    words = [str(plugin), *(f"{name}={_text(value)}" for name, value in options.items())]
    return ["-plugin", ",".join(map(_word, words))]


def code_address(symbol: int) -> int:
    """The address of a function's first instruction; its symbol may have the lowest bit set for Thumb."""
    return symbol & ~_THUMB_BIT


def _text(value: int | str) -> str:
    return f"{value:#x}" if isinstance(value, int) else value


def _fingerprint(plugin: PluginSource, how: str) -> str:
    digest = hashlib.sha256(how.encode())
    for path in [*plugin.sources, *_headers(plugin.includes)]:
        digest.update(path.name.encode() + b"\0" + incoming.read_bytes(path) + b"\0")
    for name, text in plugin.generated.items():
        digest.update(name.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()


def _headers(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in HEADERS]


def _build(command: list[str], plugin: PluginSource, target: Path) -> None:
    """Builds into a folder of its own, and moves the result: another process may build the same meanwhile."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            sources = [str(path) for path in plugin.sources]
            for name, text in plugin.generated.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
                sources.append(str(Path(folder) / name))
            done = run([*command, "-o", str(made), *sources, *plugin.linked])
            if done.returncode != 0:
                raise ToolError(f"building {plugin.about} failed ({command[0]}): {_reason(done.stdout)}")
            made.replace(target)
    except OSError as error:
        raise ToolError(
            f"cannot write to {target.parent}: {error.strerror}; set UACCEL_CACHE to another folder"
        ) from error


def _reason(words: str) -> str:
    """The first line of a compiler's output with an error in it, or its first line."""
    lines = words.strip().splitlines() or ["no message"]
    told = (line for line in lines if " error: " in line or "undefined reference" in line)
    return next(told, lines[0])


# Device models behind an emulated board: a plugin for QEMU runs them, and a file that both map is the board's RAM.

_LAYER: Final = "uaccel_account_state"  # The symbol of a structure that begins with the current layer's number.
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
    """States where an emulated machine has RAM that a shared file can back."""

    origin: int
    length: int


@dataclass(frozen=True)
class DeviceOptions:
    """Holds ``words`` for QEMU's command line, and the file behind the board's RAM. The plugin deletes the file once
    QEMU has mapped it; ``remove`` does if QEMU never came so far."""

    words: list[str] = field(default_factory=list)
    ram: Path | None = None

    def remove(self) -> None:
        """Deletes the file, after QEMU has ended or if it never started."""
        if self.ram is not None:
            self.ram.unlink(missing_ok=True)


def device_plugin(models: Sequence[DeviceModel], qemu: FoundProgram) -> Path:
    """The plugin with these models in it, built at first use."""
    return build_plugin(_source(models, "device", "plugin", ["qemu_device", "qemu_plugin", "hal_qemu"]), qemu)


def device_library(models: Sequence[DeviceModel]) -> Path:
    """These models as a library for the machine around a simulated core, built at first use."""
    source = _source(models, "machine", "library", ["machine_devices"])
    return build_library(source, source.name)


def _source(models: Sequence[DeviceModel], kind: str, what: str, ports: Sequence[str]) -> PluginSource:
    """The sources of a plugin with models. The first of ``ports`` has the source that serves the models, the others
    have headers for it."""
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
    """The words for the machine around a simulated core; none for firmware that uses no devices."""
    at = symbols(firmware)
    reached = [_SYMBOLS[name] for name in ("shared", "shared_end", "constants", "constants_end")]
    if not models or not all(symbol in at for symbol in reached):
        return []
    numbers = [base, *(at[symbol] for symbol in reached), at.get(_LAYER, 0)]
    return [f"devices={device_library(models)}," + ",".join(map(str, numbers))]


def device_options(models: Sequence[DeviceModel], qemu: FoundProgram, ram: Ram | None, firmware: Path) -> DeviceOptions:
    """QEMU's options for these models; none for firmware that uses no devices."""
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
    words.append(f"memory-backend-file,id=uaccel_ram,share=on,size={ram.length},mem-path={_word(str(file))}")
    options |= {"ram": str(file), "origin": ram.origin, "remove": 1}
    return DeviceOptions([*words, *plugin_words(plugin, options)], file)


def _ram_file(length: int) -> Path:
    """Makes the file behind the board's RAM; it is sparse and takes only what is written to it."""
    try:
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".ram")
        os.close(number)
        os.truncate(name, length)
    except OSError as error:
        raise ToolError(f"cannot make a file for the board's memory in {tempfile.gettempdir()}: {error}") from error
    return Path(name)


def _word(text: str) -> str:
    """A word within an option of QEMU's, where single commas divide options."""
    return text.replace(",", ",,")
