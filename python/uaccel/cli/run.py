"""Defines ``uaccel run``, which runs a model or a project, verifies it if asked, and shows what came out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from uaccel.bench import hold_if_known, port_of_project
from uaccel.board import load_board
from uaccel.cli.command import given_of, group, names_of
from uaccel.cli.options import Cached, Layered, ModelOptions, OnBoard, Templated
from uaccel.cli.output import REPORT, TRACE, ShownSteps, emit, progress, write_page_where, write_trace
from uaccel.cli.verdict import show_run
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError, VerificationError, need
from uaccel.frontend import SUFFIXES
from uaccel.runner.options import TOLD, CompileOptions, ProjectRunOptions
from uaccel.runner.request import Devices, RunRequest
from uaccel.util.files import require_writable, write_atomically
from uaccel.util.option import argument, like, option, words_of

if TYPE_CHECKING:
    from uaccel.runner.perform import Performed

# A run of a model or of a project, and the files that are written besides.


def show(run: Callable[[ShownSteps], Performed], wishes: ProjectRunOptions, how: Layered, **more: str) -> None:
    """Runs something, writes the files that were asked for, and shows the report, to which ``more`` is added."""
    with progress() as step:
        ran = run(step)
        if wishes.outputs is not None:
            from uaccel.model import write_npz

            write_atomically(wishes.outputs, lambda stream: write_npz(stream, ran.outputs), "--outputs")
        if wishes.trace is not None:
            write_trace(wishes.trace, ran.report["trace"])
        write_page_where(wishes.report, ran.report)
    report = ran.report | more
    if not wishes.detailed:
        report.pop("trace", None)
    emit(report, how.as_json, lambda console: show_run(console, report, every=how.layers))
    need(not ran.complaint, ran.complaint, VerificationError)


def require_places(wishes: ProjectRunOptions) -> None:
    """Raises an error for files that cannot be written, before the work that would fill them."""
    for path, flag in ((wishes.outputs, "--outputs"), (wishes.trace, TRACE), (wishes.report, REPORT)):
        if path is not None:
            require_writable(path, flag)


def run_on_template(request: RunRequest, template: Path, project: Path, step: ShownSteps) -> Performed:
    """Compiles a model, and does all that a client of microTVM does: create, build, flash, run.

    The project's code may call the model with tensors of its own, so these lie apart unless asked for."""
    from uaccel.build.project import build_any, create_from_archive, flash_any
    from uaccel.runner.compiled import archive_of
    from uaccel.runner.project_run import perform_project
    from uaccel.util.files import write_archive

    wishes = request.wishes
    job = replace(request, workspace_io=bool(request.workspace_io)).what()
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        archive = Path(temporary) / "model.tar"
        write_archive(archive, archive_of(job.compiled(step)))
        step("create the project")
        create_from_archive(archive, project, request.board, template=template, options=wishes.options)
    step("build the firmware")
    build_any(project, wishes.options, observe=False, verbose=False)
    step("flash")
    with hold_if_known(port_of_project(project, wishes.port)):
        flash_any(project, wishes.options, port=wishes.port, verbose=False)
    command = " ".join([job.command("run"), f"--template {quote(str(template))}", *words_of(wishes)])
    return perform_project(project, wishes, step, command=command)


# The command: its options, and which of them make sense together.


class RunCommand(ModelOptions, Templated, Layered, Cached):
    """Compile a model, build its firmware, run it, and show what came out; or run a project's firmware."""

    context: typer.Context
    model: Path = argument(f"The model file ({SUFFIXES}), or a project's folder.", "MODEL|DIR")
    wishes: ProjectRunOptions = group()
    compile: CompileOptions = group()
    workspace_io: bool | None = like(EmitOptions, "workspace_io", None)
    devices: Devices = group()
    project: Path | None = like(RunRequest, "project", None)
    against: Path | None = option(
        None, "Measure each layer with CMSIS-NN, too; DIR is a checkout of it.", metavar="DIR", panel=TOLD, rare=True
    )

    def run(self) -> None:
        wishes = self.wishes
        self._require_sense()
        if self.model.is_dir():
            self._refuse()
            board = load_board(self.board).name if "--board" in given_of(self.context) else None
            require_places(wishes)
            from uaccel.runner.project_run import perform_project

            run = partial(perform_project, self.model, wishes, board=board)
            show(run, wishes, self, project=str(self.model))
            return
        self.devices.require_sense(self.engines.accelerators)
        request = self.asked()
        require_places(wishes)
        if self.project is not None:
            _require_new(self.project)
        if self.template is not None and self.against is not None:
            raise UaccelError("--against builds projects of uaccel's own; leave --template away")
        if self.template is not None:
            _run_through(self.template, request, self)
        elif self.against is not None:
            from uaccel.peer.against import run_against

            show(partial(run_against, request, self.against, self.cache), wishes, self)
        elif wishes.options:
            wanted = "give --template, or a project's DIR"
            raise UaccelError(f"--option is for the server of a project or a template; {wanted}")
        else:
            from uaccel.runner.perform import perform

            show(partial(perform, request, cache=self.cache), wishes, self)

    def asked(self) -> RunRequest:
        """Returns the run of the model."""
        more = {"workspace_io": self.workspace_io, "devices": self.devices, "project": self.project, "beside": True}
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
        given = given_of(self.context, names_of(ProjectRunOptions, Layered, Cached, OnBoard) | {"model"})
        if given:
            raise UaccelError(f"{given[0]} is for a model file, and MODEL is a folder; leave it away")


def _run_through(template: Path, request: RunRequest, how: Layered) -> None:
    """Runs a model in a project that a user's template makes."""
    need(not request.engines.accelerators, "--template takes no --accelerator yet; leave one of them away", UaccelError)
    if request.emit.feed or request.emit.ram is not None:
        raise UaccelError("--template takes neither --ram nor --feed; leave them away")
    if request.emit.pools or request.emit.constant_pools:
        raise UaccelError("--template takes neither --workspace-pool nor --constant-pool; leave them away")
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        project = request.project or Path(temporary) / "project"
        show(partial(run_on_template, request, template, project), request.wishes, how)


def _require_new(folder: Path) -> None:
    """Raises an error if a folder is not empty or cannot be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UaccelError(f"--project {folder} exists already; name a folder that does not")
    above = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    need(above.is_dir(), f"--project {folder} cannot be made: {above} is no folder", UaccelError)
