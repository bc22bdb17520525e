"""``uaccel run``: compile, build, run, and if asked prove the result."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.board import Board, load_board
from uaccel.cli.model_options import (
    AcceleratorOption,
    BoardOption,
    NameOption,
    require_accelerators,
)
from uaccel.cli.output import JsonFlag, Steps, emit, progress
from uaccel.cli.project_options import OptionOption, TemplateOption, read_options
from uaccel.cli.run_project import TemplateJob, Wishes, run_folder, run_on_template
from uaccel.cli.verdict import difference_words, show_verified, verdict
from uaccel.errors import UaccelError, VerificationError
from uaccel.files import require_writable, write_atomically

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.execute import Measured
    from uaccel.pipeline import Compiled

ModelOrProject = Annotated[
    Path, typer.Argument(metavar="MODEL|DIR", help="The model file (.tflite), or a project's folder.", readable=False)
]
InputsOption = Annotated[
    Path | None,
    typer.Option("--inputs", metavar="IN.npz", help="One array per input, or a batch of samples each.", readable=False),
]
OutputsOption = Annotated[Path | None, typer.Option("--outputs", metavar="OUT.npz", help="Write the outputs here.")]
RepeatOption = Annotated[int, typer.Option("--repeat", min=1, metavar="N", help="Run each sample so many times.")]
ProfileFlag = Annotated[bool, typer.Option("--profile", help="Tell what each layer takes.")]
PortOption = Annotated[
    str, typer.Option("--port", "-p", metavar="PORT", help="The serial port or URL of a board that is flashed already.")
]
VerifyFlag = Annotated[bool, typer.Option("--verify", help="Compare every output with the model's exact meaning.")]
KeepOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Keep the firmware project in this new folder."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Run a model or a project on a board.")(run_command)


def run_command(
    context: typer.Context,
    model: ModelOrProject,
    board: BoardOption = "host",
    accelerator: AcceleratorOption = None,
    inputs: InputsOption = None,
    outputs: OutputsOption = None,
    repeat: RepeatOption = 1,
    verify: VerifyFlag = False,
    profile: ProfileFlag = False,
    port: PortOption = "",
    name: NameOption = "",
    project: KeepOption = None,
    template: TemplateOption = None,
    option: OptionOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compile a model, build its firmware, run it, and show what came out; or run a project's firmware."""
    wishes = Wishes(inputs, outputs, repeat, profile, verify, port, read_options(option))
    if model.is_dir():
        given = {"accelerator": accelerator, "name": name, "project": project, "template": template}
        _refuse([option for option, value in given.items() if value])
        named = load_board(board).name if _is_given(context, "board") else None
        run_folder(model, wishes, as_json, board=named)
        return
    target = load_board(board)
    require_accelerators(accelerator)
    if outputs is not None:
        require_writable(outputs, "--outputs")
    if project is not None:
        _require_new(project)
    if template is not None:
        with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
            job = TemplateJob(model, target, Path(board).name, name, template, project or Path(temporary) / "project")
            run_on_template(job, wishes, as_json)
        return
    if option:
        raise UaccelError("--option is for the server of a project or a template; give --template, or a project's DIR")
    with progress() as step, tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        folder = project or Path(temporary) / "project"
        from uaccel.pipeline import compile_model

        compiled = compile_model(model, board=target.name, board_file=Path(board).name, name=name, progress=step)
        measured = _run(compiled, target, inputs, repeat, folder, port, profile, step)
        difference = None
        if verify:
            step("execute the exact meaning and compare")
            from uaccel.execute import first_difference

            meaning, signature = compiled.stages["import"], compiled.model.signature
            difference = first_difference(meaning, signature, measured.samples, measured.run)
        if outputs is not None:
            _write_outputs(outputs, compiled, measured, repeat)
    seconds = measured.run.seconds if profile or port else None  # else two runs of one kind would not be alike
    report = _report(compiled, measured, repeat) | {"seconds": seconds}
    if verify:
        report["verify"] = verdict(difference)
    emit(report, as_json, lambda console: _show(console, report))
    if difference is not None:
        raise VerificationError(difference_words(difference))


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _refuse(options: list[str]) -> None:
    """Options that would mean nothing for a project: it was compiled and made already."""
    if options:
        raise UaccelError(f"--{options[0]} is for a model file, and MODEL is a folder; leave it away")


def _require_new(folder: Path) -> None:
    """Complain about a folder that cannot be filled before the work that would fill it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UaccelError(f"--project {folder} exists already; name a folder that does not")
    above = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not above.is_dir():
        raise UaccelError(f"--project {folder} cannot be made: {above} is no folder")


def _run(
    compiled: Compiled,
    board: Board,
    inputs: Path | None,
    repeat: int,
    folder: Path,
    port: str,
    profile: bool,
    step: Steps,
) -> Measured:
    from uaccel.execute import run_on_board, tensor_types
    from uaccel.session.inputs import load_inputs, ramp

    types = tensor_types(compiled.model.signature.inputs)
    samples = load_inputs(inputs, types) if inputs else [[ramp(tensor) for tensor in types]]
    runs = [sample for sample in samples for _ in range(repeat)]
    return run_on_board(
        compiled, board, runs, folder, step, port=port, profile=profile, count=step.count, on_log=step.log
    )


def _batches(compiled: Compiled, measured: Measured, repeat: int) -> dict[str, Any]:
    from uaccel.report import batched

    per_sample = measured.run.outputs[::repeat]
    names = [spec.name for spec in compiled.model.signature.outputs]
    return {name: batched([values[i] for values in per_sample]) for i, name in enumerate(names)}


def _write_outputs(path: Path, compiled: Compiled, measured: Measured, repeat: int) -> None:
    from uaccel.npz import write_npz

    arrays = _batches(compiled, measured, repeat)
    write_atomically(path, lambda stream: write_npz(stream, arrays), "--outputs")


def _report(compiled: Compiled, measured: Measured, repeat: int) -> dict[str, Any]:
    from uaccel.report import compile_report, flash_report, layer_report, ram_report, tensors_report

    runs, taken = len(measured.samples), measured.footprint
    times, accounts = {time.layer: time for time in measured.layers}, measured.run.accounts
    return compile_report(compiled) | {
        "outputs": tensors_report(_batches(compiled, measured, repeat)),
        "runs": runs,
        "instructions": measured.run.instructions,
        "accelerator_cycles": measured.run.cycles,
        "layers": [
            layer_report(layer, runs, times.get(layer.index), accounts.get(layer.index))
            for layer in compiled.program.layers
        ],
        "ram": ram_report(compiled, static=taken.static, stack=measured.run.stack, session=taken.session.ram),
        "flash": flash_report(compiled, code=taken.code, session=taken.session.flash),
    }


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_layers, show_memory, show_outputs

    show_layers(console, report)
    show_memory(console, report)
    show_outputs(console, report["outputs"])
    show_verified(console, report)
