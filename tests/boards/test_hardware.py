"""Drivers on the board's own hardware: registers at an address, waits by polling and asleep, each with an end."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boards.conftest import Console
from boards.test_ports import CLANG_TARGETS, GCC_ONLY
from support.device.adder_project import ACCELERATORS
from support.device.boards import WARNINGS, board_with_tools, build_bare
from uaccel.board import Board, Device, load_board
from uaccel.board.accelerator_devices import board_devices_source
from uaccel.build.archive_reader import hal_folders
from uaccel.build.linker_script import MemoryNeeds
from uaccel.build.project import board_overlay
from uaccel.session.qemu import QemuTransport
from uaccel.util.files import data_dir

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


@pytest.mark.sample(2)
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


@pytest.mark.sample(4)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["mps2_an385", "mps3_an547", "qemu_riscv32", "nucleo_f746zg"])
def test_compilers_have_nothing_to_say(name: str, compiler: str, tmp_path: Path) -> None:
    """On every kind of CPU, with every warning; drivers of the tests too, as vendors are asked to write theirs."""
    board = load_board(name)
    overlay = board_overlay(with_memory(board), MemoryNeeds("m", 0, 0, 0, ("adder", "swapper"), 0))
    for path, data in overlay.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    folders = [tmp_path / "firmware" / "ports" / folder.name for folder in [*hal_folders(board), *board.port.sources]]
    includes = [*folders, tmp_path / "board", data_dir("firmware") / "include"]
    sources = [tmp_path / "board" / "devices.c", *(file for folder in folders for file in sorted(folder.glob("*.c")))]
    sources += [file for path in ACCELERATORS for file in sorted((path / "driver").glob("*.c"))]
    warned = subprocess.run(
        [*command(board, compiler), *WARNINGS, "-fsyntax-only", *(f"-I{path}" for path in includes), *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (warned.returncode, warned.stderr) == (0, "")


def with_memory(board: Board) -> Board:
    """With the devices that no emulator gives it."""
    devices = tuple(Device(path.name, 0x60000000) for path in ACCELERATORS)
    return replace(board, devices=devices)


def command(board: Board, compiler: str) -> list[str]:
    """How the compiler is called for the board; without it the test is skipped."""
    name = f"{board.cpu.toolchain}-gcc" if compiler == "gcc" else compiler
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    if compiler == "gcc":
        return [name, *board.cpu.flags]
    flags = [flag for flag in board.cpu.flags if not flag.startswith(GCC_ONLY)]
    return [name, f"--target={CLANG_TARGETS[board.cpu.toolchain]}", *flags]
