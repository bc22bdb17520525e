"""``uaccel export``: a model as what somebody's build system takes."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.basics.favour import Favour
from uaccel.basics.files import require_new_folder, write_folder
from uaccel.board import load_board
from uaccel.cli.engine_options import (
    AcceleratorOption,
    AllowNoneFlag,
    ChooseOption,
    EnginesOption,
    Fallback,
    FallbackOption,
    ForbidOption,
    Objective,
    ObjectiveOption,
    PinOption,
    engine_options,
)
from uaccel.cli.model_options import (
    BoardOption,
    FavourOption,
    InputShapeOption,
    ModelArgument,
    NameOption,
    RamOption,
    RecordsOption,
    emit_options,
    read_shapes,
)
from uaccel.cli.output import JsonFlag, emit, progress

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.packagers.export import Export
    from uaccel.pipeline import Compiled
    from uaccel.running.job import Job


class Format(str, Enum):
    """What a model can be exported to; ``packagers/formats.py`` has what each is made by."""

    c = "c"
    single = "single"
    cmake = "cmake"
    make = "make"
    arduino = "arduino"
    platformio = "platformio"
    zephyr = "zephyr"
    esp_idf = "esp-idf"
    cmsis_pack = "cmsis-pack"


ToOption = Annotated[
    Format, typer.Option("--to", metavar="FORMAT", help="One of: " + ", ".join(f.value for f in Format) + ".")
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write, a new one.")]
InputsOption = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        metavar="IN.npz",
        help="The example's sample: one array per input (a ramp otherwise).",
        readable=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", short_help="Write a model as a library for a build system.")(export_command)


def export_command(
    model: ModelArgument,
    to: ToOption,
    output: OutputOption,
    board: BoardOption = "host",
    accelerator: AcceleratorOption = None,
    name: NameOption = "",
    inputs: InputsOption = None,
    choose: ChooseOption = None,
    pin: PinOption = None,
    forbid: ForbidOption = None,
    engines: EnginesOption = None,
    fallback: FallbackOption = Fallback.none,
    objective: ObjectiveOption = Objective.latency,
    allow_none: AllowNoneFlag = False,
    records: RecordsOption = None,
    input_shape: InputShapeOption = None,
    favour: FavourOption = Favour.balanced,
    ram: RamOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a model as a library for a build system, with an example and a README."""
    target = load_board(board)
    engine = engine_options(accelerator, choose, pin, forbid, engines, fallback, objective, allow_none)
    require_new_folder(output, "-o")
    with progress() as step:
        from uaccel.packagers.formats import export_files
        from uaccel.running.job import Job
        from uaccel.telling.report import compile_report

        options, shapes = emit_options(None, workspace_io=False, ram=ram), read_shapes(input_shape)
        job = Job(model, target, Path(board).name, name, options, *engine.arguments(), records, shapes, favour)
        compiled = job.compiled(step)
        engine.require_offload(compiled)
        step("execute the exact meaning of the sample")
        export = _export(compiled, job, inputs, _command(job, to, output))
        step(f"write {output}")
        files = export_files(export, to.value)
        write_folder(output, files, "-o")
    report = compile_report(compiled) | {"format": to.value, "folder": str(output), "files": sorted(files)}
    emit(report, as_json, lambda console: _show(console, report))


def _command(job: Job, to: Format, output: Path) -> str:
    """What to type beside the model file for the same."""
    words = shlex.split(job.command("export"))
    words[2] = job.model.name
    return shlex.join([*words, "--to", to.value, "-o", output.resolve().name])


def _export(compiled: Compiled, job: Job, inputs: Path | None, command: str) -> Export:
    from uaccel.errors import InputError
    from uaccel.running.exported import exported
    from uaccel.running.firmware import tensor_types
    from uaccel.running.samples import default_samples
    from uaccel.session.inputs import load_inputs

    types = tensor_types(compiled.model.signature.inputs)
    samples = load_inputs(inputs, types) if inputs is not None else default_samples(types, 1)
    if len(samples) != 1:
        raise InputError(
            f"{inputs} holds {len(samples)} samples, and the example feeds one; give an array of one sample"
        )
    return exported(compiled, job.board, samples[0], command)


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_layers, show_memory

    show_layers(console, report)
    show_memory(console, report)
    folder = report["folder"]
    console.print(f"  Export    {folder}, format {report['format']}, {len(report['files'])} files", soft_wrap=True)
    console.print(f"  Next      cat {shlex.quote(str(Path(folder) / 'README.md'))}", soft_wrap=True)
