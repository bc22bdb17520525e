"""Build a project with CMake."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError
from uaccel.toolchain import find_command, find_program

NATIVE: Final = "native"


def build_project(folder: Path, *, observe: bool = False) -> Path:
    """Configure and build; returns the build folder. ``observe`` builds with a hook after every layer."""
    build = folder / ("build-observe" if observe else "build")
    toolchain = toolchain_of(folder)
    compiler = (
        find_program("C compiler")
        if toolchain == NATIVE
        else find_command(f"{toolchain}-gcc", "firmware for this board")
    )
    tool = find_program("ninja or make")
    generator = "Ninja" if tool.path.name.startswith("ninja") else "Unix Makefiles"
    cmake = [*find_program("cmake").command]
    options = [f"-DCMAKE_C_COMPILER={compiler.path}", f"-DOBSERVE={'ON' if observe else 'OFF'}"]
    _call([*cmake, "-S", str(folder), "-B", str(build), "-G", generator, *options], "configuring")
    _call([*cmake, "--build", str(build), "--parallel", str(os.cpu_count() or 1)], "building")
    return build


def firmware_of(build: Path) -> Path:
    """What was built: a program for this computer, or an ELF file for a board."""
    elf = build / "firmware.elf"
    return elf if elf.is_file() else build / "firmware"


def toolchain_of(folder: Path) -> str:
    """The prefix of the compiler's name, as the project's board states it."""
    file = folder / "board" / "board.cmake"
    match = re.search(r'^set\(BOARD_TOOLCHAIN "(.+)"\)$', _text(file), re.MULTILINE)
    if match is None:
        raise ToolError(f"{file} names no BOARD_TOOLCHAIN; make the project anew with 'uaccel create'")
    return match[1]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"cannot read {file}: {error.strerror}; wanted a firmware project, as 'uaccel create' makes"
        ) from error


def _call(command: Sequence[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = _reason((done.stdout + done.stderr).splitlines())
        raise ToolError(f"{what} the firmware failed ({command[0]} exit status {done.returncode}): {words}")


def _reason(lines: list[str]) -> str:
    """The line that matters; a linker whose memory is full is put into words."""
    for line in lines:
        full = re.search(r"region `(\w+)' overflowed by (\d+) bytes", line)
        if full is not None:
            return (
                f"memory '{full[1]}' of the board is too small by {int(full[2]):,} bytes; "
                "choose a board with more, or a smaller model"
            )
    errors = [line for line in lines if "error:" in line.lower()] or lines[-1:]
    return errors[0].strip() if errors else "no output"
