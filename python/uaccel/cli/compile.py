"""``uaccel compile``: a model file to a Model Library Format archive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.basics.favour import Favour
from uaccel.basics.files import require_new_folder, require_writable
from uaccel.basics.mlf import write_archive
from uaccel.board import Board, load_board
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
    ImportMemoryOption,
    ImportSecondsOption,
    InputShapeOption,
    ModelArgument,
    NameOption,
    PoolOption,
    RamOption,
    RecordsOption,
    WorkspaceIoOption,
    read_pools,
    read_shapes,
)
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.errors import BoardError
from uaccel.running.request import RunRequest

if TYPE_CHECKING:
    from rich.console import Console

OutputOption = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="The archive to write (MODEL.tar): a folder where PATH ends with '/', a zip where it ends with '.zip'.",
        show_default=False,
    ),
]
FrontierFlag = Annotated[
    bool,
    typer.Option("--frontier", help="Compile nothing: tell what less RAM costs in time and flash, from most to least."),
]
DumpOption = Annotated[
    Path | None,
    typer.Option("--dump", metavar="DIR", help="Write what each stage made: IR, plan, regions, command streams."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile", short_help="Compile a model to C, in an archive.")(compile_command)


def compile_command(
    model: ModelArgument,
    board: BoardOption = "host",
    accelerator: AcceleratorOption = None,
    output: OutputOption = "",
    name: NameOption = "",
    workspace_pool: PoolOption = None,
    constant_pool: ConstantPoolOption = None,
    workspace_io: WorkspaceIoOption = None,
    choose: ChooseOption = None,
    pin: PinOption = None,
    forbid: ForbidOption = None,
    engines: EnginesOption = None,
    fallback: FallbackOption = Fallback.none,
    objective: ObjectiveOption = Objective.latency,
    allow_none: AllowNoneFlag = False,
    dump: DumpOption = None,
    records: RecordsOption = None,
    input_shape: InputShapeOption = None,
    favour: FavourOption = Favour.balanced,
    ram: RamOption = None,
    feed: FeedFlag = False,
    frontier: FrontierFlag = False,
    limit_memory: ImportMemoryOption = None,
    limit_seconds: ImportSecondsOption = None,
    no_cache: NoCacheFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Compile a model to plain C, in a Model Library Format archive."""
    request = RunRequest(
        model,
        load_board(board),
        Path(board).name,
        name,
        engines=engine_options(accelerator, choose, pin, forbid, engines, fallback, objective, allow_none),
        workspace_io=bool(workspace_io),
        records=records,
        input_shapes=read_shapes(input_shape),
        favour=favour,
        pools=read_pools(workspace_pool),
        ram=ram,
        feed=feed,
        constant_pools=read_pools(constant_pool, CONSTANT_POOL),
    )
    if frontier:
        _tell_frontier(request, as_json)
    else:
        _write(request, output, dump, None if dump is not None else kept(no_cache), as_json)


def _write(request: RunRequest, output: str, dump: Path | None, cache: Cache | None, as_json: bool) -> None:
    """The archive, as its name says; a dump needs all that the compiler knew, so that it takes no cache."""
    archive, folder = Path(output or f"{request.model.stem}.tar"), output.endswith("/")
    (require_new_folder if folder else require_writable)(archive, "-o")
    with progress() as step:
        from uaccel.running.prepare import prepare, require_offload

        prepared = prepare(request, step, cache)
        require_offload(request, prepared)
        if dump is not None:
            from uaccel.telling.dump import write_dump

            step(f"write {dump}")
            write_dump(prepared.compiled, dump)
        step(f"write {archive}")
        files = dict(prepared.firmware.files())
        unfit = _add_board(files, request.board)
        write_archive(archive, files, folder=folder)
    told = prepared.told["report"]
    report = told | {"archive": str(archive), "warnings": told["warnings"] + unfit}
    emit(report, as_json, lambda console: _show(console, report))


def _tell_frontier(request: RunRequest, as_json: bool) -> None:
    """What less RAM costs, each way a row."""
    with progress() as step:
        from uaccel.running.frontier import frontier_report

        report = frontier_report(replace(request, ram=None).what(), step)
    emit(report, as_json, lambda console: _show_frontier(console, report))


def _show_frontier(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_frontier

    show_frontier(console, report)


def _add_board(files: dict[str, bytes], board: Board) -> list[str]:
    """What a project for the board needs; where the model does not fit there, the C is of use all the same."""
    from uaccel.project.overlay import archive_overlay

    try:
        files |= archive_overlay(board, files)
    except BoardError as error:
        return [str(error)]
    return []


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_layers, show_memory

    show_layers(console, report)
    show_memory(console, report)
    console.print(f"  Archive   {report['archive']}", soft_wrap=True)  # a path stays in one piece
