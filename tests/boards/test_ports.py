"""Every port under QEMU: start-up, console, time, stack, faults, reset, instruction counts."""

from __future__ import annotations

import errno
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from boards.conftest import SELFTEST, Console
from support.device.boards import CROSS, WARNINGS, board_with_tools, build_bare
from uaccel.board import Board, load_board
from uaccel.build.elf import symbols
from uaccel.build.linker_script import MemoryNeeds
from uaccel.build.project import board_files
from uaccel.util.files import data_dir

LEAST_RATE = 50_000
"""Bytes a second that QEMU's UART must carry, each way."""
ATTEMPTS = 8
"""At the rate: other work on this computer slows an emulator down."""
NO_COUNT = (1 << 64) - 1


def checksum(data: bytes) -> int:
    total = 0
    for byte in data:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return total


@pytest.mark.sample(3)
def test_bytes_pass_both_ways_unchanged(console: Console) -> None:
    data = bytes(range(256)) * 3
    console.send("e", len(data), data)
    assert console.receive(len(data)) == data


@pytest.mark.sample(1)
def test_nothing_is_lost_in_a_large_transfer(console: Console) -> None:
    data = random.Random(1).randbytes(60_000)
    console.send("d", len(data), data)
    assert console.numbers("II") == (checksum(data), 0)
    console.send("u", 60_000)
    assert console.receive(60_000) == bytes(i & 0xFF for i in range(60_000))


@pytest.mark.sample(1)
def test_the_line_is_fast(console: Console) -> None:
    data = bytes(50_000)
    rates = {"down": 0.0, "up": 0.0}
    for _ in range(ATTEMPTS):
        begin = time.monotonic()
        console.send("d", len(data), data)
        console.numbers("II")
        middle = time.monotonic()
        console.send("u", len(data))
        console.receive(len(data))
        rates["down"] = max(rates["down"], len(data) / (middle - begin))
        rates["up"] = max(rates["up"], len(data) / (time.monotonic() - middle))
        if min(rates.values()) > LEAST_RATE:
            break
    assert min(rates.values()) > LEAST_RATE, rates


@pytest.mark.sample(3)
def test_what_arrives_while_nobody_reads_is_kept(console: Console) -> None:
    """More than the ring holds: the port stops taking bytes, and the line waits."""
    data = random.Random(2).randbytes(20_000)
    console.send("o", 50_000_000)
    console.send("d", len(data), data)
    assert console.numbers("I") == (0,)
    assert console.numbers("II") == (checksum(data), 0)


@pytest.mark.sample(3)
def test_counts_are_exact_whatever_arrives_meanwhile(console: Console) -> None:
    counts = {}
    for rounds in (1, 2, 1000, 100_000):
        console.send("i", rounds)
        (counts[rounds],) = console.numbers("Q")
    constant = counts[1] - 2
    assert 0 <= constant < 20
    assert counts == {rounds: 2 * rounds + constant for rounds in counts}
    for repeat in range(5):
        console.send("i", 3_000_000)
        console.send("e", 30, bytes(30))  # arrives while the loop is going on
        assert console.numbers("Q") == (6_000_000 + constant,), f"repeat {repeat}"
        assert console.receive(30) == bytes(30)


def test_without_the_plugin_there_is_no_count(start: Callable[..., Console]) -> None:
    console = start("off")
    console.boot()
    console.send("i", 1000)
    assert console.numbers("Q") == (NO_COUNT,)


def test_by_qemus_clock_an_instruction_is_a_nanosecond(start: Callable[..., Console], board: Board) -> None:
    console = start("time")
    console.boot()
    spans = []
    for rounds in (100_000, 1_100_000):
        console.send("t", rounds)
        hz, ticks, back = console.numbers("IQI")
        assert (hz, back) == (board.timer.hz, 0)
        spans.append(ticks * 1_000_000_000 / hz)
    assert spans[1] - spans[0] == pytest.approx(2_000_000, rel=0.05)


@pytest.mark.sample(1)
def test_time_goes_on_and_never_back(console: Console, board: Board) -> None:
    """Long enough for SysTick's 24 bits to run out several times on the fastest board."""
    begin = time.monotonic()
    ticks = 0
    while time.monotonic() - begin < 1.5:
        console.send("t", 20_000_000)
        hz, span, back = console.numbers("IQI")
        assert (hz, back) == (board.timer.hz, 0)
        ticks += span
    seconds = time.monotonic() - begin
    assert 0.3 * seconds < ticks / board.timer.hz < 1.1 * seconds


def test_the_stacks_high_water_is_seen(console: Console) -> None:
    used = {}
    for size in (16, 400, 4000, 16):
        console.send("s", size)
        (used[size],) = console.numbers("I")
    assert 16 <= used[16] <= 160
    assert 400 - 16 <= used[400] - used[16] <= 400 + 120
    assert 4000 - 16 <= used[4000] - used[16] <= 4000 + 120


FAULTS = {
    0: "undefined instruction",
    1: "where there is nothing",
    2: "stack overflow",
    3: "no code at that address",
    5: "asked for",
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", FAULTS, ids=FAULTS.values())
def test_a_fault_is_reported_and_again_when_asked(console: Console, kind: int) -> None:
    console.send("f", kind)
    report = console.line()
    assert report.startswith("fault: ")
    assert FAULTS[kind] in report
    if kind != 5:
        assert re.search(r" pc=0x[0-9a-f]{8} | sp=0x[0-9a-f]{8} ", report)
    console.send("e")  # four zero bytes are in it: each asks
    assert console.line() == report


def test_a_division_by_zero_is_a_fault_on_cortex_m(console: Console, board: Board) -> None:
    console.send("f", 4)
    if board.cpu.arch == "rv32":
        assert console.numbers("I") == (0xFFFFFFFF,)  # as the architecture defines it
    else:
        assert "usage fault: division by zero" in console.line()


def test_main_must_not_return(console: Console) -> None:
    console.send("x")
    assert console.line() == "fault: main() returned"


def test_the_c_librarys_mathematics_and_its_errno(console: Console) -> None:
    """errno lies in thread-local memory with some libraries, which start-up has to provide."""
    for power, bits in ((0, 0x3F800000), (1, 0x402DF854), (1000, 0x7F800000), (0, 0x3F800000)):
        console.send("m", power)
        seen, error = console.numbers("II")
        assert seen == bits, f"exp({power})"
        assert error == 1234 or (error == errno.ERANGE and power == 1000), "not every library's exp sets it"


def test_reset_starts_anew(console: Console) -> None:
    for _ in range(3):
        console.send("r")
        console.boot()
    console.send("i", 100)
    assert console.numbers("Q")[0] != NO_COUNT


CLANG_TARGETS = {"arm-none-eabi": "thumb-none-eabi", "riscv64-unknown-elf": "riscv32-unknown-elf"}
GCC_ONLY = ("-misa-spec", "-mno-relax", "--specs")


@pytest.mark.sample(3)
@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize("name", [*CROSS, "microbit", "sifive_e", "pico", "nucleo_h743zi"])
def test_another_compiler_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    for path, text in board_files(board, MemoryNeeds("bare", 0, 0, 0)).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    flags = [flag for flag in board.cpu.flags if not flag.startswith(GCC_ONLY)]
    includes = [tmp_path / "board", data_dir("firmware") / "include", *board.port.sources]
    sources = [str(source) for port in board.port.sources for source in sorted(port.glob("*.c"))]
    command = ["clang", f"--target={CLANG_TARGETS[board.cpu.toolchain]}", *flags, *WARNINGS, "-fsyntax-only"]
    done = subprocess.run(
        [*command, *(f"-I{path}" for path in includes), *sources], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_smallest_core_builds_too(tmp_path: Path) -> None:
    """ARMv6-M has neither the instructions nor the registers of the others; QEMU has no such board with this UART."""
    text = board_with_tools("mps2_an385").file.read_text()
    file = tmp_path / "mps2_m0.toml"
    file.write_text(text.replace('"armv7m"', '"armv6m"').replace("cortex-m3", "cortex-m0"))
    elf = build_bare(load_board(file), [SELFTEST], tmp_path, "-DSELFTEST_NOWHERE=0xF0000000u")
    assert symbols(elf)["uaccel_vectors"] == 0
