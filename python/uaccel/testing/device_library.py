"""Loads a device model or RTL as a library in this process: registers by offset, memory by address, engine spans.

The structures and callbacks below mirror ``uaccel_device.h``, field by field and in its order.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uaccel.build.rtl.build import device_library
from uaccel.errors import DeviceError
from uaccel.util import incoming
from uaccel.util.files import data_dir

STRICT = ("-std=c99", "-O2", "-g", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")

_READ = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_INTERRUPT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)
_SPAN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64)
_CONSTANT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint32)
_RESET = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_REGISTER_READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_REGISTER_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_CYCLES = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_INJECT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_TICK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
_CLOSE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_LAYER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)


class _Bus(ctypes.Structure):
    _fields_ = (
        ("context", ctypes.c_void_p),
        ("read", _READ),
        ("write", _READ),
        ("interrupt", _INTERRUPT),
        ("span", _SPAN),
        ("grants", ctypes.c_void_p),
        ("constant", _CONSTANT),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("window", ctypes.c_uint32),
        ("start", ctypes.c_uint32),
        ("state", ctypes.c_void_p),
        ("reset", _RESET),
        ("read", _REGISTER_READ),
        ("write", _REGISTER_WRITE),
        ("cycles", _CYCLES),
        ("inject", _INJECT),
        ("open", _OPEN),
        ("tick", _TICK),
        ("close", _CLOSE),
        ("layer", _LAYER),
        ("clock", ctypes.c_uint32),
        ("cpu_clock", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class EngineSpan:
    """Says from which cycle to which an engine of the device worked on a command."""

    engine: str
    command: int
    begin: int
    end: int


@dataclass
class LibraryMemory:
    """Is the memory that the device's bus reaches: pieces by first address; ``constants``: those of the device."""

    pieces: dict[int, bytearray] = field(default_factory=dict)
    constants: set[int] = field(default_factory=set)

    def find(self, address: int, size: int) -> tuple[bytearray, int] | None:
        for base, data in self.pieces.items():
            if base <= address and address + size <= base + len(data):
                return data, address - base
        return None


class DeviceLibrary:
    """Builds and loads a device model; a test is its CPU and its bus. With :meth:`of_rtl` it is an accelerator's RTL.

    ``sources``: the model's C files and headers; later ones replace earlier ones of the same name."""

    def __init__(self, name: str, sources: Sequence[Path], folder: Path) -> None:
        self._begin(name, _built(name, sources, folder))

    @classmethod
    def of_rtl(cls, name: str, folder: Path) -> DeviceLibrary:
        """Loads the RTL of an accelerator, whose ``folder`` holds ``rtl/``."""
        made = cls.__new__(cls)
        made._begin(name, device_library(name, folder))
        return made

    def _begin(self, name: str, library: Path) -> None:
        self.model = _Model.in_dll(ctypes.CDLL(str(library)), f"{name}_device")
        self.memory = LibraryMemory()
        self.spans: list[EngineSpan] = []
        self.interrupts: list[int] = []
        callbacks = (_READ(self._read), _READ(self._write), _INTERRUPT(self._interrupt), _SPAN(self._span))
        self.bus = _Bus(None, *callbacks, None, _CONSTANT(self._constant))
        if self.model.open and self.model.open(self.model.state) != 0:
            raise DeviceError(f"device {name} cannot be opened; stderr says why")
        self.reset()

    def reset(self) -> None:
        self.spans.clear()
        self.interrupts.clear()
        self.model.reset(self.model.state, ctypes.addressof(self.bus))

    def read(self, offset: int) -> int:
        return int(self.model.read(self.model.state, offset))

    def write(self, offset: int, value: int) -> None:
        self.model.write(self.model.state, offset, value & 0xFFFFFFFF)

    def tick(self, cycles: int) -> None:
        """Lets so many cycles pass."""
        self.model.tick(self.model.state, cycles)

    @property
    def cycles(self) -> int:
        return int(self.model.cycles(self.model.state))

    def _read(self, _context: int, address: int, to: int, size: int) -> int:
        found = self.memory.find(address, size)
        if found is None:
            return -1
        data, at = found
        ctypes.memmove(to, bytes(data[at : at + size]), size)
        return 0

    def _write(self, _context: int, address: int, source: int, size: int) -> int:
        found = self.memory.find(address, size)
        if found is None:
            return -1
        data, at = found
        data[at : at + size] = ctypes.string_at(source, size)
        return 0

    def _constant(self, _context: int, address: int) -> bool:
        pieces = self.memory.pieces
        return any(base <= address < base + len(pieces.get(base, b"")) for base in self.memory.constants)

    def _interrupt(self, _context: int, level: int) -> None:
        self.interrupts.append(level)

    def _span(self, _context: int, engine: bytes, command: int, begin: int, end: int) -> None:
        self.spans.append(EngineSpan(engine.decode(), command, begin, end))


def _built(name: str, sources: Sequence[Path], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sources:
        incoming.copy(path, folder / path.name)
    library = folder / f"{name}.so"
    files = sorted(str(path) for path in folder.glob("*.c"))
    include = f"-I{data_dir('firmware') / 'include'}"
    command = ["cc", *STRICT, *SANITIZED, "-shared", "-fPIC", include, *files, "-o", str(library)]
    subprocess.run(command, check=True)
    return library
