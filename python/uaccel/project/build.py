"""Build a project, through its Project API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.cache import Cache, cache_of_objects
from uaccel.errors import ToolError
from uaccel.project.api_client import ProjectServer
from uaccel.project.api_options import OptionValue
from uaccel.project.build_progress import Count, counted
from uaccel.project.recipe import build_by_recipe
from uaccel.toolchain import find_command, find_program

NATIVE: Final = "native"


def _uncounted(_done: int, _total: int) -> None:
    pass


def build_project(
    folder: Path, *, observe: bool = False, count: Count = _uncounted, cache: Cache | None = None
) -> Path:
    """Configure and build; returns the build folder. ``observe`` builds with a hook after every layer.

    With a ``cache``, or a folder for objects, those are taken that other firmware needed before. What fails that way
    is built anew by the project's server, which says why.
    """
    require_tools(folder)
    cache = cache or cache_of_objects()
    build = folder / ("build-observe" if observe else "build")
    if cache is not None and build_by_recipe(folder, build, toolchain_of(folder), cache, count, observe=observe):
        return build
    with ProjectServer(folder, {"observe": observe}) as server, counted(build, count):
        server.build()
    return build


@dataclass(frozen=True)
class Built:
    """``firmware`` is None where a server that is not ours put it, it alone knows where."""

    platform: str
    firmware: Path | None


def build_any(folder: Path, options: Mapping[str, OptionValue], *, observe: bool, verbose: bool) -> Built:
    """Build a project of any template."""
    with ProjectServer(folder, options, show=verbose) as server:
        server.require_project("build")
        server.offer("verbose", verbose)
        if observe:
            server.require("observe", True)
        if server.is_ours:
            require_tools(folder)
        server.build()
        platform = server.info.platform_name
        if not server.is_ours:
            return Built(platform, None)
    return Built(platform, firmware_of(folder / ("build-observe" if observe else "build")))


def require_tools(folder: Path) -> None:
    """Complain about what is missing in words that say how to get it."""
    toolchain = toolchain_of(folder)
    if toolchain == NATIVE:
        find_program("C compiler")
    else:
        find_command(f"{toolchain}-gcc", "firmware for this board")
    find_program("ninja or make")
    find_program("cmake")


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
