"""Checks the tables of a board file and makes a :class:`~uaccel.board.Board` of them; finds board files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from uaccel.board import types
from uaccel.board.toml_table import Table, TomlSource, read_toml
from uaccel.board.types import Board
from uaccel.errors import BoardError
from uaccel.util.files import data_dir
from uaccel.util.text import did_you_mean

# Reading a board file: each table by itself, then the rules that hold between tables.

_SECTIONS: Final = (
    *("description", "port", "stack", "settings", "cpu", "memory"),
    *("fixed", "device", "console", "timer", "run", "flash"),
)
_SMALLEST_STACK: Final = 1024
_LINKER_WORDS: Final = ("l", "len", "o", "org")
_MEMORY_STEP: Final = 16
_MOST_WAIT_STATES: Final = 63
_LONGEST_LINE: Final = 64
_CACHES: Final = ("code_cache", "data_cache", "cache")
_MOST_BUS_CYCLES: Final = 1000
_EXCEPTIONS: Final = 16  # In a Cortex-M's vector table, before the interrupts.
_VECTOR_BYTES: Final = 4
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_NANOSECONDS: Final = 1_000_000_000
_Section = TypeVar("_Section")


@dataclass(frozen=True)
class _ArchRules:
    features: tuple[types.Feature, ...]
    timers: tuple[types.TimerKind, ...]
    can_wait: bool = False  # For a device's interrupt, asleep.
    last_irq: int = 1023


_RULES: Final[dict[types.Arch, _ArchRules]] = {
    "native": _ArchRules((), ("host",)),
    "armv6m": _ArchRules((), ("systick", "none"), can_wait=True, last_irq=479),
    "armv7m": _ArchRules((), ("systick", "none"), can_wait=True, last_irq=479),
    "armv7em": _ArchRules(("fpu", "dsp"), ("systick", "none"), can_wait=True, last_irq=479),
    "armv8m": _ArchRules(("fpu", "dsp"), ("systick", "none"), can_wait=True, last_irq=479),
    "armv8.1m": _ArchRules(("fpu", "dsp", "helium"), ("systick", "none"), can_wait=True, last_irq=479),
    "rv32": _ArchRules(("fpu", "rvv"), ("mtime", "mcycle", "none")),
}


def board_from_source(source: TomlSource) -> Board:
    """Check a board file and give what it says; the first thing wrong is a :class:`BoardError`."""
    name = source.path.stem
    if not _NAME.fullmatch(name) or source.path.suffix != ".toml":
        raise BoardError(
            f"board file {source.path}: its name is the board's and {source.path.name!r} cannot be one; "
            "wanted lower-case letters, digits and underscores, and .toml behind them"
        )
    file = Table(source, (), source.data, _SECTIONS)
    cpu = _cpu(file.table("cpu", _keys(types.Cpu)))
    runs = _runs(file, cpu)
    port = _port(file, cpu)
    memories = _memories(file, cpu)
    console = _console(file, cpu, port)
    board = Board(
        name=name,
        description=file.string("description"),
        port=port,
        cpu=cpu,
        memories=memories,
        console=console,
        timer=_timer(file.table("timer", _keys(types.Timer)), cpu),
        runs=runs,
        flash=_flash(file, runs),
        stack=_stack(file),
        devices=_devices(file, cpu, memories, console),
        fixed=_fixed(file, memories),
        settings=types.settings_of(file, port),
        source=source,
    )
    _check_vectors(board)
    _check_fixed(board)
    _check_accelerator_memories(board)
    return board


def _keys(kind: type[Any], *more: str) -> tuple[str, ...]:
    """The keys that a section may have: the fields of its dataclass, and ``more``."""
    return (*more, *(entry.name for entry in fields(kind)))


def _read(table: Table, kind: type[_Section], **readers: Callable[[Table, str], Any]) -> _Section:
    """A section as its dataclass. A key is read as ``readers`` say, else by the type of its field; it may be missing
    where the field has a default."""
    entries = fields(cast("type[Any]", kind))
    types_of = get_type_hints(kind)
    given = [entry.name for entry in entries if entry.name in table or entry.default is MISSING]
    return kind(**{key: (readers.get(key) or _by_type(types_of[key]))(table, key) for key in given})


def _by_type(wanted: Any) -> Callable[[Table, str], Any]:
    words = get_args(wanted)
    if get_origin(wanted) is Literal:
        return lambda table, key: table.choice(key, words)
    if get_origin(wanted) is tuple:
        return Table.strings if words[0] is str else lambda table, key: table.choices(key, get_args(words[0]))
    return Table.boolean if wanted is bool else Table.string


def _between(low: int, high: int) -> Callable[[Table, str], int]:
    return lambda table, key: table.integer(key, low, high)


def _matching(pattern: str | re.Pattern[str], wanted: str) -> Callable[[Table, str], str]:
    """Reads a text of this form."""

    def read(table: Table, key: str) -> str:
        value = table.string(key)
        if not re.fullmatch(pattern, value):
            raise table.error(f"'{key}' in {table} is {value!r}; wanted {wanted}", key)
        return value

    return read


_identifier = _matching(_NAME, "lower-case letters, digits and underscores")
_toolchain = _matching(r"(?a:[\w/.][\w/.+-]*)", "what stands before '-gcc' in the compiler's name")
_usb = _matching(r"[0-9a-f]{4}:[0-9a-f]{4}", "vendor:product as in '0483:374b'")


def _port(file: Table, cpu: types.Cpu) -> types.Port:
    """A port that comes with uaccel, or the user's: a folder beside the board file."""
    name = file.string("port")
    folder = file.source.path.parent / name if name.startswith((".", "/")) else types.available_ports().get(name)
    if folder is None:
        raise file.error(types.unknown_port(name), "port")
    port = types.read_port(folder.resolve(), cpu.arch)
    if cpu.arch not in port.arch:
        raise file.error(f"port '{port.name}' is for {', '.join(port.arch)}; this board is {cpu.arch}", "port")
    return port


def _stack(file: Table) -> int:
    stack = file.size("stack") if "stack" in file else types.DEFAULT_STACK
    if stack < _SMALLEST_STACK or stack % 16:
        raise file.error(f"'stack' is {stack} bytes; wanted a multiple of 16, at least {_SMALLEST_STACK}", "stack")
    return stack


def _cpu(table: Table) -> types.Cpu:
    cpu = _read(table, types.Cpu, toolchain=_toolchain, flags=_compiler_flags, link_flags=_compiler_flags)
    if (cpu.arch == "native") != (cpu.toolchain == "native"):
        raise table.error(
            f"'toolchain' in {table} is '{cpu.toolchain}' and 'arch' is '{cpu.arch}'; "
            "wanted 'native' for both or for neither",
            "toolchain",
        )
    if cpu.arch != "native" and not any(flag.startswith(("-mcpu=", "-march=")) for flag in cpu.flags):
        wanted = "-march=rv32imac" if cpu.arch == "rv32" else f"-mcpu={cpu.name}"
        given = " ".join(cpu.flags) or "none"
        raise table.error(f"'flags' in {table} tell the compiler no CPU: {given}; wanted such as {wanted}", "flags")
    for feature in cpu.features:
        if feature not in _RULES[cpu.arch].features:
            has = ", ".join(_RULES[cpu.arch].features) or "none"
            raise table.error(f"'features' in {table} has '{feature}'; {cpu.arch} can have: {has}", "features")
    return cpu


def _compiler_flags(table: Table, key: str) -> tuple[str, ...]:
    """Flags of plain characters: they go through CMake and a shell, which both give other ones a meaning."""
    flags = table.strings(key)
    for flag in flags:
        if not re.fullmatch(r"-[\w.,:=+/@%^~-]+", flag, re.ASCII):
            raise table.error(
                f"'{key}' in {table} has {flag!r}; wanted flags that start with '-', one to a string, "
                "of letters, digits and _ . , : = + / @ % ^ ~ -",
                key,
            )
    return flags


def _memories(file: Table, cpu: types.Cpu) -> tuple[types.Memory, ...]:
    tables = file.tables("memory", _keys(types.Memory))
    memories = tuple(_memory(table) for table in tables)
    for (first, _), (second, table) in combinations(zip(memories, tables, strict=True), 2):
        if first.name == second.name:
            raise table.error(f"a second memory is called '{second.name}'; wanted another name", "name")
        if first.origin < second.end and second.origin < first.end:
            raise table.error(f"memory {_span(second)} overlaps memory {_span(first)}; wanted them apart", "origin")
    kinds = {memory.kind for memory in memories}
    if cpu.arch != "native" and not {"flash", "ram"} <= kinds:
        lacking = "flash" if "flash" not in kinds else "ram"
        raise file.error(f"no [[memory]] is of kind '{lacking}'; wanted at least one flash and one ram")
    return memories


def _memory(table: Table) -> types.Memory:
    readers = {"name": _identifier, "origin": Table.address, "length": Table.size, **dict.fromkeys(_CACHES, Table.size)}
    readers |= {"wait_states": _between(0, _MOST_WAIT_STATES), "line": _between(4, _LONGEST_LINE)}
    memory = _read(table, types.Memory, **readers)
    _check_lines(memory, table)
    if memory.name in _LINKER_WORDS:
        raise table.error(f"'name' in {table} is {memory.name!r}, a word of the linker's; wanted another name", "name")
    for key, value in (("origin", memory.origin), ("length", memory.length)):
        if value % _MEMORY_STEP:
            raise table.error(f"'{key}' in {table} is {value:#x}; wanted a multiple of {_MEMORY_STEP}", key)
    if memory.end > 1 << 32:
        raise table.error(f"memory {_span(memory)} ends beyond 32 bits; wanted it shorter", "length")
    return memory


def _check_lines(memory: types.Memory, table: Table) -> None:
    if memory.line & (memory.line - 1):
        raise table.error(f"'line' in {table} is {memory.line} bytes; wanted a power of two", "line")
    for key in _CACHES:
        if getattr(memory, key) % memory.line:
            raise table.error(f"'{key}' in {table} holds no whole lines of {memory.line} bytes", key)
    if memory.cache and (memory.code_cache or memory.data_cache):
        raise table.error(f"'cache' in {table} keeps code and data; wanted no cache of one kind beside it", "cache")
    given = [key for key in ("line", *_CACHES, "prefetch") if key in table]
    if given and not memory.wait_states:
        raise table.error(f"'{given[0]}' in {table} matters where the CPU waits; wanted 'wait_states', too", given[0])


def _fixed(file: Table, memories: tuple[types.Memory, ...]) -> tuple[types.Fixed, ...]:
    tables = file.tables("fixed", _keys(types.Fixed))
    given = [_read(table, types.Fixed, address=Table.address, words=Table.words) for table in tables]
    flashes = [memory for memory in memories if memory.kind == "flash"]
    for one, table in zip(given, tables, strict=True):
        if one.address % 4:
            raise table.error(f"'address' in {table} is {one.address:#x}; wanted a multiple of 4", "address")
        if not any(flash.origin <= one.address and one.end <= flash.end for flash in flashes):
            spans = ", ".join(map(_span, flashes)) or "none"
            raise table.error(f"{_words(one)} lie outside the memories of kind flash ({spans}); move them", "address")
    ordered = sorted(given, key=lambda one: one.address)
    for first, second in pairwise(ordered):
        if second.address < first.end:
            table = tables[given.index(second)]
            raise table.error(f"{_words(second)} overlap {_words(first)}; wanted them apart", "address")
    return tuple(ordered)


def _words(fixed: types.Fixed) -> str:
    return f"fixed words ({fixed.address:#010x} to {fixed.end - 1:#010x})"


def _devices(
    file: Table, cpu: types.Cpu, memories: tuple[types.Memory, ...], console: types.Console
) -> tuple[types.Device, ...]:
    tables = file.tables("device", _keys(types.Device))
    if tables and cpu.arch == "native":
        raise tables[0].error(f"{tables[0]} is not for {cpu.arch}: a process has models of devices alone; leave it out")
    devices = [_device(table, cpu) for table in tables]
    for (first, _), (second, table) in combinations(zip(devices, tables, strict=True), 2):
        if first.name == second.name:
            raise table.error(f"a second device is called '{second.name}'; wanted another name", "name")
    for device, table in zip(devices, tables, strict=True):
        within = next((memory for memory in memories if memory.origin <= device.base < memory.end), None)
        if within is not None:
            raise table.error(
                f"'base' in {table} is {device.base:#010x}, in memory {_span(within)}; wanted the device's registers",
                "base",
            )
        if isinstance(console, types.UartConsole) and device.irq == console.irq:
            raise table.error(f"'irq' in {table} is {device.irq}, the console's; wanted the device's own", "irq")
    return tuple(devices)


def _device(table: Table, cpu: types.Cpu) -> types.Device:
    irq = _between(0, _RULES[cpu.arch].last_irq)
    device = _read(table, types.Device, name=_identifier, base=Table.address, irq=irq)
    if device.base == 0 or device.base % 4:
        raise table.error(f"'base' in {table} is {device.base:#x}; wanted a multiple of 4 above 0", "base")
    if device.irq is not None and not _RULES[cpu.arch].can_wait:
        raise table.error(f"'irq' in {table}: waiting for a device is by polling on {cpu.arch}; leave it out", "irq")
    return device


def _span(memory: types.Memory) -> str:
    return f"'{memory.name}' ({memory.origin:#010x} to {memory.end - 1:#010x})"


def _console(file: Table, cpu: types.Cpu, port: types.Port) -> types.Console:
    table = file.table("console", _keys(types.UartConsole, "kind"))
    kinds: dict[str, Callable[[], types.Console]] = {
        "stdio": types.StdioConsole,
        "semihosting": types.SemihostingConsole,
        "rtt": types.RttConsole,
    }
    kind = table.choice("kind", ("uart", *kinds))
    if (kind == "stdio") != (cpu.arch == "native"):
        wanted = "stdio" if cpu.arch == "native" else "uart"
        raise table.error(f"'kind' in {table} is '{kind}'; {cpu.arch} wants '{wanted}'", "kind")
    if kind not in port.console:
        wanted = " or ".join(f"'{word}'" for word in port.console)
        others = "; ports rtt and semihosting have those" if kind in ("rtt", "semihosting") else ""
        raise table.error(f"'kind' in {table} is '{kind}'; port '{port.name}' has {wanted}{others}", "kind")
    if kind != "uart":
        file.table("console", ("kind",))
        return kinds[kind]()
    return _read(
        table,
        types.UartConsole,
        base=Table.address,
        baud=_between(1200, 20_000_000),
        irq=_between(0, _RULES[cpu.arch].last_irq),
        clock_hz=_between(1, 4_000_000_000),
    )


def _timer(table: Table, cpu: types.Cpu) -> types.Timer:
    kind = table.choice("kind", get_args(types.TimerKind))
    allowed = _RULES[cpu.arch].timers
    if kind not in allowed:
        raise table.error(f"'kind' in {table} is '{kind}'; {cpu.arch} has: {', '.join(allowed)}", "kind")
    for key, kinds in (("hz", ("systick", "mtime", "mcycle")), ("base", ("mtime",))):
        if key in table and kind not in kinds:
            raise table.error(f"'{key}' in {table} is not for a timer of kind '{kind}'; leave it out", key)
    if kind in ("host", "none"):
        return types.Timer(kind, _NANOSECONDS if kind == "host" else 0)
    return types.Timer(kind, table.integer("hz", 1, 4_000_000_000), table.address("base") if kind == "mtime" else None)


def _runs(file: Table, cpu: types.Cpu) -> tuple[types.Run, ...]:
    readers: dict[str, Callable[[Table], types.Run]] = {
        "host": _host_run,
        "qemu": _qemu_run,
        "rtl": _rtl_run,
        "serial": _serial_run,
    }
    table = file.table("run", tuple(readers))
    runs = tuple(readers[kind](table) for kind in table.names())
    if not runs:
        raise table.error("[run] is empty; wanted [run.host], [run.qemu], [run.rtl] or [run.serial]")
    for run in runs:
        if (run.kind == "host") != (cpu.arch == "native"):
            wanted = "[run.host] alone" if cpu.arch == "native" else "[run.qemu], [run.rtl] or [run.serial]"
            raise table.error(f"[run.{run.kind}] is not for {cpu.arch}; wanted {wanted}", run.kind)
        if run.kind == "rtl" and cpu.arch != "rv32":
            raise table.error(f"[run.rtl] is not for {cpu.arch}: its cores are rv32; leave it out", "rtl")
    return runs


def _host_run(table: Table) -> types.HostRun:
    table.table("host", ())
    return types.HostRun()


def _qemu_run(parent: Table) -> types.QemuRun:
    table = parent.table("qemu", _keys(types.QemuRun))
    if ("ram_origin" in table) != ("ram_length" in table):
        given = "ram_origin" if "ram_origin" in table else "ram_length"
        raise table.error(f"{table} has '{given}' alone; wanted both ram_origin and ram_length", given)
    line = _between(0, 15)
    return _read(table, types.QemuRun, system=_identifier, ram_origin=Table.address, ram_length=Table.size, serial=line)


def _rtl_run(parent: Table) -> types.RtlRun:
    table = parent.table("rtl", _keys(types.RtlRun))
    waits = dict.fromkeys(_keys(types.RtlRun)[1:], _between(0, _MOST_BUS_CYCLES))  # all fields but the core
    return _read(table, types.RtlRun, **waits)


def _serial_run(parent: Table) -> types.SerialRun:
    return _read(parent.table("serial", _keys(types.SerialRun)), types.SerialRun, usb=_usb)


def _flash(file: Table, runs: tuple[types.Run, ...]) -> types.Flash | None:
    if "flash" not in file:
        return None
    kinds: dict[str, type[types.Flash]] = {
        "openocd": types.OpenOcdFlash,
        "pyocd": types.PyOcdFlash,
        "command": types.CommandFlash,
    }
    every_key = dict.fromkeys(key for kind in kinds.values() for key in _keys(kind, "tool"))
    tool = file.table("flash", tuple(every_key)).choice("tool", tuple(kinds))
    table = file.table("flash", _keys(kinds[tool], "tool"))
    if not any(run.kind == "serial" for run in runs):
        raise table.error("[flash] without [run.serial]: wanted both, since a flashed board runs by itself")
    return _read(table, kinds[tool], config=_at_least_one, command=_at_least_one)


def _at_least_one(table: Table, key: str) -> tuple[str, ...]:
    values = table.strings(key)
    if not values:
        raise table.error(f"{table} lacks '{key}': wanted an array of strings, not empty")
    return values


def _check_vectors(board: Board) -> None:
    """On Cortex-M the vector table begins the first flash, aligned to its size, rounded up to a power of two."""
    if not board.cpu.arch.startswith("arm"):
        return
    step = 1 << (_VECTOR_BYTES * (_EXCEPTIONS + board.interrupts) - 1).bit_length()
    index, flash = next((i, memory) for i, memory in enumerate(board.memories) if memory.kind == "flash")
    if flash.origin % step:
        raise BoardError(
            f"{board.where('memory', index, 'origin')}: memory {_span(flash)} begins with the vector table; "
            f"wanted a multiple of {step:#x} with interrupts up to {board.interrupts - 1}"
        )


def _check_fixed(board: Board) -> None:
    """Fixed words lie behind the vector table of a Cortex-M, which begins the first flash."""
    flash = next((memory for memory in board.memories if memory.kind == "flash"), None)
    if flash is None or not board.cpu.arch.startswith("arm"):
        return
    end = flash.origin + _VECTOR_BYTES * (_EXCEPTIONS + board.interrupts)
    for one in board.fixed_in(flash):
        if one.address < end:
            index = [row["address"] for row in board.source.data["fixed"]].index(one.address)
            raise BoardError(
                f"{board.where('fixed', index, 'address')}: {_words(one)} overlap the vector table "
                f"({flash.origin:#010x} to {end - 1:#010x}); wanted them behind it"
            )


def _check_accelerator_memories(board: Board) -> None:
    """Under QEMU a model of a device reaches only the RAM that is a shared file; devices of a real board reach what the
    board file says."""
    for run in board.runs:
        if not isinstance(run, types.QemuRun) or board.devices:
            continue
        origin, length = run.ram_origin or 0, run.ram_length or 0
        for index, memory in enumerate(board.memories):
            if memory.accelerator and not (origin <= memory.origin and memory.end <= origin + length):
                ram = f"{origin:#010x} to {origin + length - 1:#010x}" if length else "no ram_origin given"
                raise BoardError(
                    f"{board.where('memory', index, 'accelerator')}: memory {_span(memory)} is for an "
                    f"accelerator but lies outside QEMU's shared RAM ({ram}); move it, or correct [run.qemu]"
                )


# Finding board files: those that come with uaccel by name, a user's own by path.


def load_board(name_or_path: str | Path) -> Board:
    """A board by its name, or by the path of its file (recognised by a separator or by ``.toml``)."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or os.sep in text or text.endswith(".toml"):
        return board_from_source(read_toml(Path(name_or_path)))
    files = _bundled_files()
    if text not in files:
        raise BoardError(
            f"no board is called {text!r}{did_you_mean(text, files)} (known: {', '.join(files)}; "
            "'uaccel boards' tells their cores and which are emulated; a board of your own is given as the path of its "
            ".toml file)"
        )
    return board_from_source(read_toml(files[text]))


def available_boards() -> list[Board]:
    """The boards that come with uaccel, by name."""
    return [board_from_source(read_toml(file)) for file in _bundled_files().values()]


def _bundled_files() -> dict[str, Path]:
    return {file.stem: file for file in sorted(data_dir("boards").glob("*.toml"))}
