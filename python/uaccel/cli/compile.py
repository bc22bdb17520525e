"""Defines ``uaccel compile``, which turns a model file into a Model Library Format archive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.cli.command import group
from uaccel.cli.options import Cached, Layered, ModelCommand
from uaccel.cli.output import emit, progress
from uaccel.cli.tables import show_frontier, show_layers, show_memory
from uaccel.codegen.options import EmitOptions
from uaccel.frontend.bundle import stem
from uaccel.runner.options import CompileOptions
from uaccel.runner.request import RunRequest
from uaccel.util.files import require_new_folder, require_writable, write_archive
from uaccel.util.option import like, option

if TYPE_CHECKING:
    from rich.console import Console


class CompileCommand(ModelCommand, Layered, Cached):
    """Compile a model to plain C, in a Model Library Format archive."""

    output: str = option(
        "",
        "The archive to write (MODEL.tar): a folder where PATH ends with '/', a zip where it ends with '.zip'.",
        "-o",
        metavar="PATH",
    )
    compile: CompileOptions = group()
    workspace_io: bool | None = like(EmitOptions, "workspace_io", None)
    dump: Path | None = option(
        None, "Write what each stage made: IR, plan, regions, command streams.", metavar="DIR", rare=True
    )
    frontier: bool = option(False, "Compile nothing: tell what less RAM costs in time and flash, from most to least.")

    def run(self) -> None:
        request = self.request(self.model, workspace_io=bool(self.workspace_io))
        if self.frontier:
            _tell_frontier(request, self.as_json)
        else:
            self._write(request)

    def _write(self, request: RunRequest) -> None:
        """Writes the archive in the form that its name says.

        A dump needs the compilation itself, so no cache is used with it."""
        archive, folder = Path(self.output or f"{stem(request.model)}.tar"), self.output.endswith("/")
        (require_new_folder if folder else require_writable)(archive, "-o")
        with progress() as step:
            from uaccel.build.project import add_board
            from uaccel.runner.prepare import prepare, require_offload

            prepared = prepare(request, step, None if self.dump else self.cache)
            require_offload(request, prepared)
            if self.dump is not None:
                from uaccel.report.dump import write_dump

                step(f"write {self.dump}")
                write_dump(prepared.compiled, self.dump)
            step(f"write {archive}")
            files = dict(prepared.firmware.files())
            unfit = add_board(files, request.board)
            write_archive(archive, files, folder=folder)
        told = prepared.told["report"]
        report = told | {"archive": str(archive), "warnings": told["warnings"] + unfit}
        emit(report, self.as_json, lambda console: _show(console, report, every=self.layers))


def _tell_frontier(request: RunRequest, as_json: bool) -> None:
    """Shows what less RAM costs, a row for each way to run the model."""
    with progress() as step:
        from uaccel.runner.job import frontier_report

        report = frontier_report(replace(request, emit=replace(request.emit, ram=None)).what(), step)
    emit(report, as_json, lambda console: show_frontier(console, report))


def _show(console: Console, report: dict[str, Any], *, every: bool) -> None:
    show_layers(console, report, every=every)
    show_memory(console, report)
    console.print(f"  Archive   {report['archive']}", soft_wrap=True)  # a path stays in one piece
