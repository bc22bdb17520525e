"""Options that the commands on models share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uaccel.basics.favour import Favour
from uaccel.errors import UaccelError
from uaccel.frontend import SUFFIXES

if TYPE_CHECKING:
    from uaccel.emit.options import EmitOptions

# readable=False: a file that may not be read is no error of usage, and our own words say more.
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help=f"The model file ({SUFFIXES}).", readable=False)]
BoardOption = Annotated[
    str, typer.Option("--board", "-b", metavar="BOARD", help="A board's name, or the path of a board file.")
]
NameOption = Annotated[
    str,
    typer.Option("--name", metavar="NAME", help="The model's name in C (from the file's name otherwise)."),
]


RecordsOption = Annotated[
    Path | None,
    typer.Option(
        "--records", metavar="RECORDS.json", help="Choose kernels by what 'uaccel tune' measured.", readable=False
    ),
]
FavourOption = Annotated[
    Favour,
    typer.Option("--favour", help="What to save where one costs another: time ('speed'), flash ('size') or 'ram'."),
]
WorkspaceIoOption = Annotated[
    bool | None,
    typer.Option(
        "--workspace-io/--no-workspace-io",
        help="Inputs and outputs lie in the arena, where they may share bytes with other tensors. 'run' does so with "
        "firmware that it makes and loads itself; 'compile' leaves them to the caller.",
        show_default=False,
    ),
]


def _checked_shapes(words: list[str] | None) -> list[str] | None:
    read_shapes(words)
    return words


InputShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="NAME:D0,D1,...",
        help="The shape of an input that the file leaves open; may be repeated.",
        callback=_checked_shapes,
    ),
]


def read_shapes(words: list[str] | None) -> dict[str, tuple[int, ...]]:
    """``NAME:D0,D1,...`` by name; a name may hold colons itself."""
    shapes: dict[str, tuple[int, ...]] = {}
    for word in words or []:
        name, _, extents = word.rpartition(":")
        if not name or not re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})*", extents):
            raise typer.BadParameter(f"{word!r}: wanted NAME:D0,D1,... as in x:1,3,224,224")
        if name in shapes:
            raise typer.BadParameter(f"{word!r}: input {name!r} has a shape already")
        shapes[name] = tuple(int(extent) for extent in extents.split(","))
        if 0 in shapes[name]:
            raise typer.BadParameter(f"{word!r}: extents must be positive")
    return shapes


def emit_options(workspace_pool: str, *, workspace_io: bool) -> EmitOptions:
    """Checked: the pool's name becomes a member of a C structure."""
    from uaccel.basics.sinks import is_reserved
    from uaccel.emit.options import EmitOptions

    if workspace_pool and (not re.fullmatch(r"[A-Za-z]\w*", workspace_pool, re.ASCII) or is_reserved(workspace_pool)):
        raise UaccelError(
            f"--workspace-pool {workspace_pool!r} cannot name a member of a C structure; "
            "wanted a letter, then letters, digits and underscores, and no word of C"
        )
    return EmitOptions(workspace_pool=workspace_pool, workspace_io=workspace_io)
