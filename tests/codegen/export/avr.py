"""An ATmega2560, executed by simavr: 8 bits, an ``int`` of 16, and 8 KB of RAM."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest

from codegen.export.exports import need_program

HERE = Path(__file__).parent
SIMAVR = Path("/usr/include/simavr/sim_avr.h")


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Lives as long as this process."""
    return tempfile.TemporaryDirectory(prefix="uaccel-avr-")


@functools.cache
def avr_process() -> Path:
    """The program that executes firmware; the test is skipped where it cannot be built."""
    need_program("avr-gcc", "gcc")
    if not SIMAVR.is_file():
        pytest.skip("libsimavr-dev is not installed")
    program = Path(_folder().name) / "avr"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", str(HERE / "avr_process.c")]
    command += ["-lsimavr", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def linked(folder: Path, *options: str) -> Path:
    """All C files of a folder as firmware that prints to the UART."""
    firmware = folder / "firmware.elf"
    command = ["avr-gcc", "-std=c99", "-mmcu=atmega2560", "-Os", *options, *map(str, sorted(folder.glob("*.c")))]
    command += [str(HERE / "avr_console.c"), "-lm", "-Wl,-u,vfprintf", "-lprintf_flt", "-o", str(firmware)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return firmware


def printed(firmware: Path) -> str:
    """What it says until it stops."""
    command = [str(avr_process()), str(firmware), "console"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
