"""Defines what a board file says, as plain data, and reads ports: the folders of C for a family of boards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Literal

from uaccel.board.toml_table import KeyPath, Table, TomlSource, read_toml
from uaccel.util.files import data_dir
from uaccel.util.text import did_you_mean

# Ports: folders of C, with a ``port.toml`` that says for which processors they are and what they must know of a board.

MANIFEST: Final = "port.toml"
CORE: Final = "core"  # Stands in ``shared`` for the folder of the board's processor.
NATIVE, STDIO, UART = "native", "stdio", "uart"
SettingType = Literal["integer", "string", "boolean"]
SettingValue = int | str | bool

_KINDS: Final[dict[SettingType, type[SettingValue]]] = {"integer": int, "string": str, "boolean": bool}
_FOLDER: Final = re.compile(r"\w[\w.-]*", re.ASCII)
_SETTING: Final = re.compile(r"[a-z][a-z0-9_]*")
_WANTED: Final[dict[SettingType, str]] = {"integer": "an integer", "string": "a string", "boolean": "true or false"}


@dataclass(frozen=True)
class Setting:
    """Describes something that a port must know about a board; a board may leave it out where it has a default."""

    name: str
    type: SettingType
    help: str
    default: SettingValue | None = None
    pattern: str = ".*"  # The whole of a string matches it.


@dataclass(frozen=True)
class Port:
    """Describes a port; its ``name`` is that of its folder."""

    name: str
    folder: Path
    description: str
    arch: tuple[str, ...]
    shared: tuple[str, ...]  # Further folders of ``firmware/ports`` whose sources belong to it.
    console: tuple[str, ...]  # The kinds of console that it has.
    settings: tuple[Setting, ...]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The folders that a project needs, its own one first."""
        return (self.folder, *(ports_folder() / name for name in self.shared))


def ports_folder() -> Path:
    """The folder of the ports that come with uaccel."""
    return data_dir("firmware") / "ports"


def available_ports() -> dict[str, Path]:
    """The folders of the ports that come with uaccel, by name."""
    return {manifest.parent.name: manifest.parent for manifest in sorted(ports_folder().glob(f"*/{MANIFEST}"))}


def read_port(folder: Path, arch: str) -> Port:
    """The port in a folder, for such processors; its ``port.toml`` is checked like a board file."""
    source = read_toml(folder / MANIFEST)
    table = Table(source, (), source.data, ("description", "arch", "shared", "console", "settings"))
    if not _FOLDER.fullmatch(folder.name):
        raise table.error(f"the port's folder is called {folder.name!r}; wanted letters, digits, '.', '_' and '-'")
    settings = table.table("settings", _names(source)) if "settings" in table else None
    port = Port(
        name=folder.name,
        folder=folder,
        description=table.string("description"),
        arch=table.strings("arch"),
        shared=tuple(core_folder(arch) if name == CORE else name for name in table.strings("shared")),
        console=table.strings("console") or (STDIO if arch == NATIVE else UART,),
        settings=() if settings is None else tuple(_setting(settings, name) for name in settings.names()),
    )
    for name in port.shared:
        if not _FOLDER.fullmatch(name) or not (ports_folder() / name).is_dir():
            raise table.error(
                f"'shared' in {table} has '{name}'; there is no such folder in {ports_folder()}", "shared"
            )
    return port


def core_folder(arch: str) -> str:
    """The folder of start-up code, vectors and timer for such processors."""
    return "riscv" if arch.startswith("rv") else "cortex_m"


def _names(source: TomlSource) -> tuple[str, ...]:
    """The names of a port's settings; none where they are in no table, which its reader then refuses."""
    settings = source.data["settings"]
    return tuple(settings) if isinstance(settings, dict) else ()


def _setting(parent: Table, name: str) -> Setting:
    if not _SETTING.fullmatch(name):
        raise parent.error(f"a setting is called {name!r}; wanted lower-case letters, digits and underscores", name)
    table = parent.table(name, ("type", "help", "default", "pattern"))
    kind: SettingType = table.choice("type", tuple(_KINDS))
    default = table.value("default", _KINDS[kind], _WANTED[kind]) if "default" in table else None
    return Setting(name, kind, table.string("help"), default, _pattern(table, kind) if "pattern" in table else ".*")


def _pattern(table: Table, kind: SettingType) -> str:
    pattern = table.string("pattern")
    try:
        re.compile(pattern)
    except re.error as error:
        raise table.error(f"'pattern' in {table} is no regular expression: {error}", "pattern") from error
    if kind != "string":
        raise table.error(f"'pattern' in {table} is for settings of type string; leave it out", "pattern")
    return pattern


def settings_of(file: Table, port: Port) -> Mapping[str, SettingValue]:
    """The value of each of the port's settings, from the board file or by default."""
    table = file.table("settings", [setting.name for setting in port.settings]) if "settings" in file else None
    values: dict[str, SettingValue] = {}
    for setting in port.settings:
        if table is not None and setting.name in table:
            values[setting.name] = _value(table, setting)
        elif setting.default is not None:
            values[setting.name] = setting.default
        else:
            where = table or file
            raise where.error(f"port '{port.name}' wants '{setting.name}' in [settings]: {setting.help}")
    return values


def _value(table: Table, setting: Setting) -> SettingValue:
    value: SettingValue = table.value(setting.name, _KINDS[setting.type], f"{_WANTED[setting.type]}: {setting.help}")
    if isinstance(value, str) and not re.fullmatch(setting.pattern, value):
        raise table.error(f"'{setting.name}' in {table} is {value!r}; wanted {setting.help}", setting.name)
    return value


def unknown_port(name: str) -> str:
    """The message for a port that is not there."""
    known = available_ports()
    return (
        f"there is no port {name!r}{did_you_mean(name, known)} (known: {', '.join(known)}; "
        "a port of your own is given as a path that begins with './')"
    )


# Boards as plain data: a section of a board file is a class, and its keys are the fields.

Arch = Literal["native", "armv6m", "armv7m", "armv7em", "armv8m", "armv8.1m", "rv32"]
Feature = Literal["fpu", "dsp", "helium", "rvv"]
MemoryKind = Literal["flash", "ram", "tcm", "external"]
ON_CHIP: Final = ("ram", "tcm")  # Kinds of RAM that are not outside of the chip.
TimerKind = Literal["host", "systick", "mtime", "mcycle", "none"]
RtlCore = Literal["vexriscv"]

Proven = Literal["here", "hardware", "emulated", "simulated", "linked"]

DEFAULT_STACK = 8192
# Names of boards that come with uaccel and have passed the tests of real boards (tests/boards/test_hardware.py).
ON_HARDWARE: frozenset[str] = frozenset()
INTERRUPTS_A_STEP = 32  # Interrupt controllers have interrupts in multiples of this number.


@dataclass(frozen=True)
class Cpu:
    """Describes the processor, and how code for it is compiled."""

    name: str  # As its maker calls it, for example ``cortex-m4``.
    arch: Arch
    toolchain: str  # Prefix of the compiler's name (``arm-none-eabi`` for ``arm-none-eabi-gcc``), or ``native``.
    flags: tuple[str, ...] = ()  # For compiling and linking alike, for example ``-mcpu=cortex-m4``.
    link_flags: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()  # What kernels may use beyond the base architecture.


@dataclass(frozen=True)
class Memory:
    """Describes a memory: a range of addresses of one kind."""

    name: str
    kind: MemoryKind
    origin: int
    length: int
    accelerator: bool = False  # Whether an accelerator reaches it: the buffers of its DMA must lie in such a memory.
    wait_states: int = 0  # Cycles that the CPU waits for a line that is not at hand.
    line: int = 4  # Bytes that one read brings.
    code_cache: int = 0  # Bytes of the caches in front of it: of code, of data, or of both in one.
    data_cache: int = 0
    cache: int = 0
    prefetch: bool = False  # Whether the next line of code is read while this one is executed.

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.origin + self.length


@dataclass(frozen=True)
class Fixed:
    """Describes words of 32 bits that the chip wants to find at an address of a flash, such as its configuration."""

    address: int
    words: tuple[int, ...]

    @property
    def end(self) -> int:
        """The first address after them."""
        return self.address + 4 * len(self.words)


@dataclass(frozen=True)
class Device:
    """Describes an accelerator that the board itself has."""

    name: str  # The accelerator's.
    base: int  # Where its registers lie.
    irq: int | None = None  # The number of its interrupt at the CPU's interrupt controller; without it drivers poll.


@dataclass(frozen=True)
class StdioConsole:
    """Stands for standard input and output of a native process."""

    kind: ClassVar[Literal["stdio"]] = "stdio"


@dataclass(frozen=True)
class UartConsole:
    """Describes a UART; the port's source knows its registers."""

    kind: ClassVar[Literal["uart"]] = "uart"
    base: int
    baud: int
    irq: int  # The number of its interrupt at the CPU's interrupt controller.
    clock_hz: int | None = None  # The clock that the baud rate is divided from, where that is not the timer's.


@dataclass(frozen=True)
class SemihostingConsole:
    """Stands for semihosting: firmware stops, and the debugger or the emulator reads and writes for it."""

    kind: ClassVar[Literal["semihosting"]] = "semihosting"


@dataclass(frozen=True)
class RttConsole:
    """Stands for two rings in RAM, which a debug probe reads and writes."""

    kind: ClassVar[Literal["rtt"]] = "rtt"


@dataclass(frozen=True)
class Timer:
    """Describes what measures time on the board."""

    kind: TimerKind
    hz: int  # 0 where there is none.
    base: int | None = None  # Where the registers of ``mtime`` lie; the other kinds are part of the CPU.


@dataclass(frozen=True)
class HostRun:
    """Runs firmware as a process of this computer."""

    kind: ClassVar[Literal["host"]] = "host"


@dataclass(frozen=True)
class QemuRun:
    """Runs firmware under QEMU."""

    kind: ClassVar[Literal["qemu"]] = "qemu"
    system: str  # ``arm`` for ``qemu-system-arm``.
    machine: str
    cpu: str | None = None
    ram_origin: int | None = None  # Where the machine's main RAM lies, which can be a shared memory file.
    ram_length: int | None = None
    serial: int = 0  # The number of the machine's serial line that is the console.
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class RtlRun:
    """Runs firmware on a core as RTL, which Verilator simulates. The fields are cycles that a bus waits for the first
    word of a burst and for each further one, from flash and from all other memories."""

    kind: ClassVar[Literal["rtl"]] = "rtl"
    core: RtlCore
    flash_first: int = 1
    flash_next: int = 0
    ram_first: int = 1
    ram_next: int = 0


@dataclass(frozen=True)
class SerialRun:
    """Runs firmware on the real board, over its serial line."""

    kind: ClassVar[Literal["serial"]] = "serial"
    port: str = "auto"  # A device path, a URL, or ``auto``: found by ``usb`` and ``serial_number``.
    usb: str | None = None
    serial_number: str | None = None


@dataclass(frozen=True)
class OpenOcdFlash:
    """Flashes by OpenOCD."""

    tool: ClassVar[Literal["openocd"]] = "openocd"
    config: tuple[str, ...]
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class PyOcdFlash:
    """Flashes by pyOCD."""

    tool: ClassVar[Literal["pyocd"]] = "pyocd"
    target: str
    options: tuple[str, ...] = ()
    # The CMSIS-Pack that knows the target, seen from the board file, where pyOCD has not installed it.
    pack: str | None = None


@dataclass(frozen=True)
class CommandFlash:
    """Flashes by a program of the user's own; ``{elf}`` and ``{port}`` stand for firmware and serial port."""

    tool: ClassVar[Literal["command"]] = "command"
    command: tuple[str, ...]
    reset: tuple[str, ...] = ()


Console = StdioConsole | UartConsole | SemihostingConsole | RttConsole
Run = HostRun | QemuRun | RtlRun | SerialRun
Flash = OpenOcdFlash | PyOcdFlash | CommandFlash


@dataclass(frozen=True)
class Board:
    """One board file, read and checked."""

    name: str
    description: str
    port: Port  # Its start-up code and drivers.
    cpu: Cpu
    memories: tuple[Memory, ...]
    console: Console
    timer: Timer
    runs: tuple[Run, ...]  # Ways to run firmware on it, the usual one first.
    flash: Flash | None
    stack: int  # Bytes of stack for the firmware.
    devices: tuple[Device, ...]
    fixed: tuple[Fixed, ...]  # By rising address.
    settings: Mapping[str, SettingValue]  # Every setting of its port, by name.
    source: TomlSource = field(repr=False, compare=False)

    @property
    def interrupts(self) -> int:
        """The number of interrupts that its vector table must have room for."""
        console = self.console.irq if isinstance(self.console, UartConsole) else 0
        last = max([console, *(device.irq or 0 for device in self.devices)])
        return (last // INTERRUPTS_A_STEP + 1) * INTERRUPTS_A_STEP

    def fixed_in(self, memory: Memory) -> tuple[Fixed, ...]:
        """The fixed words of a memory. Nothing but the vector table lies before the last of them."""
        return tuple(one for one in self.fixed if memory.origin <= one.address < memory.end)

    @property
    def ram_areas(self) -> list[tuple[int, int]]:
        """Origins and lengths of the memories that variables lie in."""
        return [(memory.origin, memory.length) for memory in self.memories if memory.kind in ON_CHIP]

    @property
    def proven(self) -> Proven:
        """How its firmware was seen to work: here, on hardware, under an emulator, as RTL; or not at all:
        ``linked``."""
        if any(isinstance(run, HostRun) for run in self.runs):
            return "here"
        if self.name in ON_HARDWARE:
            return "hardware"
        if any(isinstance(run, RtlRun) for run in self.runs):
            return "simulated"
        return "emulated" if any(isinstance(run, QemuRun) for run in self.runs) else "linked"

    @property
    def file(self) -> Path:
        """The file that describes it."""
        return self.source.path

    def where(self, *key: str | int) -> str:
        """``file:line`` of a key such as ``("cpu", "flags")``, for whoever finds later that it cannot be."""
        path: KeyPath = key
        return self.source.where(path)
