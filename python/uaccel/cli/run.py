"""``uaccel run``: compile, build, run, and if asked prove the result."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final

import typer

from uaccel.basics.files import require_writable
from uaccel.board import load_board
from uaccel.cli.cache import NoCacheFlag, kept
from uaccel.cli.command import add_command, first_given
from uaccel.cli.completion import ports_here
from uaccel.cli.device_options import CoverageOption, Device, DeviceOption, WavesLayerOption, WavesOption
from uaccel.cli.model_options import NameOption, PlacedOptions, WorkspaceIoOption
from uaccel.cli.project_options import OptionOption, TemplateOption, read_options
from uaccel.cli.report_page import REPORT, ReportOption
from uaccel.cli.run_model import run_model
from uaccel.cli.run_project import TemplateJob, run_folder, run_on_template
from uaccel.cli.run_trace import OPTION, TraceOption
from uaccel.errors import UaccelError
from uaccel.frontend import SUFFIXES
from uaccel.running.devices import Devices
from uaccel.running.request import RunRequest, Wishes

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
VerifyLayersFlag = Annotated[bool, typer.Option("--verify-layers", hidden=True)]
"""What ``--verify layers`` stands for, see cli/app.py: options with an optional value are none of Typer's."""
KeepOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Keep the firmware project in this new folder."),
]
ABOUT_MODELS: Final = ("name", "project", "template", "workspace_io", "device", "waves", "waves_layer", "coverage")
"""Options of ``run`` alone that are for a model file."""


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
    device: DeviceOption = Device.model
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
            run_model(job, kept(self.no_cache), self.as_json)

    def _require_sense(self) -> None:
        """Of options that go together, or do not."""
        if self.sequence and self.repeat > 1:
            raise UaccelError("--sequence runs each frame once, in order; leave --repeat away")
        verified = self.verify or self.verify_layers
        if self.samples is not None and (self.inputs is not None or self.sequence or not verified):
            raise UaccelError("--samples is for --verify without --inputs and without --sequence; leave it away")

    def _wishes(self) -> Wishes:
        return Wishes(
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
        """Options that would mean nothing for a project: it was compiled and made already."""
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
    """Somebody's template makes the project."""
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
    """Complain about files and folders that cannot be written before the work whose result they would hold."""
    for path, option in ((outputs, "--outputs"), (trace, OPTION), (page, REPORT)):
        if path is not None:
            require_writable(path, option)
    if project is not None:
        _require_new(project)


def _require_new(folder: Path) -> None:
    """Complain about a folder that cannot be filled before the work that would fill it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UaccelError(f"--project {folder} exists already; name a folder that does not")
    above = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not above.is_dir():
        raise UaccelError(f"--project {folder} cannot be made: {above} is no folder")
