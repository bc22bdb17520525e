"""Defines ``uaccel run``, which runs a model or a project, verifies it if asked, and shows what came out."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import typer

from uaccel.board import load_board
from uaccel.cli.command import given_of, group, names_of
from uaccel.cli.options import Cached, ModelOptions, OnBoard, Templated
from uaccel.cli.output import emit, progress, write_page_where, write_trace
from uaccel.cli.run_project import require_places, run_folder, run_on_template, write_outputs
from uaccel.cli.verdict import show_run
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError, VerificationError
from uaccel.frontend import SUFFIXES
from uaccel.runner.options import CompileOptions, ProjectRunOptions
from uaccel.runner.request import Devices, RunRequest
from uaccel.util.cache import Cache
from uaccel.util.option import argument, like

# The run of a model file, and the files that are written besides.


def run_model(request: RunRequest, cache: Cache | None, as_json: bool) -> None:
    """Runs a model, writes the files that were asked for, and shows the report."""
    wishes = request.wishes
    with progress() as step:
        from uaccel.runner.perform import perform

        ran = perform(request, step, cache)
        if wishes.outputs is not None:
            write_outputs(wishes.outputs, ran.outputs)
        if wishes.trace is not None:
            write_trace(wishes.trace, ran.trace)
        write_page_where(wishes.report, ran.report)
    report = ran.report
    if not wishes.detailed:
        report.pop("trace", None)
    emit(report, as_json, lambda console: show_run(console, report))
    if ran.complaint:
        raise VerificationError(ran.complaint)


# The command: its options, and which of them make sense together.


@dataclass(frozen=True, kw_only=True)
class RunCommand(ModelOptions, Templated, Cached):
    """Compile a model, build its firmware, run it, and show what came out; or run a project's firmware."""

    context: typer.Context
    model: Path = argument(f"The model file ({SUFFIXES}), or a project's folder.", "MODEL|DIR")
    wishes: ProjectRunOptions = group()
    compile: CompileOptions = group()
    workspace_io: bool | None = like(EmitOptions, "workspace_io", None)
    devices: Devices = group()
    project: Path | None = like(RunRequest, "project", None)

    def run(self) -> None:
        wishes = self.wishes
        self._require_sense()
        if self.model.is_dir():
            self._refuse()
            board = load_board(self.board).name if "--board" in given_of(self.context) else None
            run_folder(self.model, wishes, self.as_json, board=board)
            return
        self.devices.require_sense(self.engines.accelerators)
        request = self.asked()
        require_places(wishes)
        if self.project is not None:
            _require_new(self.project)
        if self.template is not None:
            _run_through(self.template, request, self.as_json)
        elif wishes.options:
            wanted = "give --template, or a project's DIR"
            raise UaccelError(f"--option is for the server of a project or a template; {wanted}")
        else:
            run_model(request, self.cache, self.as_json)

    def asked(self) -> RunRequest:
        """Returns the run of the model."""
        more = {"workspace_io": self.workspace_io, "devices": self.devices, "project": self.project}
        return self.request(self.model, wishes=self.wishes, **more)

    def _require_sense(self) -> None:
        """Raises an error for options that mean nothing together."""
        wishes = self.wishes
        if wishes.sequence and wishes.repeat > 1:
            raise UaccelError("--sequence runs each frame once, in order; leave --repeat away")
        if wishes.verified_samples is not None and not wishes.more_samples:
            raise UaccelError("--samples is for --verify without --inputs and without --sequence; leave it away")

    def _refuse(self) -> None:
        """Raises an error for options that mean nothing for a project, which was compiled already."""
        given = given_of(self.context, names_of(ProjectRunOptions, Cached, OnBoard) | {"model"})
        if given:
            raise UaccelError(f"{given[0]} is for a model file, and MODEL is a folder; leave it away")


def _run_through(template: Path, request: RunRequest, as_json: bool) -> None:
    """Runs a model in a project that a user's template makes."""
    if request.engines.accelerators:
        raise UaccelError("--template takes no --accelerator yet; leave one of them away")
    if request.emit.feed or request.emit.ram is not None:
        raise UaccelError("--template takes neither --ram nor --feed; leave them away")
    if request.emit.pools or request.emit.constant_pools:
        raise UaccelError("--template takes neither --workspace-pool nor --constant-pool; leave them away")
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        run_on_template(request, template, request.project or Path(temporary) / "project", as_json)


def _require_new(folder: Path) -> None:
    """Raises an error if a folder is not empty or cannot be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UaccelError(f"--project {folder} exists already; name a folder that does not")
    above = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not above.is_dir():
        raise UaccelError(f"--project {folder} cannot be made: {above} is no folder")
