"""The whole compiler in pipeline order: import, lower, plan memory, emit C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uaccel.emit.generate import Generated, generate
from uaccel.emit.options import EmitOptions
from uaccel.frontend import import_model
from uaccel.lower.from_relax import lower
from uaccel.lower.program import Program
from uaccel.memory.placement import Placement, place
from uaccel.model import ImportedModel, c_identifier

Progress = Callable[[str], None]


def _quiet(_step: str) -> None:
    pass


@dataclass(frozen=True)
class Compiled:
    """Everything that one compilation knows; what a report or an archive needs is picked from here."""

    model: ImportedModel
    program: Program
    placement: Placement
    generated: Generated
    options: EmitOptions
    board: str


def compile_model(
    path: Path, *, board: str, name: str = "", options: EmitOptions | None = None, progress: Progress = _quiet
) -> Compiled:
    """From a model file to generated sources; ``name`` becomes part of every C name."""
    options = options or EmitOptions()
    progress("import")
    model = import_model(path)
    progress("lower")
    program = lower(model, c_identifier(name or model.name).lower())
    progress("plan memory")
    placement = place(program)
    progress("emit C")
    command = f"uaccel compile {path.name} --board {board} --name {program.name}"
    return Compiled(model, program, placement, generate(program, placement, options, command), options, board)
