"""Build a project with CMake."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from uaccel.errors import ToolError
from uaccel.toolchain import find_program


def build_project(folder: Path, *, observe: bool = False) -> Path:
    """Configure and build; returns the build folder. ``observe`` builds with a hook after every layer."""
    build = folder / ("build-observe" if observe else "build")
    compiler = find_program("C compiler")
    tool = find_program("ninja or make")
    generator = "Ninja" if tool.path.name.startswith("ninja") else "Unix Makefiles"
    cmake = [*find_program("cmake").command]
    options = [f"-DCMAKE_C_COMPILER={compiler.path}", f"-DOBSERVE={'ON' if observe else 'OFF'}"]
    _call([*cmake, "-S", str(folder), "-B", str(build), "-G", generator, *options], "configuring")
    _call([*cmake, "--build", str(build), "--parallel", str(os.cpu_count() or 1)], "building")
    return build


def _call(command: Sequence[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if "error:" in line.lower()] or lines[-1:]
        first = errors[0].strip() if errors else "no output"
        raise ToolError(f"{what} the firmware failed ({command[0]} exit status {done.returncode}): {first}")
