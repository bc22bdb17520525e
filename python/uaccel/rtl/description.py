"""``rtl/rtl.toml``: what an accelerator's Verilog consists of, and what its ports are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_toml
from uaccel.basics.suggest import did_you_mean
from uaccel.errors import AcceleratorError
from uaccel.resources import page
from uaccel.rtl.adapters import INSTRUCTIONS, MEMORY, REGISTERS, UNIT, Adapter

FILE: Final = "rtl.toml"
MOST_LATENCY: Final = 1000


@dataclass(frozen=True)
class Bus:
    """A port of the module: a bus, the prefix of its signals, and the names of those that are called otherwise."""

    bus: str
    prefix: str
    ports: Mapping[str, str] = field(default_factory=dict)
    latency: int = 0
    flash: tuple[int, int] = (0, 0)
    """Where device constants lie: cycles that a first word takes longer, and each further one; 0: in no flash."""
    words: bool = False
    """Whether addresses count words of the bus, as Wishbone's do."""


@dataclass(frozen=True)
class Rtl:
    """``folder`` holds the file. ``clocks``: cycles of the device, and how many the CPU has meanwhile."""

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
    registers: Bus | None
    memories: tuple[Bus, ...]
    parameters: Mapping[str, int | str]
    generate: tuple[str, ...]
    packages: tuple[str, ...]
    """Of Python, that the generator needs, as pip takes them."""
    base: Path | None
    """The ``rtl/`` of another accelerator, whose files this one's lie upon when the generator runs."""
    cpp: tuple[str, ...]
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    verilator: tuple[str, ...]

    @property
    def folders(self) -> list[Path]:
        """Where the RTL comes from; what lies in a later one takes the place of what lies in an earlier one."""
        return [self.folder] if self.base is None else [self.base, self.folder]

    @property
    def is_unit(self) -> bool:
        """Whether it is a core's, for custom instructions."""
        return self.registers is not None and self.registers.bus == INSTRUCTIONS


def has_rtl(folder: Path) -> bool:
    """Of an accelerator: whether it brings RTL."""
    return (folder / "rtl" / FILE).is_file()


def read_rtl(folder: Path) -> Rtl:
    """From an accelerator's ``folder``; :class:`AcceleratorError` names the file, the key and what was wanted."""
    path = folder / "rtl" / FILE
    try:
        table = parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AcceleratorError(
            f"cannot read {path}: {error.strerror}; an accelerator with RTL describes it there ({page('rtl.md')})"
        ) from error
    except ValueError as error:
        raise AcceleratorError(f"{path} is no TOML file: {error}") from error
    return _Reader(path, table).rtl()


class _Reader:
    """One file, checked key by key."""

    _KNOWN = ("top", "sources", "clock", "reset", "reset_active", "interrupt", "busy", "clocks", "registers", "memory")
    _UNIT = ("prefix", "ports")
    _UNIT_REGISTERS: Final[Mapping[str, int]] = {"window": 16, "start": 8}
    """As firmware/rtl/uaccel_rtl_unit.h has them."""
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

    def _bus(self, table: Any, adapters: Mapping[str, Adapter], where: str) -> Bus:
        if not isinstance(table, Mapping):
            raise self._wrong(where, table, 'a table, such as bus = "axi4" and prefix = "m_axi_"')
        if where == "memory":
            self._only(table, self._BUS, "memory.")
        bus = table.get("bus")
        if not isinstance(bus, str) or bus not in adapters:
            raise self._wrong(f"{where}.bus", bus, f"one of {', '.join(adapters)}")
        prefix, ports = self._signals(table, adapters[bus], where)
        latency = self._number(table, "latency", 2, 0, MOST_LATENCY)
        return Bus(bus, prefix, ports, latency, self._flash(table, adapters[bus]), bool(table.get("words", False)))

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

    def _unit(self) -> Bus | None:
        if INSTRUCTIONS not in self._table:
            return None
        for key in ("registers", "memory"):
            if key in self._table:
                raise self._wrong(key, self._table[key], f"nothing beside [{INSTRUCTIONS}]: the core has the buses")
        table = self._section(INSTRUCTIONS)
        self._only(table, self._UNIT, f"{INSTRUCTIONS}.")
        return Bus(INSTRUCTIONS, *self._signals(table, UNIT, INSTRUCTIONS))

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
