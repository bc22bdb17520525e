"""Drivers on the board's own hardware: registers at an address, waits by polling and asleep, each with an end."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boards.conftest import Console
from support.boards import board_with_tools, build_bare
from uaccel.board import Board, load_board
from uaccel.project.devices import board_devices_source
from uaccel.resources import data_dir
from uaccel.session.qemu import QemuTransport

DEVICES = """
[[device]]
name = "timer"
base = 0x4000_0000
irq = 8

[[device]]
name = "polled"
base = 0x4000_0000
"""
OK, TIMEOUT, IDENTITY = 0, 1, 4
HZ = 25_000_000
LONG = 2_000_000
"""Ticks: 80 ms."""


@pytest.fixture(scope="module", params=["hal_mmio", "hal_qemu"])
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Board, Path]:
    """For a real board, and for an emulated one without an emulator's help: both find the hardware."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "bench.toml").write_text(board_with_tools("mps2_an386").file.read_text() + DEVICES)
    board = load_board(folder / "bench.toml")
    (folder / "devices.c").write_text(board_devices_source(board, ["timer", "polled"]))
    hal = [data_dir("firmware") / "ports" / name for name in ("hal_common", "hal_cortex_m", "hal_board", request.param)]
    sources = [Path(__file__).with_name("hardware.c"), folder / "devices.c"]
    sources += [source for part in hal for source in sorted(part.glob("*.c"))]
    return board, build_bare(board, sources, folder, *(f"-I{part}" for part in hal))


@pytest.fixture
def console(firmware: tuple[Board, Path]) -> Iterator[Console]:
    transport = QemuTransport(*firmware)
    console = Console(transport)
    assert console.receive(1) == b"!"
    yield console
    transport.close()


def ask(console: Console, letter: str, first: int = 0, second: int = 0) -> None:
    console.send(letter, first, struct.pack("<I", second))


def wait(console: Console, letter: str, ticks: int, polls: int) -> tuple[int, ...]:
    """Status and instructions."""
    ask(console, letter, ticks, polls)
    return console.numbers("IQ")


def test_the_device_is_who_it_is(console: Console) -> None:
    ask(console, "c")
    assert console.numbers("III") == (OK, IDENTITY, 0)
    ask(console, "m")
    assert console.numbers("I") == (0,)


def test_a_wait_asleep_takes_next_to_no_instructions(console: Console) -> None:
    for _ in range(3):
        begin = time.monotonic()
        status, instructions = wait(console, "i", LONG, 10_000_000)
        assert status == OK
        assert time.monotonic() - begin >= LONG / HZ
        assert instructions < 500


def test_a_wait_by_polling_takes_many(console: Console) -> None:
    status, instructions = wait(console, "p", LONG, 100_000_000)
    assert status == OK
    assert instructions > 10_000


@pytest.mark.parametrize(("letter", "polls"), [("p", 1000), ("i", 100_000), ("i", 1)])
def test_a_wait_for_what_never_comes_ends(console: Console, letter: str, polls: int) -> None:
    """Asleep it is SysTick that wakes the CPU, at 25 MHz every 0.7 s; a look is worth 16 of its ticks."""
    status, instructions = wait(console, letter, 0, polls)
    assert status == TIMEOUT
    assert instructions < 60_000
    if letter == "p":
        assert instructions > 4 * polls


def test_bytes_that_arrive_meanwhile_are_not_lost(console: Console) -> None:
    ask(console, "i", LONG, 10_000_000)
    ask(console, "e", 1000)
    console.transport.write(bytes(i & 0xFF for i in range(1000)))
    assert console.numbers("IQ")[0] == OK
    assert console.receive(1000) == bytes(i & 0xFF for i in range(1000))
