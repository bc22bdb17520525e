"""Options that the commands on models share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uaccel.basics.favour import Favour
from uaccel.board import load_board
from uaccel.cli.cache import read_size
from uaccel.cli.completion import board_names
from uaccel.cli.engine_options import EngineOptions
from uaccel.cli.output import JsonFlag
from uaccel.errors import UaccelError
from uaccel.frontend import SUFFIXES
from uaccel.running.request import RunRequest

if TYPE_CHECKING:
    from uaccel.memory import Pool

# readable=False: a file that may not be read is no error of usage, and our own words say more.
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help=f"The model file ({SUFFIXES}).", readable=False)]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        "-b",
        metavar="BOARD",
        help="A board's name, or the path of a board file.",
        autocompletion=board_names,
    ),
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
WORKSPACE_POOL: Final = "--workspace-pool"
PoolOption = Annotated[
    list[str] | None,
    typer.Option(
        WORKSPACE_POOL,
        metavar="NAME[=BYTES]",
        help="The application passes the arena in, as pool NAME. May be repeated, the fastest first: tensors that are "
        "used most go into the first that has room; without BYTES a pool takes the rest.",
    ),
]
CONSTANT_POOL: Final = "--constant-pool"
ConstantPoolOption = Annotated[
    list[str] | None,
    typer.Option(
        CONSTANT_POOL,
        metavar="NAME[=BYTES][:fetch[=BYTES]]",
        help="Constants lie in the board's memory NAME. May be repeated, the fastest first: what is read most often "
        "goes into the first that has room; without BYTES a pool takes what the memory has free. With ':fetch' they "
        "are copied into the arena while the layer before computes, up to so many bytes for a layer.",
    ),
]
RamOption = Annotated[
    int | None,
    typer.Option(
        "--ram", metavar="BYTES", min=0, help="As fast as fits: inputs, outputs, state and workspace in so many bytes."
    ),
]
FeedFlag = Annotated[
    bool,
    typer.Option(
        "--feed", help="The application hands over an input (the first that can come so) some rows at a time."
    ),
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


def _limit_memory(text: str | None) -> str | None:
    from uaccel.frontend.limits import asked

    asked.memory = None if text is None else read_size(text, "--limit-memory")
    return text


def _limit_seconds(seconds: float | None) -> float | None:
    from uaccel.frontend.limits import asked

    asked.seconds = seconds
    return seconds


ImportMemoryOption = Annotated[
    str | None,
    typer.Option(
        "--limit-memory",
        metavar="SIZE",
        help="What importing the model may take beside uaccel's own memory, as 512M.",
        callback=_limit_memory,
    ),
]
ImportSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--limit-seconds",
        metavar="N",
        min=0.001,
        help="What importing the model may take on the clock.",
        callback=_limit_seconds,
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


def read_pools(words: list[str] | None, option: str = WORKSPACE_POOL) -> tuple[Pool, ...]:
    """``NAME[=BYTES]`` each, with ``:fetch[=BYTES]`` behind that for constants; checked, since names become words of
    C."""
    from uaccel.basics.sinks import is_reserved
    from uaccel.memory import Pool

    what = "a member of a C structure" if option == WORKSPACE_POOL else "a word of C"
    pools: list[Pool] = []
    for word in words or []:
        place, ahead, fetch = word.partition(":fetch") if option == CONSTANT_POOL else (word, "", "")
        name, given, size = place.partition("=")
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or is_reserved(name):
            raise UaccelError(
                f"{option} {name!r} cannot name {what}; "
                "wanted a letter, then letters, digits and underscores, and no word of C"
            )
        if name.upper() in {pool.name.upper() for pool in pools}:
            raise UaccelError(f"{option} {name} is given twice; name each pool once, the fastest first")
        if pools and pools[-1].size is None and option == WORKSPACE_POOL:
            raise UaccelError(
                f"{option} {name} comes after {pools[-1].name}, which has no size and takes the rest; "
                f"write {pools[-1].name}=BYTES"
            )
        told = f"{option} {word}"
        fetched = _fetched(told, fetch) if ahead else None
        pools.append(Pool(name, _bytes(told, size) if given else None, fetch=fetched))
    return tuple(pools)


def _fetched(word: str, size: str) -> int:
    """Without a size as much as a layer has."""
    from uaccel.memory import ANY_SIZE

    if size and not size.startswith("="):
        raise UaccelError(f"{word}: wanted ':fetch' or ':fetch=BYTES' at the end, as in qspi:fetch=32K")
    return _bytes(word, size[1:]) if size else ANY_SIZE


def _bytes(word: str, size: str) -> int:
    match = re.fullmatch(r"([0-9]{1,10})([KMG]?)", size)
    if match is None or not int(match[1]):
        raise UaccelError(f"{word}: {size!r} is no size; wanted bytes such as 4096, 64K or 16M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(EngineOptions):
    """What every command takes that compiles a model."""

    board: BoardOption = "host"
    input_shape: InputShapeOption = None
    favour: FavourOption = Favour.balanced
    limit_memory: ImportMemoryOption = None
    limit_seconds: ImportSecondsOption = None
    as_json: JsonFlag = False

    def request(self, model: Path, **more: Any) -> RunRequest:
        """``more``: what the command's own options say."""
        return RunRequest(model, load_board(self.board), Path(self.board).name, **self._given(), **more)

    def _given(self) -> dict[str, Any]:
        return {"engines": self.who(), "input_shapes": read_shapes(self.input_shape), "favour": self.favour}


@dataclass(frozen=True, kw_only=True)
class CompileOptions(ModelOptions):
    """What those take as well that measure nothing."""

    records: RecordsOption = None
    ram: RamOption = None

    def _given(self) -> dict[str, Any]:
        return super()._given() | {"records": self.records, "ram": self.ram}


@dataclass(frozen=True, kw_only=True)
class PlacedOptions(CompileOptions):
    """What those take as well whose application can hand memory over."""

    workspace_pool: PoolOption = None
    constant_pool: ConstantPoolOption = None
    feed: FeedFlag = False

    def _given(self) -> dict[str, Any]:
        pools = {
            "pools": read_pools(self.workspace_pool),
            "constant_pools": read_pools(self.constant_pool, CONSTANT_POOL),
        }
        return super()._given() | pools | {"feed": self.feed}
