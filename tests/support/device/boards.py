"""Boards that QEMU can be: which of them this computer can run, and bare firmware for them without model or server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from uaccel.board import Board, QemuRun, UartConsole, available_boards, load_board
from uaccel.build.linker_script import MemoryNeeds
from uaccel.build.project import board_files
from uaccel.util.files import data_dir

AT_A_UART = [board for board in available_boards() if isinstance(board.console, UartConsole)]
"""What drivers have tests for; those that only a debugger talks to have tests of their own."""
EMULATED = [board.name for board in AT_A_UART if any(isinstance(run, QemuRun) for run in board.runs)]
CROSS = [board.name for board in AT_A_UART]
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Werror")


def board_with_tools(name: str) -> Board:
    """A board whose compiler and emulator are here; else the test is skipped, with the reason."""
    board = load_board(name)
    programs = [f"{board.cpu.toolchain}-gcc"]
    programs += [f"qemu-system-{run.system}" for run in board.runs if isinstance(run, QemuRun)]
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    return board


def build_bare(board: Board, sources: list[Path], folder: Path, *options: str) -> Path:
    """Sources of the test with the board's port, and nothing else of uaccel's."""
    ports, flags, script = bare_port(board, folder)
    return bare_elf(board, [*sources, *ports], script, folder / "firmware.elf", *WARNINGS, "-O2", *options, *flags)


def bare_port(board: Board, folder: Path, constants: int = 0) -> tuple[list[Path], list[str], Path]:
    """The sources of the board's port, what they are compiled with besides the CPU's flags, and the linker script."""
    for name, text in board_files(board, MemoryNeeds("bare", 0, 0, constants)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    ports = [file for port in board.port.sources for file in sorted(port.glob("*.[cS]"))]
    includes = [folder / "board", data_dir("firmware") / "include", *board.port.sources]
    flags = ["-ffunction-sections", "-fdata-sections", *(f"-I{include}" for include in includes)]
    return ports, flags, folder / "board" / "memory.ld"


def bare_elf(board: Board, inputs: list[Path], script: Path, elf: Path, *options: str) -> Path:
    """Sources and objects, compiled and linked by the board's own compiler."""
    command = [f"{board.cpu.toolchain}-gcc", *board.cpu.flags, *board.cpu.link_flags, *options, "-nostartfiles"]
    command += ["-Wl,--gc-sections", "-T", str(script), "-o", str(elf), *map(str, inputs), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return elf
