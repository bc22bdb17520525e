"""The machine's model in this process: streams of a few commands, played on it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from uaccel.accelerator import Accelerator, load_accelerator
from uaccel.streams import Tokens, pack
from uaccel.testing import DeviceLibrary, EngineSpan

NPU = load_accelerator(str(Path(__file__).resolve().parents[1]))
NOBODY = 0xFFFFFFFF
COMMANDS_AT, PLACES_AT = 0x70000000, 0x1000000
LONGEST = 10_000
"""Of a job on the RTL, in hundreds of cycles."""
FLAGS = {"<P": "wait_previous", "<N": "wait_next", ">P": "push_previous", ">N": "push_next"}


def part(name: str) -> Any:
    """A module of the folder, as the accelerator itself imports it."""
    assert NPU.stream is not None
    return importlib.import_module(f"{NPU.stream.__module__.rpartition('.')[0]}.{name}")


@dataclass(frozen=True)
class Played:
    """``error`` and the ``command`` that it is about; what was in the places at the end."""

    error: int
    command: int
    cycles: int
    busy: tuple[int, ...]
    places: list[bytes]
    spans: list[EngineSpan]

    def span(self, command: int) -> tuple[int, int]:
        (found,) = [span for span in self.spans if span.command == command]
        return found.begin, found.end


class Clocked(DeviceLibrary):
    """RTL: the write that starts a job lasts until it has ended, and that of a reset until all is clear."""

    def write(self, offset: int, value: int) -> None:
        super().write(offset, value)
        if (offset, value) == (0x18, 2):
            self.tick(5000)
        for _ in range(LONGEST if (offset, value) == (0x18, 1) else 0):
            if self.read(0x1C) & 1:
                break
            self.tick(100)


class Player:
    """``commands``: kind, fields, and tokens such as ``<P>N`` (wait for the previous engine, tell the next one)."""

    def __init__(self, device: DeviceLibrary) -> None:
        self.device = device
        self.formats = part("commands").FORMATS

    def packed(self, kind: str, fields: Mapping[str, int], tokens: str = "") -> bytes:
        pairs = [tokens[at : at + 2] for at in range(0, len(tokens), 2)]
        return pack(self.formats[kind], fields, Tokens(**{FLAGS[pair]: True for pair in pairs}))

    def play(self, commands: Sequence[tuple[Any, ...]], places: Sequence[bytes] = (), resets: bool = True) -> Played:
        return self.start(b"".join(self.packed(*command) for command in commands), places, resets=resets)

    def start(
        self, stream: bytes, places: Sequence[bytes] = (), length: int | None = None, resets: bool = True
    ) -> Played:
        device = self.device
        if resets:
            device.reset()
        pieces = {PLACES_AT * (number + 1): bytearray(data) for number, data in enumerate(places)}
        for number, (base, data) in enumerate(pieces.items()):
            self.tell(number, base, len(data))
        device.memory.pieces = {**pieces, COMMANDS_AT: bytearray(stream)}
        device.memory.constants = {COMMANDS_AT, PLACES_AT}
        device.write(0x28, COMMANDS_AT)
        device.write(0x2C, len(stream) if length is None else length)
        device.write(0x18, 1)
        assert device.read(0x1C) & 1
        busy = tuple(device.read(offset) for offset in (0x38, 0x3C, 0x40))
        found = (device.read(0x20), device.read(0x24), device.cycles, busy)
        return Played(*found, [bytes(data) for data in pieces.values()], list(device.spans))

    def tell(self, place: int, base: int, limit: int) -> None:
        for register, value in ((0x48, place), (0x4C, base), (0x50, limit)):
            self.device.write(register, value)


@pytest.fixture(scope="session")
def npu() -> Accelerator:
    return NPU


@pytest.fixture(scope="session")
def player(tmp_path_factory: pytest.TempPathFactory) -> Player:
    return Player(DeviceLibrary("npu", NPU.devices, tmp_path_factory.mktemp("npu")))


@pytest.fixture(scope="session")
def needs_rtl() -> None:
    if shutil.which("verilator") is None or importlib.util.find_spec("amaranth") is None:
        pytest.skip("verilator or amaranth is not installed")


@pytest.fixture(scope="session")
def rtl(needs_rtl: None) -> Player:
    return Player(Clocked.of_rtl("npu", NPU.folder))


@pytest.fixture(scope="session")
def flash_rtl(needs_rtl: None) -> Player:
    return Player(Clocked.of_rtl("npu_flash", NPU.folder.parent / "npu_flash"))
