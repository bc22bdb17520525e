"""Reads ``rtl.toml``, which describes an accelerator's Verilog, and finds or generates its sources."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uaccel.build.built_from import mentioned
from uaccel.build.children import run
from uaccel.build.doctor import PythonPackage, require
from uaccel.errors import AcceleratorError, ToolError
from uaccel.util import incoming
from uaccel.util.cache import Key, cache_of_user, folder_digest, installed_version
from uaccel.util.files import page, parse_toml
from uaccel.util.reads import READS, add_true, find_true
from uaccel.util.text import did_you_mean
from uaccel.util.traced import command_for

# Buses that the simulation speaks: the signals of each, and the C++ class that is the other side.


@dataclass(frozen=True)
class Adapter:
    """Describes the other side of a bus: a C++ template, and the signals that it needs.

    ``optional`` are signals that a module may leave out, with the values that they have then. ``data`` is the signal
    whose width is the bus's; buses without one are 32 bits wide.
    """

    header: str
    template: str
    signals: tuple[str, ...]
    optional: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    # Further arguments of the template: ``bytes``, ``latency``, ``shift``, or ``first`` and ``next`` of a flash.
    arguments: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.signals, *self.optional)


_AXI4_READ = ("arvalid", "arready", "araddr", "arlen", "rvalid", "rready", "rdata", "rlast")
_AXI4_WRITE = ("awvalid", "awready", "awaddr", "awlen", "wvalid", "wready", "wdata", "wlast", "bvalid", "bready")
_AXI4_REST = {
    "arid": "0",
    "arsize": "SIZE",
    "arburst": "1",
    "rid": "0",
    "rresp": "0",
    "awid": "0",
    "awsize": "SIZE",
    "awburst": "1",
    "wstrb": "~0ull",
    "bid": "0",
    "bresp": "0",
}
_LITE = ("awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "bvalid", "bready")
_LITE_READ = ("arvalid", "arready", "araddr", "rvalid", "rready", "rdata")
_WISHBONE = ("cyc", "stb", "we", "adr", "dat_w", "dat_r", "ack")
_STREAM = ("tvalid", "tready", "tdata", "tlast")

REGISTERS: Final[Mapping[str, Adapter]] = {
    "axi4-lite": Adapter(
        "uaccel_rtl_axi4_lite.h",
        "Axi4LiteRegisters",
        (*_LITE, *_LITE_READ),
        {"wstrb": "0", "awprot": "0", "arprot": "0", "bresp": "0", "rresp": "0"},
    ),
    "apb": Adapter(
        "uaccel_rtl_apb.h",
        "ApbRegisters",
        ("psel", "penable", "pwrite", "paddr", "pwdata", "prdata"),
        {"pready": "1", "pslverr": "0"},
    ),
    "wishbone": Adapter(
        "uaccel_rtl_wishbone.h", "WishboneRegisters", _WISHBONE, {"sel": "0", "err": "0"}, arguments=("shift",)
    ),
    "axi-stream": Adapter(
        "uaccel_rtl_stream.h",
        "StreamRegisters",
        (*(f"s_axis_{signal}" for signal in _STREAM), *(f"m_axis_{signal}" for signal in _STREAM)),
        {"s_axis_tkeep": "0", "m_axis_tkeep": "~0ull"},
        "s_axis_tdata",
        ("bytes",),
    ),
}
INSTRUCTIONS: Final = "instructions"
# The bus of custom instructions: a core's port for commands and responses.
UNIT: Final = Adapter(
    "uaccel_rtl_unit.h",
    "UnitRegisters",
    (
        *("cmd_valid", "cmd_ready", "cmd_payload_function_id", "cmd_payload_inputs_0", "cmd_payload_inputs_1"),
        *("rsp_valid", "rsp_ready", "rsp_payload_outputs_0"),
    ),
)
MEMORY: Final[Mapping[str, Adapter]] = {
    "axi4": Adapter(
        "uaccel_rtl_axi4.h",
        "Axi4Memory",
        (*_AXI4_READ, *_AXI4_WRITE),
        _AXI4_REST,
        "rdata",
        ("bytes", "latency", "first", "next"),
    ),
    "wishbone": Adapter(
        "uaccel_rtl_wishbone.h",
        "WishboneMemory",
        _WISHBONE,
        {"sel": "~0ull", "err": "0"},
        "dat_r",
        ("bytes", "latency", "shift"),
    ),
    "port": Adapter(
        "uaccel_rtl_port.h",
        "PortMemory",
        ("valid", "ready", "addr", "rvalid", "rdata"),
        {"write": "0", "wdata": "0", "strobe": "~0ull", "error": "0"},
        "rdata",
        ("bytes", "latency"),
    ),
}


# ``rtl/rtl.toml``: an accelerator's Verilog files, its ports, and how it is built.

FILE: Final = "rtl.toml"
MOST_LATENCY: Final = 1000


@dataclass(frozen=True)
class RtlBus:
    """Describes a bus of the module: the prefix of its signals, and the names of those that are called otherwise."""

    bus: str
    prefix: str
    ports: Mapping[str, str] = field(default_factory=dict)
    latency: int = 0
    # If device constants lie in flash: cycles that a first word takes longer, and each further one. 0: no flash.
    flash: tuple[int, int] = (0, 0)
    words: bool = False  # Whether addresses count words of the bus, as Wishbone's do.


@dataclass(frozen=True)
class Rtl:
    """Holds what ``rtl.toml`` in ``folder`` says. ``clocks``: cycles of the device, and of the CPU in the same time."""

    folder: Path
    top: str
    sources: tuple[str, ...]
    clock: str
    reset: str
    reset_active: int
    interrupt: str
    busy: str
    clocks: tuple[int, int]
    window: int
    start: int
    version: int
    registers: RtlBus | None
    memories: tuple[RtlBus, ...]
    parameters: Mapping[str, int | str]
    generate: tuple[str, ...]
    packages: tuple[str, ...]  # Python packages that the generator needs, as pip takes them.
    base: Path | None  # The ``rtl/`` of another accelerator, below whose files this one's are laid for the generator.
    cpp: tuple[str, ...]
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    verilator: tuple[str, ...]

    @property
    def folders(self) -> list[Path]:
        """The folders that the RTL comes from; files of a later one replace those of an earlier one."""
        return [self.folder] if self.base is None else [self.base, self.folder]

    @property
    def is_unit(self) -> bool:
        """Whether it is a unit of a core, for custom instructions."""
        return self.registers is not None and self.registers.bus == INSTRUCTIONS


def has_rtl(folder: Path) -> bool:
    """Whether the accelerator in a folder brings RTL."""
    return (folder / "rtl" / FILE).is_file()


def read_rtl(folder: Path) -> Rtl:
    """Read the description of an accelerator; :class:`AcceleratorError` names the file, the key and what was wanted."""
    path = folder / "rtl" / FILE
    about = f"an accelerator with RTL describes it there ({page('rtl.md')})"
    with incoming.reading(AcceleratorError, path, about, "no TOML file"):
        table = parse_toml(incoming.read_text(path))
    return _Reader(path, table).rtl()


class _Reader:
    """Checks one file key by key."""

    _KNOWN = ("top", "sources", "clock", "reset", "reset_active", "interrupt", "busy", "clocks", "registers", "memory")
    _UNIT = ("prefix", "ports")
    # As firmware/rtl/uaccel_rtl_unit.h has them.
    _UNIT_REGISTERS: Final[Mapping[str, int]] = {"window": 16, "start": 8}
    _MORE = ("parameters", "generate", "packages", "base", "cpp", "flags", "libraries", "verilator", INSTRUCTIONS)
    _BUS = ("bus", "prefix", "ports", "latency", "words", "flash")
    _REGISTERS = (*_BUS, "window", "start", "version")

    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        self._path = path
        self._table = table
        self._only(table, (*self._KNOWN, *self._MORE), "")

    def rtl(self) -> Rtl:
        reset = self._text("reset", "rst")
        unit = self._unit()
        registers = self._UNIT_REGISTERS if unit is not None else self._section("registers")
        self._only(registers, self._REGISTERS, "registers.")
        own = self._words("cpp")
        if not registers and not own:
            raise self._wrong("registers", None, "a table [registers] with bus, window and start, or cpp = [...]")
        memory = self._table.get("memory", [])
        memories = [memory] if isinstance(memory, Mapping) else memory
        return Rtl(
            folder=self._path.parent,
            top=self._text("top"),
            sources=self._words("sources") or ("*.v", "*.sv"),
            clock=self._text("clock", "clk"),
            reset=reset,
            reset_active=self._number(self._table, "reset_active", int(not reset.endswith("n")), 0, 1),
            interrupt=self._text("interrupt", ""),
            busy=self._text("busy", ""),
            clocks=self._clocks(),
            window=self._number(registers, "window", None if registers else 0, 0, 1 << 24),
            start=self._number(registers, "start", None if registers else 0, 0, 1 << 24),
            version=self._number(registers, "version", 4, 0, 1 << 24),
            registers=unit or (self._bus(registers, REGISTERS, "registers") if registers else None),
            memories=tuple(self._bus(entry, MEMORY, "memory") for entry in memories),
            parameters=self._section("parameters"),
            generate=self._words("generate"),
            packages=self._words("packages"),
            base=self._base(),
            cpp=own,
            flags=self._words("flags"),
            libraries=self._words("libraries"),
            verilator=self._words("verilator"),
        )

    def _bus(self, table: Any, adapters: Mapping[str, Adapter], where: str) -> RtlBus:
        if not isinstance(table, Mapping):
            raise self._wrong(where, table, 'a table, such as bus = "axi4" and prefix = "m_axi_"')
        if where == "memory":
            self._only(table, self._BUS, "memory.")
        bus = table.get("bus")
        if not isinstance(bus, str) or bus not in adapters:
            raise self._wrong(f"{where}.bus", bus, f"one of {', '.join(adapters)}")
        prefix, ports = self._signals(table, adapters[bus], where)
        latency = self._number(table, "latency", 2, 0, MOST_LATENCY)
        return RtlBus(bus, prefix, ports, latency, self._flash(table, adapters[bus]), bool(table.get("words", False)))

    def _flash(self, table: Mapping[str, Any], adapter: Adapter) -> tuple[int, int]:
        flash = table.get("flash")
        if flash is None:
            return 0, 0
        pair = flash if isinstance(flash, list) and len(flash) == 2 else []
        if "first" not in adapter.arguments or not pair or not all(_is_number(n, 1, MOST_LATENCY) for n in pair):
            raise self._wrong(
                "flash", flash, f"of an axi4 two numbers from 1 to {MOST_LATENCY}: cycles of a first word, and of more"
            )
        return pair[0], pair[1]

    def _unit(self) -> RtlBus | None:
        if INSTRUCTIONS not in self._table:
            return None
        for key in ("registers", "memory"):
            if key in self._table:
                raise self._wrong(key, self._table[key], f"nothing beside [{INSTRUCTIONS}]: the core has the buses")
        table = self._section(INSTRUCTIONS)
        self._only(table, self._UNIT, f"{INSTRUCTIONS}.")
        return RtlBus(INSTRUCTIONS, *self._signals(table, UNIT, INSTRUCTIONS))

    def _signals(self, table: Mapping[str, Any], adapter: Adapter, where: str) -> tuple[str, Mapping[str, str]]:
        prefix, ports = table.get("prefix", ""), table.get("ports", {})
        if not isinstance(prefix, str):
            raise self._wrong(f"{where}.prefix", prefix, "what the names of its signals begin with")
        if not isinstance(ports, Mapping) or not all(isinstance(name, str) for name in ports.values()):
            raise self._wrong(f"{where}.ports", ports, 'names, such as ack = "wb_ack_o"')
        self._only(ports, adapter.all, f"{where}.ports.")
        return prefix, ports

    def _base(self) -> Path | None:
        name = self._text("base", "")
        folder = (self._path.parent / name).resolve()
        if name and not ((folder / FILE).is_file() and self._table.get("generate")):
            raise self._wrong("base", name, f"a folder with {FILE}, as seen from this one, and generate = [...]")
        return folder if name else None

    def _clocks(self) -> tuple[int, int]:
        clocks = self._table.get("clocks", [1, 1])
        if not isinstance(clocks, list) or len(clocks) != 2 or not all(_is_number(n, 1, 1 << 16) for n in clocks):
            raise self._wrong("clocks", clocks, "two numbers: cycles of the device, and of the CPU in the same time")
        return clocks[0], clocks[1]

    def _text(self, key: str, default: str | None = None) -> str:
        value = self._table.get(key, default)
        if not isinstance(value, str) or (value == "" and default != ""):
            wanted = {"top": "the name of the top module", "base": "a folder"}
            raise self._wrong(key, value, wanted.get(key, "the name of a port"))
        return value

    def _words(self, key: str) -> tuple[str, ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
            raise self._wrong(key, value, "a list of words")
        return tuple(value)

    def _section(self, key: str) -> Mapping[str, Any]:
        value = self._table.get(key, {})
        if not isinstance(value, Mapping):
            raise self._wrong(key, value, f"a table [{key}]")
        return value

    def _number(self, table: Mapping[str, Any], key: str, default: int | None, low: int, high: int) -> int:
        value = table.get(key, default)
        if not _is_number(value, low, high):
            raise self._wrong(key, value, f"a number from {low} to {high}")
        return int(value)

    def _only(self, table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in known:
                raise AcceleratorError(
                    f"{self._path}: unknown key '{where}{key}'{did_you_mean(key, known)}; known: {', '.join(known)}"
                )

    def _wrong(self, key: str, value: Any, wanted: str) -> AcceleratorError:
        seen = "is missing" if value is None else f"is {value!r}"
        return AcceleratorError(f"{self._path}: {key} {seen}; wanted {wanted}")


def _is_number(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


# Messages of hardware tools, cut to one line.


def reason(words: str) -> str:
    """The first line that tells what is wrong, else the last one."""
    lines = [line.strip() for line in words.strip().splitlines() if line.strip()] or ["no message"]
    return _first(lines, ("%Error", " error: ", "undefined reference", "Error: ", "ERROR: ")) or lines[-1]


def _first(lines: Iterable[str], marks: tuple[str, ...]) -> str:
    return next((line for line in lines if any(mark in line for mark in marks)), "")


# Verilog sources: those of the ``rtl/`` folder, or what its generator writes, kept by content.

KIND: Final = "verilog"


def content_of(rtl: Rtl) -> list[Any]:
    """What the RTL is made of, for keys: its folders, files elsewhere that they name, and its generator's packages."""
    packages = [[text, installed_version(PythonPackage(text, "", "").name)] for text in rtl.packages]
    return [*map(folder_digest, rtl.folders), sorted(mentioned(rtl.folders).items()), packages]


def sources_of(rtl: Rtl, name: str, folder: Path, progress: Callable[[str], None]) -> list[Path]:
    """The Verilog of accelerator ``name``; what a generator writes goes below ``folder``."""
    if not rtl.generate:
        return _found(rtl, rtl.folder)
    packages = [PythonPackage(text, "", f"the RTL of {name}") for text in rtl.packages]
    key = Key(KIND).add("rtl", [name, *content_of(rtl)]).add("python", sys.version)
    cache = cache_of_user()
    entry = find_true(cache, key)
    if entry is not None:
        for file in entry.manifest["files"].keys() - {READS}:
            incoming.copy(entry.path(file), folder / file)
        entry.close()
        return _found(rtl, folder)
    for package in packages:
        require(package)
    progress(f"generate the RTL of {name}")
    copy = folder / "rtl"
    for one in rtl.folders:
        incoming.copy_folder(one, copy, "__pycache__")
    rows = _generate(rtl, name, copy)
    made = _found(rtl, copy)
    if cache is not None and all(path.parent == copy for path in made):
        kept = add_true(cache, key, {path.name: path for path in made}, f"Verilog of {name}", rows)
        if kept is not None:
            kept.close()
    return made


def _generate(rtl: Rtl, name: str, folder: Path) -> Mapping[str, str]:
    """Runs the generator and returns what it read."""
    told = folder.parent / "reads.json"
    command, rows = command_for(list(rtl.generate), told)
    done = run(command, cwd=folder)
    if done.returncode != 0:
        raise ToolError(f"the RTL of {name} in {rtl.folder}: the generator failed: {reason(done.stdout)}")
    return rows or json.loads(incoming.read_bytes(told))


def _found(rtl: Rtl, folder: Path) -> list[Path]:
    found = [path for pattern in rtl.sources for path in sorted(folder.glob(pattern))]
    if not found:
        raise AcceleratorError(
            f"{rtl.folder}: no file is any of {', '.join(rtl.sources)}; name the Verilog in 'sources'"
        )
    return found
