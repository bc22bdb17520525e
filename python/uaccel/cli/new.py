"""``uaccel new``: working starting points for what a user brings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from uaccel.bench.targets import chip_of_pyocd
from uaccel.board import Board, load_board
from uaccel.board.chips import Chip, core_named, find_chip
from uaccel.board.from_chip import chip_board_text
from uaccel.board.pack import chip_in_pack
from uaccel.board.port import ports_folder
from uaccel.board.starter import starter_text
from uaccel.cli.completion import board_names, chip_names
from uaccel.cli.output import JsonFlag, emit
from uaccel.errors import BoardError, UaccelError

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The board's name; NAME.toml is written.")]
AcceleratorArgument = Annotated[str, typer.Argument(metavar="NAME", help="The accelerator's name, as C will have it.")]
FolderArgument = Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder to write (NAME).")]
LikeOption = Annotated[
    str,
    typer.Option("--like", metavar="BOARD", help="The board to begin with.", autocompletion=board_names),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="CHIP",
        help="A chip instead of a board: one that uaccel, pyOCD or a pack knows. No driver is needed.",
        autocompletion=chip_names,
    ),
]
CoreOption = Annotated[
    str,
    typer.Option(
        "--core", metavar="CORE", help="The chip's processor, where only pyOCD knows the chip, or where it has several."
    ),
]
PackOption = Annotated[
    Path | None,
    typer.Option(
        "--pack", metavar="FILE", help="A CMSIS-Pack that has the chip: memories, processor, flash algorithms."
    ),
]
PortFlag = Annotated[bool, typer.Option("--with-port", help="Copy the drivers too, into NAME_port, to change them.")]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Write a working starting point.")
    group.command("board")(new_board)
    group.command("accelerator")(new_accelerator)
    app.add_typer(group, name="new")


def new_board(
    name: NameArgument,
    like: LikeOption = "mps2_an386",
    with_port: PortFlag = False,
    target: TargetOption = None,
    core: CoreOption = "",
    pack: PackOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a board file with comments, in this folder: a board that works, for you to change."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BoardError(f"{name!r} cannot name a board; wanted lower-case letters, digits and underscores")
    if core and target is None and pack is None:
        raise BoardError(f"--core {core} is for a chip: name it with --target")
    if target is not None or pack is not None:
        if with_port:
            raise BoardError("--with-port copies drivers, and a board with --target has none; leave one of them out")
        _new_board_of_chip(name, _chip(target or "", core, pack), as_json)
        return
    model = load_board(like)
    port = f"{name}_port" if with_port else None
    written = [Path(f"{name}.toml"), *([Path(port)] if port else [])]
    _require_new(written)
    written[0].write_text(starter_text(model, name, port or _own_port(model)), encoding="utf-8")
    if port is not None:
        shutil.copytree(model.port.folder, port)
    load_board(written[0])
    files = [str(path) for path in written]
    _told(name, {"like": model.name}, files, f"{model.name} as {name}", as_json)


def _chip(target: str, core: str, pack: Path | None) -> Chip:
    if pack is not None:
        return chip_in_pack(pack, target, core)
    chip = find_chip(target)
    if chip is None:
        if core:
            core_named(core)
        chip = chip_of_pyocd(target, core)
    return chip


def _new_board_of_chip(name: str, chip: Chip, as_json: bool) -> None:
    file = Path(f"{name}.toml")
    _require_new([file])
    file.write_text(chip_board_text(name, chip), encoding="utf-8")
    try:
        load_board(file)
    except BoardError:
        file.unlink()
        raise
    _told(name, {"target": chip.name}, [str(file)], f"{chip.about}, through a debug probe (RTT)", as_json)


def _require_new(paths: list[Path]) -> None:
    for path in paths:
        if path.exists():
            raise UaccelError(f"{path} exists already; choose another name, or remove it")


def _told(name: str, origin: dict[str, str], files: list[str], what: str, as_json: bool) -> None:
    emit(
        {"board": name, **origin, "files": files},
        as_json,
        lambda console: console.print(
            f"  Wrote {' and '.join(files)}: {what}.\n  Use it with --board ./{name}.toml",
            soft_wrap=True,
        ),
    )


def new_accelerator(name: AcceleratorArgument, folder: FolderArgument = None, as_json: JsonFlag = False) -> None:
    """Write a small accelerator that works, for you to change: description, driver, device model and tests."""
    from uaccel.accelerator.starter import write_starter

    target = folder or Path(name)
    files = [str(target / path) for path in write_starter(name, target)]
    where = str(target) if target.is_absolute() else f"./{target}"
    get_pytest = "" if find_spec("pytest") else "pip install pytest; "  # no part of uaccel
    test, use = shlex.join(["pytest", str(target)]), shlex.join(["--accelerator", where])
    emit(
        {"accelerator": name, "folder": str(target), "files": files},
        as_json,
        lambda console: console.print(
            "\n".join(f"  Wrote {file}" for file in files)
            + f"\n  Test it with: {get_pytest}{test}\n  Use it with {use}",
            soft_wrap=True,
        ),
    )


def _own_port(board: Board) -> str | None:
    """Where the port of a user's own board lies, as seen from here."""
    if board.port.folder.parent == ports_folder():
        return None
    return os.path.relpath(board.port.folder)
