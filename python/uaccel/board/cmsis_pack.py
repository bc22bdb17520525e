"""Reads chips out of CMSIS-Packs: their core, flash and RAM, for a board file."""

from __future__ import annotations

import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from xml.parsers import expat

from uaccel.board.chips import CLOCK_HZ, Chip, core_named
from uaccel.errors import BoardError, need
from uaccel.util import incoming
from uaccel.util.text import did_you_mean

# The description in a CMSIS-Pack (``.pdsc``): its devices, with their processors, memories and flash algorithms.
#
# Packs come from anywhere: document types are refused, so that no entity is expanded, and what is kept is bounded.

Attributes = dict[str, str]

# Nested elements. Facts of one hold for those inside it, unless these state them anew.
LEVELS: Final = ("family", "subFamily", "device", "variant")
FACTS: Final = ("processor", "memory", "algorithm")
MOST_ELEMENTS: Final = 200_000
DEEPEST: Final = 32


class PdscError(Exception):
    """Says what is wrong with the description."""


@dataclass
class PackDevice:
    """Describes a device, a variant of one, or a family; ``parent`` is the level around it."""

    name: str
    parent: PackDevice | None = None
    facts: list[tuple[str, Attributes]] = field(default_factory=list)

    def all_of(self, kind: str) -> Iterator[Attributes]:
        """All facts of a kind, those of outer levels first, so that later ones override them."""
        if self.parent is not None:
            yield from self.parent.all_of(kind)
        yield from (attributes for fact, attributes in self.facts if fact == kind)


def devices_of(description: bytes) -> dict[str, PackDevice]:
    """Devices and variants by name; :class:`PdscError` where it cannot be read."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(description, True)
    except expat.ExpatError as error:
        raise PdscError(f"it is no XML ({error})") from error
    except (ValueError, LookupError) as error:  # of an encoding that there is none of
        raise PdscError(f"its encoding cannot be read ({error})") from error
    return reader.devices


class _Reader:
    def __init__(self) -> None:
        self.devices: dict[str, PackDevice] = {}
        self._path: list[str] = []
        self._open: list[PackDevice] = []
        self._kept = 0

    def doctype(self, *_: object) -> None:
        raise PdscError("it declares a document type, which no pack needs")

    def start(self, tag: str, attributes: Attributes) -> None:
        above = self._path[-1] if self._path else ""
        self._path.append(tag)
        need(len(self._path) <= DEEPEST, f"its elements lie more than {DEEPEST} deep", PdscError)
        if tag in LEVELS and above in ("devices", *LEVELS):
            self._keep()
            self._open.append(PackDevice(_name(tag, attributes), self._open[-1] if self._open else None))
            if tag in ("device", "variant"):
                self.devices.setdefault(self._open[-1].name, self._open[-1])
        elif tag in FACTS and above in LEVELS and self._open:
            self._keep()
            self._open[-1].facts.append((tag, attributes))

    def end(self, tag: str) -> None:
        self._path.pop()
        if self._open and tag in LEVELS and (self._path[-1] if self._path else "") in ("devices", *LEVELS):
            self._open.pop()

    def _keep(self) -> None:
        self._kept += 1
        need(self._kept <= MOST_ELEMENTS, f"it has more than {MOST_ELEMENTS:,} elements about devices", PdscError)


def _name(tag: str, attributes: Attributes) -> str:
    """The name of a level, as debuggers use it; that of a device must be harmless in files and on terminals."""
    name = attributes.get("Dname") or attributes.get("Dvariant", "")
    plain = name.isascii() and name.isprintable() and len(name) <= 100 and not set(name) & set("\"'\\")
    if tag in ("device", "variant") and not (name and plain):
        raise PdscError(f"it has a device of the name {name[:80]!r}")
    return name


# Chips out of packs: of a file that a user names, and of those that pyOCD has installed.

LARGEST: Final = 64 << 20  # Bytes of a description; those of the largest families have ten million.
MOST_FILES: Final = 100_000
SHOWN: Final = 8  # Devices that a message lists.
KIB: Final = 1 << 10
LEAST_FLASH, LEAST_RAM = 8 * KIB, 2 * KIB  # Smaller areas hold option bytes, or are backup RAM.
ADDRESSES: Final = 1 << 32

Span = tuple[int, int]  # Origin and length.

_YES: Final = ("1", "true")
_PLAIN: Final = {
    "Cortex-M0": "cortex-m0",
    "SC000": "cortex-m0",
    "Cortex-M0+": "cortex-m0plus",
    "Cortex-M1": "cortex-m0",
    "Cortex-M3": "cortex-m3",
    "SC300": "cortex-m3",
}
# Cores by their floating point unit: none, single precision, single and double.
_BY_FPU: Final = {
    "Cortex-M4": ("cortex-m4", "cortex-m4f", "cortex-m4f"),
    "Cortex-M7": ("cortex-m7", "cortex-m7f", "cortex-m7fd"),
}
_MAINLINE: Final = ("Cortex-M33", "Cortex-M35P", "Star-MC1", "ARMV8MML")
_HELIUM: Final = ("Cortex-M55", "Cortex-M85")


def chip_in_pack(file: Path, name: str, core: str) -> Chip:
    """A chip in a pack that the user names; without a name the only device that the pack has."""
    devices = _devices(file)
    need(devices, f"{file} describes no device; wanted a pack of a chip's maker (a DFP)", BoardError)
    if not name and len(devices) > 1:
        raise BoardError(f"{file} has {len(devices)} devices: {_some(devices)}; name one with --target")
    device = _find(devices, name) if name else next(iter(devices.values()))
    if device is None:
        near = did_you_mean(target_name(name), map(target_name, devices)) or f" (it has {_some(devices)})"
        raise BoardError(f"no device in {file} is called {name!r}{near}")
    return replace(_chip(file, device, core), pack=str(file))


def chip_in_installed_packs(name: str, core: str) -> Chip | None:
    """A chip in the packs that 'pyocd pack install' fetched, the newest first; unreadable packs are skipped."""
    for file in _installed():
        try:
            device = _find(_devices(file), name)
        except BoardError:
            continue
        if device is not None:
            return _chip(file, device, core)
    return None


def target_name(name: str) -> str:
    """A device's name as pyOCD spells targets."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower())


def _some(devices: dict[str, PackDevice]) -> str:
    shown = ", ".join(list(devices)[:SHOWN])
    return f"{shown} and {len(devices) - SHOWN} more" if len(devices) > SHOWN else shown


def _find(devices: dict[str, PackDevice], name: str) -> PackDevice | None:
    wanted = target_name(name)
    return next((device for known, device in devices.items() if target_name(known) == wanted), None)


def _installed() -> Iterator[Path]:
    files = packs_folder().glob("*/*/*.pack")
    numbers = {file: [int(number) for number in re.findall(r"\d{1,9}", file.stem)] for file in files}
    yield from sorted(numbers, key=lambda file: (numbers[file], str(file)), reverse=True)


def packs_folder() -> Path:
    """The folder in which pyOCD's pack manager keeps packs."""
    name, home = "cmsis-pack-manager", Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / name / name
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / name
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / name


def _devices(file: Path) -> dict[str, PackDevice]:
    try:
        return devices_of(_description(file))
    except PdscError as error:
        raise BoardError(f"{file}: the description in it cannot be used: {error}; wanted a CMSIS-Pack") from error


def _description(file: Path) -> bytes:
    wanted = "; wanted a CMSIS-Pack, which is a zip file with a description (.pdsc)"
    try:
        with incoming.opened(file, incoming.ARCHIVE) as pack, zipfile.ZipFile(pack) as archive:
            entries = archive.infolist()
            found = [
                entry for entry in entries if entry.filename.lower().endswith(".pdsc") and "/" not in entry.filename
            ]
            if len(entries) > MOST_FILES:
                raise BoardError(f"{file} has {len(entries):,} files; wanted at most {MOST_FILES:,}")
            if len(found) != 1:
                raise BoardError(f"{file} has {len(entries)} files, {len(found)} of them descriptions{wanted}")
            if found[0].flag_bits & 1:
                raise BoardError(f"{file}: the description in it is encrypted{wanted}")
            with archive.open(found[0]) as stream:
                text = stream.read(LARGEST + 1)
    except OSError as error:
        raise BoardError(f"cannot read {file}: {error.strerror or error}{wanted}") from error
    # RuntimeError: zipfile's word for a method of compression that it does not know
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise BoardError(f"cannot read {file}: {' '.join(str(error).split()) or 'it ends early'}{wanted}") from error
    need(len(text) <= LARGEST, f"{file}: the description in it has more than {LARGEST >> 20} MiB{wanted}", BoardError)
    return text


def _chip(file: Path, device: PackDevice, core: str) -> Chip:
    try:
        part, cpu = _processor(device, core)
        memories = [memory for memory in _memories(device) if memory.get("Pname") in (None, part)]
        code, ram = _flash(device, memories), _ram(memories)
    except PdscError as error:
        raise BoardError(f"{file}: device {device.name} {error}") from error
    about, target = f"{device.name}, as {file.name} has it", target_name(device.name)
    return Chip(target, about.replace('"', "'"), cpu, CLOCK_HZ, code, tuple(ram), target, guessed_clock=True)


def _processor(device: PackDevice, core: str) -> tuple[str | None, str]:
    """The name of the device's processor, where it has one, and its core by our name. ``core`` chooses among several
    processors, and stands in for a single one that is unknown here."""
    parts: dict[str | None, Attributes] = {}
    for said in device.all_of("processor"):
        parts[said.get("Pname")] = {**parts.get(said.get("Pname"), {}), **said}
    if core:
        core_named(core)
        if len(parts) < 2:
            return next(iter(parts), None), core
    cores = {part: _core(said) for part, said in parts.items()}
    ours = {part: cpu for part, cpu in cores.items() if cpu is not None and core in ("", cpu)}
    if not ours:
        has = ", ".join(said.get("Dcore", "none")[:40] for said in parts.values()) or "none"
        raise PdscError(f"has no processor that {core or 'uaccel'} is for ({has}); say with --core which is near")
    if len(set(ours.values())) > 1:
        raise PdscError(f"has several processors; choose one with --core: {' or '.join(dict.fromkeys(ours.values()))}")
    return next(iter(ours.items()))


def _core(said: Attributes) -> str | None:
    name, fpu = said.get("Dcore", ""), said.get("Dfpu", "")
    if name in _BY_FPU:
        return _BY_FPU[name][{"FPU": 1, "1": 1, "SP_FPU": 1, "DP_FPU": 2}.get(fpu, 0)]
    if name in _MAINLINE:
        if said.get("Ddsp") != "DSP":
            return "cortex-m33"
        return "cortex-m33d" if fpu in ("", "0", "NO_FPU") else "cortex-m33f"
    if name in _HELIUM:
        return "cortex-m55" if said.get("Dmve") == "FP_MVE" else None
    return _PLAIN.get(name)


def _memories(device: PackDevice) -> list[Attributes]:
    """The memories of a device, by name or, in old packs, by kind and number; the innermost level wins. Aliases, which
    are other memories at a second address, are left out."""
    found: dict[tuple[str, str | None], Attributes] = {}
    for number, said in enumerate(device.all_of("memory")):
        found[said.get("name") or said.get("id") or str(number), said.get("Pname")] = said
    return [said for said in found.values() if "alias" not in said]


def _access(said: Attributes) -> str:
    name = said.get("id", "")
    return said.get("access", "rx" if "ROM" in name else "rwx" if "RAM" in name else "")


def _flash(device: PackDevice, memories: list[Attributes]) -> Span:
    """The flash for code: memory that an algorithm of the pack can write, joined where it touches.

    It is the area that the pack marks for start-up, else the default one, else the lowest.
    """
    areas = [(said, _span(said)) for said in memories if "w" not in _access(said) and _access(said)]
    writers = [said for said in device.all_of("algorithm") if said.get("style", "Keil").lower() == "keil"]
    shared = [(said, _overlap(span, _span(writer))) for said, span in areas for writer in writers]
    whole = [span for span in joined([span for _, span in shared]) if span[1] >= LEAST_FLASH]
    if not whole:
        raise PdscError("has no flash that an algorithm of the pack writes; use 'uaccel new board NAME --like BOARD'")
    for key in ("startup", "default"):
        for said, (origin, length) in shared:
            inside = [span for span in whole if span[0] <= origin < span[0] + span[1]]
            if length and said.get(key) in _YES and inside:
                return inside[0]
    return whole[0]


def _ram(memories: list[Attributes]) -> list[Span]:
    """The areas of RAM, the largest first; if the pack marks some as usable by default, these alone."""
    areas = [said for said in memories if {"r", "w"} <= set(_access(said)) and "p" not in _access(said)]
    usual = [said for said in areas if said.get("default") in _YES] or areas
    found = [span for span in joined([_span(said) for said in usual]) if span[1] >= LEAST_RAM]
    need(found, "has no RAM that the pack tells of; use 'uaccel new board NAME --like BOARD'", PdscError)
    return sorted(found, key=lambda span: -span[1])


def _span(said: Attributes) -> Span:
    origin, length = (_number(said.get(key, "")) for key in ("start", "size"))
    need(origin + length <= ADDRESSES, f"has {length} bytes at {origin:#x}, beyond 32 bits", PdscError)
    return origin, length


def _number(text: str) -> int:
    text = text.strip()
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19}", text, re.ASCII):
        raise PdscError(f"has a memory or algorithm of {text[:40]!r} where a number belongs")
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def _overlap(one: Span, other: Span) -> Span:
    begin, end = max(one[0], other[0]), min(sum(one), sum(other))
    return begin, max(0, end - begin)


def joined(spans: list[Span]) -> list[Span]:
    """Spans joined where they touch or overlap, in order. Origins are rounded up to 16 bytes, as the linker script
    needs them, and lengths down to whole KiB, as board files write them."""
    found: list[Span] = []
    for origin, length in sorted(span for span in spans if span[1]):
        if found and origin <= sum(found[-1]):
            found[-1] = found[-1][0], max(sum(found[-1]), origin + length) - found[-1][0]
        else:
            found.append((origin, length))
    rounded = [(-(-origin // 16) * 16, origin + length) for origin, length in found]
    return [(origin, (end - origin) & ~(KIB - 1)) for origin, end in rounded if end > origin]
