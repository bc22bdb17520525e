"""The STM32 clock code where QEMU cannot follow: a clock controller that works, and each way in which it does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from support.device.boards import WARNINGS
from uaccel.board import load_board
from uaccel.build.linker_script import MemoryNeeds
from uaccel.build.project import board_files
from uaccel.util.files import data_dir

HERE = Path(__file__).parent / "stm32"
FULL = {
    "netduino_plus_2": (168_000_000, 42_000_000, 84_000_000),
    "nucleo_f746zg": (216_000_000, 54_000_000, 108_000_000),
}
SLOW = (16_000_000,) * 3
FROM_CRYSTAL = {"netduino_plus_2": (25, 336, 1, 7), "nucleo_f746zg": (8, 432, 1, 9)}
FROM_INTERNAL = {"netduino_plus_2": (16, 336, 0, 7), "nucleo_f746zg": (16, 432, 0, 9)}
Build = Callable[[str], Path]
BOARDS = pytest.mark.parametrize("name", sorted(FULL))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    @cache
    def build_for(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        header = board_files(load_board(name), MemoryNeeds("clock", 0, 0, 0))["board/uaccel_board.h"]
        (folder / "uaccel_board.h").write_text(header)
        port = data_dir("firmware") / "ports" / "stm32"
        program = folder / "clock"
        includes = [f"-I{path}" for path in (HERE, folder, port)]
        sources = [str(HERE / "main.c"), str(port / "clock.c")]
        command = ["gcc", *WARNINGS, "-fsanitize=undefined", *includes, *sources, "-o", str(program)]
        subprocess.run(command, check=True)
        return program

    return build_for


def start(program: Path, *faults: str) -> tuple[tuple[int, ...], dict[str, int]]:
    lines = subprocess.run([program, *faults], capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(map(int, lines[0].split())), {name: int(value, 16) for name, value in map(str.split, lines[1:])}


def pll(registers: dict[str, int]) -> tuple[int, int, int, int]:
    """Divider, factor, source, divider for USB."""
    value = registers["PLLCFGR"]
    assert value >> 16 & 3 == 0, "the output divider must be 2"
    return value & 63, value >> 6 & 511, value >> 22 & 1, value >> 24 & 15


@BOARDS
def test_the_crystal_drives_the_pll(name: str, build: Build) -> None:
    clocks, registers = start(build(name))
    assert clocks == FULL[name]
    assert pll(registers) == FROM_CRYSTAL[name]
    assert registers["CFGR"] & 0xFFFF == 5 << 10 | 4 << 13 | 2 << 2 | 2
    assert registers["ACR"] & 15 == (7 if name == "nucleo_f746zg" else 5)
    assert registers["CR"] >> 18 & 1 == (1 if name == "nucleo_f746zg" else 0), "bypass where a clock drives the pin"


@BOARDS
def test_without_a_crystal_the_internal_oscillator_does(name: str, build: Build) -> None:
    clocks, registers = start(build(name), "crystal")
    assert clocks == FULL[name]
    assert pll(registers) == FROM_INTERNAL[name]


@BOARDS
@pytest.mark.parametrize("fault", ["pll", "flash", "switch", "overdrive"])
def test_whatever_else_fails_the_cpu_runs_on(name: str, fault: str, build: Build) -> None:
    clocks, registers = start(build(name), fault)
    if fault == "overdrive" and name == "netduino_plus_2":
        assert clocks == FULL[name], "an STM32F4 has none"
    else:
        assert clocks == SLOW
        assert registers["CFGR"] & 3 == 0


@BOARDS
def test_an_emulator_without_a_clock_controller_is_taken_at_the_boards_word(name: str, build: Build) -> None:
    clocks, registers = start(build(name), "no-controller")
    assert clocks == FULL[name]
    assert registers["CFGR"] == 0
