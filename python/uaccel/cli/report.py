"""``uaccel report``: a page about a run that is made now, or about runs that were stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from uaccel.basics.favour import Favour
from uaccel.basics.files import require_writable
from uaccel.board import load_board
from uaccel.cache import Cache
from uaccel.cli.cache import NoCacheFlag, kept
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
    CONSTANT_POOL,
    BoardOption,
    ConstantPoolOption,
    FavourOption,
    FeedFlag,
    InputShapeOption,
    PoolOption,
    RamOption,
    RecordsOption,
    read_pools,
    read_shapes,
)
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.cli.report_page import write_page
from uaccel.cli.report_sweep import is_sweep, write_sweep_page
from uaccel.cli.run import PortOption
from uaccel.errors import InputError, VerificationError
from uaccel.frontend import SUFFIXES
from uaccel.running.request import RunRequest, Wishes

OUTPUT = "-o"
Subjects = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL|RUN.json|RESULTS.jsonl...",
        help=f"A model file ({SUFFIXES}), what 'run --json' wrote, or 'sweep': several are compared.",
        readable=False,
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="The page (MODEL.html otherwise).")
]
InputsOption = Annotated[
    Path | None, typer.Option("--inputs", metavar="IN.npz", help="One array per input, or samples.", readable=False)
]
QuantizedOption = Annotated[
    Path | None,
    typer.Option(
        "--quantized",
        metavar="Q.json",
        help="What 'quantize --json' wrote when it made this model: the page shows each layer's signal to noise.",
        readable=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="Write a page that shows a run, or compares several.")(report_command)


def report_command(
    context: typer.Context,
    subjects: Subjects,
    board: BoardOption = "host",
    accelerator: AcceleratorOption = None,
    output: OutputOption = None,
    inputs: InputsOption = None,
    port: PortOption = "",
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
    workspace_pool: PoolOption = None,
    constant_pool: ConstantPoolOption = None,
    ram: RamOption = None,
    feed: FeedFlag = False,
    quantized: QuantizedOption = None,
    no_cache: NoCacheFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Compile, run and verify a model and write a page about it; or a page about runs or sweeps that were stored."""
    target = output or Path(f"{subjects[0].stem}.html")
    require_writable(target, OUTPUT)
    sweep = is_sweep(subjects, quantized)
    if sweep or any(subject.suffix == ".json" for subject in subjects):
        _refuse(context)
        report = write_sweep_page(subjects, target, OUTPUT) if sweep else _of_stored(subjects, target, quantized)
        emit(report, as_json, lambda console: console.print(_words(report), soft_wrap=True))
        return
    if len(subjects) > 1:
        raise InputError(f"{subjects[1]}: of models one at a time; compare what 'run --json --details' writes of each")
    _require(quantized, subjects[0])
    who = (accelerator, choose, pin, forbid, engines, fallback, objective, allow_none)
    wishes = Wishes(inputs=inputs, verify=True, every_layer=True, port=port, details=True)
    what = (None, records, read_shapes(input_shape), favour, read_pools(workspace_pool), ram, feed)
    given = (Path(board).name, "", None, wishes, engine_options(*who), *what)
    constants = read_pools(constant_pool, CONSTANT_POOL)
    request = RunRequest(subjects[0], load_board(board), *given, constant_pools=constants)
    _of_model(request, target, quantized, kept(no_cache), as_json)


def _of_model(request: RunRequest, target: Path, quantized: Path | None, cache: Cache | None, as_json: bool) -> None:
    with progress() as step:
        from uaccel.running.perform import perform

        ran = perform(request, step, cache)
        step("write the page")
        from uaccel.report import page, with_quantised

        run = ran.report if quantized is None else with_quantised(ran.report, quantized)
        write_page(target, page([run]), OUTPUT)
    report = _told(target, [run])
    emit(report, as_json, lambda console: console.print(_words(report), soft_wrap=True))
    if ran.complaint:
        raise VerificationError(ran.complaint)


def _require(quantized: Path | None, model: Path) -> None:
    """Before the work that it would be shown with."""
    if quantized is not None:
        from uaccel.report import require_quantised

        require_quantised(quantized, model)


def _refuse(context: typer.Context) -> None:
    """Options about a run, which is over: they would mean nothing."""
    for name in context.params:
        source = context.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE"
        if given and name not in ("subjects", "output", "quantized", "as_json"):
            raise InputError(f"--{name.replace('_', '-')} is for a model, and a stored run is given; leave it away")


def _of_stored(subjects: Sequence[Path], target: Path, quantized: Path | None) -> dict[str, Any]:
    from uaccel.report import page_of_files

    if quantized is not None and len(subjects) > 1:
        raise InputError("--quantized is for the page of one run, and several are compared; leave it away")
    text, runs = page_of_files(subjects, quantized)
    write_page(target, text, OUTPUT)
    return _told(target, [run.data for run in runs])


def _told(target: Path, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    models = [{"model": run["model"], "board": run["board"]} for run in runs]
    return {"report": str(target), "bytes": target.stat().st_size, "runs": models}


def _words(report: Mapping[str, Any]) -> str:
    return f"  Report    {report['report']}, {report['bytes']:,} bytes: open it in a browser"
