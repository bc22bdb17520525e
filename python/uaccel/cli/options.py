"""Defines the options that several commands share, and the commands that compile a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uaccel.board import load_board
from uaccel.cli.command import GENERAL, Command, group
from uaccel.codegen.options import EmitOptions
from uaccel.frontend import SUFFIXES
from uaccel.frontend.limits import Limits, asked
from uaccel.runner.options import TOLD, WHERE, CompileOptions, EngineRequest, ProjectRunOptions
from uaccel.runner.request import RunRequest
from uaccel.util.cache import Cache, cache_of_user
from uaccel.util.option import argument, option, shared


class OnBoard(Command):
    """Adds the board."""

    board: str = option("host", "A board's name, or the path of a board file.", "-b", metavar="BOARD", panel=WHERE)


class Cached(Command):
    """Adds the choice to use no cache."""

    no_cache: bool = option(
        False, "Compile, build and judge anew, and keep nothing of it ('uaccel cache').", panel=GENERAL
    )

    @property
    def cache(self) -> Cache | None:
        """The user's cache, unless this run shall use none."""
        return None if self.no_cache else cache_of_user()


class Layered(Command):
    """Adds the choice to see all layers."""

    layers: bool = option(False, "Show every layer, not only those that take most.", panel=TOLD)


class ModelOptions(OnBoard):
    """Holds the options of every command that compiles a model; those of one that has fewer leave some out."""

    engines: EngineRequest = group()
    compile: CompileOptions = group("name")
    emit: EmitOptions = group("workspace-io")
    limits: Limits = group()

    def request(self, model: Path, **more: Any) -> RunRequest:
        """Makes a request; ``more``: what the command's own options say."""
        asked.memory, asked.seconds = self.limits.memory, self.limits.seconds
        self.engines.require_accelerators()
        said = {**shared(self.compile, CompileOptions), "engines": self.engines, "emit": self.emit, **more}
        return RunRequest(model, load_board(self.board), Path(self.board).name, **said)


class ModelCommand(ModelOptions):
    """Adds the model."""

    model: Path = argument(f"The model file ({SUFFIXES}).", "MODEL")


class ProjectCommand(Command):
    """Adds the project that a command is about."""

    folder: Path = argument("The project's folder, as 'uaccel create' makes it.", "DIR")
    verbose: bool = option(False, "Show what the tools print, on stderr.", "-v")
    server: ProjectRunOptions = group(only=("option",))


class Templated(Command):
    """Adds the template that a project is made by."""

    template: Path | None = option(
        None, "A template of your own, with its Project API server.", "-t", metavar="DIR", panel=WHERE, rare=True
    )
