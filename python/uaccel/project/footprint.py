"""What a project's firmware takes of its board, read from what the compiler and the linker made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uaccel.project.build import toolchain_of
from uaccel.project.callgraph import SUFFIX, Graph, deepest, own_functions, pointed_in, read_graph
from uaccel.project.frames import disassemble, frames_of
from uaccel.project.linked import Linked, read_linked
from uaccel.project.sizes import Sizes, object_sizes


@dataclass(frozen=True)
class Footprint:
    """``code`` and ``static`` RAM of the model without weights and arena; what the session server adds.

    What only linked firmware for a board tells is None, or empty, for firmware that is a process: ``startup``, the
    flash of the port's start-up code; ``stack``, which one inference cannot exceed; ``layers``, the bytes of code of
    each, by name.
    """

    code: int
    static: int
    session: Sizes
    startup: int | None = None
    stack: int | None = None
    layers: Mapping[str, int] = field(default_factory=dict)
    linked: Linked | None = None


def footprint(folder: Path, build: Path, model: str, *, arena: int, io: int) -> Footprint:
    """``io``: the memory of inputs and outputs, in the application; there too lies an arena that is passed in."""
    if (build / "firmware.elf").is_file():
        return _of_board(folder, build, model)
    own = object_sizes([path for path in objects(build, "model") if path.stem != f"tvmgen_{model}_weights.c"])
    application = object_sizes(objects(build, "firmware"))
    inside = arena if own.ram >= arena else 0
    rest = application.ram - io - (arena - inside)
    return Footprint(own.flash, own.ram - inside, Sizes(application.flash, rest))


def objects(build: Path, target: str) -> list[Path]:
    """CMake calls them .o on this computer and .obj for a board."""
    return sorted(path for path in build.glob(f"CMakeFiles/{target}.dir/**/*") if path.suffix in (".o", ".obj"))


def _of_board(folder: Path, build: Path, model: str) -> Footprint:
    linked = read_linked(build)
    graph = read_graph(sorted(build.glob(f"CMakeFiles/*.dir/**/*{SUFFIX}")))
    code = disassemble(build / "firmware.elf", f"{toolchain_of(folder)}-objdump")
    inference = [title for title in graph if re.search(rf"tvmgen_{model}_describe\.c:run$", title)]
    pointed = pointed_in(graph, f"tvmgen_{model}.c")
    stack = deepest(graph, inference[0], frames_of(code), pointed) if len(inference) == 1 else None
    return Footprint(
        code=linked.flash_of("code", "rodata"),
        static=linked.ram_of("static"),
        session=Sizes(linked.flash_of("session"), linked.ram_of("session")),
        startup=linked.flash_of("startup"),
        stack=None if stack is None else stack + code.interrupt,
        layers=_layers(graph, linked, model),
        linked=linked,
    )


def _layers(graph: Graph, linked: Linked, model: str) -> dict[str, int]:
    """Code of the layers that share no function with another, by name."""
    roots: dict[str, list[str]] = {}
    for title in graph:
        if match := re.search(rf"tvmgen_{model}\.c:layer_(\w+)$", title):
            roots.setdefault(match[1].removesuffix("_on_cpu"), []).append(title)
    sizes = {row.name: row.bytes for row in linked.flash if row.part == "code"}
    executor = {title: function for title, function in graph.items() if f"tvmgen_{model}.c:" in title}
    own = own_functions(executor, roots)
    return {
        name: sum(sizes[function] for function in functions)
        for name, functions in own.items()
        if functions is not None and all(function in sizes for function in functions)
    }
