"""Firmware of the boards' own tests: built once for each board, started anew for each test."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from support.device.boards import EMULATED, WARNINGS, board_with_tools, build_bare
from uaccel.board import Board
from uaccel.session.qemu import Counting, QemuTransport

SELFTEST = Path(__file__).with_name("selftest.c")
FAKE_QEMU = Path(__file__).with_name("fake_qemu.c")
PATIENCE = 30.0
NOWHERE = {"rv32": "0x00400000u"}
"""Where there is nothing: on Cortex-M in the system region, beyond the private peripherals."""


class Console:
    """A raw console: bytes and little-endian numbers."""

    def __init__(self, transport: QemuTransport) -> None:
        self.transport = transport
        self._arrived = b""

    def send(self, letter: str, number: int = 0, data: bytes = b"") -> None:
        self.transport.write(letter.encode() + struct.pack("<I", number) + data)

    def receive(self, count: int) -> bytes:
        end = time.monotonic() + PATIENCE
        while len(self._arrived) < count:
            left = end - time.monotonic()
            assert left > 0, f"{len(self._arrived)} of {count} bytes arrived: {self._arrived[:80]!r}"
            self._arrived += self.transport.read(left)
        data, self._arrived = self._arrived[:count], self._arrived[count:]
        return data

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(f"<{layout}", self.receive(struct.calcsize(f"<{layout}")))

    def line(self) -> str:
        """The next line that is not empty."""
        text = b""
        while not text.strip() or not text.endswith(b"\n"):
            text += self.receive(1)
        return text.decode().strip()

    def boot(self) -> None:
        assert self.receive(1) == b"!"
        assert self.receive(1) == b"\0", ".data, .bss, floating point or memcpy() are not as they should be at start-up"


@pytest.fixture(scope="session", params=EMULATED)
def board(request: pytest.FixtureRequest) -> Board:
    return board_with_tools(request.param)


@pytest.fixture(scope="session")
def selftest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Board], Path]:
    @cache
    def build(name: str) -> Path:
        board = board_with_tools(name)
        nowhere = NOWHERE.get(board.cpu.arch, "0xF0000000u")
        return build_bare(board, [SELFTEST], tmp_path_factory.mktemp(name), f"-DSELFTEST_NOWHERE={nowhere}")

    return lambda board: build(board.name)


@pytest.fixture
def start(board: Board, selftest: Callable[[Board], Path]) -> Iterator[Callable[..., Console]]:
    """Starts the board; one at a time."""
    running: list[QemuTransport] = []

    def begin(counting: Counting = "auto") -> Console:
        running.append(QemuTransport(board, selftest(board), counting=counting))
        return Console(running[-1])

    yield begin
    for transport in running:
        transport.close()


@pytest.fixture
def console(start: Callable[..., Console]) -> Console:
    console = start()
    console.boot()
    return console


@pytest.fixture(scope="session")
def fake_qemu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for QEMU that loads a plugin."""
    program = tmp_path_factory.mktemp("qemu") / "fake_qemu"
    subprocess.run(["gcc", *WARNINGS, "-rdynamic", str(FAKE_QEMU), "-o", str(program), "-ldl"], check=True)
    return program
