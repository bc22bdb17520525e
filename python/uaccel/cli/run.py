"""Defines ``uaccel run``, which runs a model or a project, verifies it if asked, and shows what came out."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uaccel.board import load_board
from uaccel.cli.cache import NoCacheFlag, open_cache
from uaccel.cli.options import (
    CoverageOption,
    DeviceChoice,
    DeviceOption,
    NameOption,
    OptionOption,
    PlacedOptions,
    TemplateOption,
    WavesLayerOption,
    WavesOption,
    WorkspaceIoOption,
    ports_here,
    read_options,
)
from uaccel.cli.output import (
    OPTION,
    REPORT,
    ReportOption,
    TraceOption,
    add_command,
    emit,
    first_given,
    progress,
    write_page_where,
    write_trace,
)
from uaccel.cli.run_project import TemplateJob, run_folder, run_on_template
from uaccel.cli.verdict import show_verified
from uaccel.errors import UaccelError, VerificationError
from uaccel.frontend import SUFFIXES
from uaccel.runner.request import Devices, ProjectRunOptions, RunRequest
from uaccel.util.cache import Cache
from uaccel.util.files import require_writable, write_atomically

# The run of a model file, and the files that are written besides.

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.runner.perform import Performed


def run_model(request: RunRequest, cache: Cache | None, as_json: bool) -> None:
    """Runs a model, writes the files that were asked for, and shows the report."""
    wishes = request.wishes
    with progress() as step:
        from uaccel.runner.perform import perform

        ran = perform(request, step, cache)
        if wishes.outputs is not None:
            _write_outputs(ran)
        if wishes.trace is not None:
            write_trace(wishes.trace, ran.trace)
        write_page_where(wishes.report, ran.report)
    report = ran.report
    if not wishes.details:
        report.pop("trace", None)
    emit(report, as_json, lambda console: _show(console, report))
    if ran.complaint:
        raise VerificationError(ran.complaint)


def _write_outputs(ran: Performed) -> None:
    from uaccel.model import write_npz

    assert ran.request.wishes.outputs is not None
    arrays = ran.outputs
    write_atomically(ran.request.wishes.outputs, lambda stream: write_npz(stream, arrays), "--outputs")


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.output import show_layers, show_memory, show_outputs

    show_layers(console, report)
    show_memory(console, report)
    show_outputs(console, report["outputs"])
    show_verified(console, report)


# The command: its options, and which of them make sense together.

ModelOrProject = Annotated[
    Path,
    typer.Argument(metavar="MODEL|DIR", help=f"The model file ({SUFFIXES}), or a project's folder.", readable=False),
]
InputsOption = Annotated[
    Path | None,
    typer.Option("--inputs", metavar="IN.npz", help="One array per input, or a batch of samples each.", readable=False),
]
OutputsOption = Annotated[Path | None, typer.Option("--outputs", metavar="OUT.npz", help="Write the outputs here.")]
RepeatOption = Annotated[int, typer.Option("--repeat", min=1, metavar="N", help="Run each sample so many times.")]
SequenceFlag = Annotated[
    bool,
    typer.Option("--sequence", help="The samples are frames of one sequence: the model's state goes on between them."),
]
ProfileFlag = Annotated[bool, typer.Option("--profile", help="Tell what each layer takes.")]
PortOption = Annotated[
    str,
    typer.Option("--port", "-p", metavar="PORT", help="The serial port or URL of a board.", autocompletion=ports_here),
]
NoFlashFlag = Annotated[
    bool, typer.Option("--no-flash", help="Talk to the firmware that is on the board already; write none to it.")
]
SymbolsFlag = Annotated[
    bool, typer.Option("--symbols", help="List every symbol of flash and RAM in the JSON, the largest first.")
]
DetailsFlag = Annotated[
    bool, typer.Option("--details", help="All that a report page shows in the JSON: symbols, C of layers, the trace.")
]
SamplesOption = Annotated[
    int | None,
    typer.Option("--samples", min=1, metavar="N", help="With --verify and without --inputs: so many samples (8)."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the random samples of --verify.")]
VerifyFlag = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Compare every output with the model's exact meaning; '--verify layers': find the first wrong layer.",
    ),
]
# ``cli/app.py`` replaces ``--verify layers`` by it, since Typer has no options with an optional value.
VerifyLayersFlag = Annotated[bool, typer.Option("--verify-layers", hidden=True)]
KeepOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Keep the firmware project in this new folder."),
]
# Options that only ``run`` has, and that are for a model file.
ABOUT_MODELS: Final = ("name", "project", "template", "workspace_io", "device", "waves", "waves_layer", "coverage")


@dataclass(frozen=True, kw_only=True)
class RunCommand(PlacedOptions):
    """Compile a model, build its firmware, run it, and show what came out; or run a project's firmware."""

    context: typer.Context
    model: ModelOrProject
    inputs: InputsOption = None
    outputs: OutputsOption = None
    repeat: RepeatOption = 1
    sequence: SequenceFlag = False
    verify: VerifyFlag = False
    samples: SamplesOption = None
    seed: SeedOption = 0
    profile: ProfileFlag = False
    symbols: SymbolsFlag = False
    trace: TraceOption = None
    details: DetailsFlag = False
    report: ReportOption = None
    port: PortOption = ""
    no_flash: NoFlashFlag = False
    name: NameOption = ""
    workspace_io: WorkspaceIoOption = None
    project: KeepOption = None
    template: TemplateOption = None
    option: OptionOption = None
    verify_layers: VerifyLayersFlag = False
    device: DeviceOption = DeviceChoice.model
    waves: WavesOption = None
    waves_layer: WavesLayerOption = ""
    coverage: CoverageOption = None
    no_cache: NoCacheFlag = False

    def run(self) -> None:
        self._require_sense()
        if self.model.is_dir():
            self._refuse()
            board = load_board(self.board).name if first_given(self.context, ["board"]) else None
            run_folder(self.model, self._wishes(), self.as_json, board=board)
            return
        job = self._job()
        _require_places(self.outputs, self.trace, self.project, self.report)
        if self.template is not None:
            _run_through(self.template, job, self.as_json)
        elif self.option:
            wanted = "give --template, or a project's DIR"
            raise UaccelError(f"--option is for the server of a project or a template; {wanted}")
        else:
            run_model(job, open_cache(self.no_cache), self.as_json)

    def _require_sense(self) -> None:
        """Raises an error for options that mean nothing together."""
        if self.sequence and self.repeat > 1:
            raise UaccelError("--sequence runs each frame once, in order; leave --repeat away")
        verified = self.verify or self.verify_layers
        if self.samples is not None and (self.inputs is not None or self.sequence or not verified):
            raise UaccelError("--samples is for --verify without --inputs and without --sequence; leave it away")

    def _wishes(self) -> ProjectRunOptions:
        return ProjectRunOptions(
            self.inputs,
            self.outputs,
            self.repeat,
            self.profile,
            self.verify or self.verify_layers,
            self.verify_layers,
            self.port,
            self.trace,
            read_options(self.option),
            self.symbols,
            self.sequence,
            self.samples,
            self.seed,
            details=self.details or self.report is not None,
            report=self.report,
            flashes=not self.no_flash,
        )

    def _refuse(self) -> None:
        """Raises an error for options that mean nothing for a project, which was compiled already."""
        shared = {field.name for field in fields(PlacedOptions)} - {"board", "as_json"}
        option = first_given(self.context, (*ABOUT_MODELS, *sorted(shared)))
        if option is not None:
            raise UaccelError(f"{option} is for a model file, and MODEL is a folder; leave it away")

    def _job(self) -> RunRequest:
        devices = Devices(self.device.value, self.waves, self.waves_layer, self.coverage)
        devices.require_sense(self.accelerator or [])
        return self.request(
            self.model,
            name=self.name,
            project=self.project,
            wishes=self._wishes(),
            workspace_io=self.workspace_io,
            devices=devices,
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, "run", "Run a model or a project on a board.", RunCommand)


def _run_through(template: Path, job: RunRequest, as_json: bool) -> None:
    """Runs a model in a project that a user's template makes."""
    if job.engines.accelerators:
        raise UaccelError("--template takes no --accelerator yet; leave one of them away")
    if job.feed or job.ram is not None:
        raise UaccelError("--template takes neither --ram nor --feed; leave them away")
    if job.pools or job.constant_pools:
        raise UaccelError("--template takes neither --workspace-pool nor --constant-pool; leave them away")
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        folder = job.project or Path(temporary) / "project"
        made = TemplateJob(
            job.model,
            job.board,
            job.board_file,
            job.name,
            template,
            folder,
            bool(job.workspace_io),
            job.records,
            job.input_shapes,
            job.favour,
        )
        run_on_template(made, job.wishes, as_json)


def _require_places(outputs: Path | None, trace: Path | None, project: Path | None, page: Path | None) -> None:
    """Raises an error for files and folders that cannot be written, before the work that would fill them."""
    for path, option in ((outputs, "--outputs"), (trace, OPTION), (page, REPORT)):
        if path is not None:
            require_writable(path, option)
    if project is not None:
        _require_new(project)


def _require_new(folder: Path) -> None:
    """Raises an error if a folder is not empty or cannot be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UaccelError(f"--project {folder} exists already; name a folder that does not")
    above = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not above.is_dir():
        raise UaccelError(f"--project {folder} cannot be made: {above} is no folder")
