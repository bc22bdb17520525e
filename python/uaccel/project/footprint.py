"""What a project's firmware takes of its board, read from what the compiler made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uaccel.project.build import toolchain_of
from uaccel.project.sizes import Sizes, object_sizes, size_tool


@dataclass(frozen=True)
class Footprint:
    """``code`` and ``static`` RAM of the model without weights and arena; what the session server adds."""

    code: int
    static: int
    session: Sizes


def footprint(folder: Path, build: Path, model: str, *, arena: int, io: int) -> Footprint:
    """``io``: the memory of inputs and outputs, in the application; there too lies an arena that is passed in."""
    tool = size_tool(toolchain_of(folder))
    own = object_sizes([path for path in objects(build, "model") if path.stem != f"tvmgen_{model}_weights.c"], tool)
    application = object_sizes(objects(build, "firmware"), tool)
    inside = arena if own.ram >= arena else 0
    rest = application.ram - io - (arena - inside)
    return Footprint(own.flash, own.ram - inside, Sizes(application.flash, rest))


def objects(build: Path, target: str) -> list[Path]:
    """CMake calls them .o on this computer and .obj for a board."""
    return sorted(path for path in build.glob(f"CMakeFiles/{target}.dir/**/*") if path.suffix in (".o", ".obj"))
