"""Defines the options that commands share, reads their values, and completes them in a shell."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uaccel.board import load_board
from uaccel.build.project_api import OptionValue
from uaccel.cli.cache import read_size
from uaccel.cli.output import JsonFlag
from uaccel.errors import UaccelError
from uaccel.frontend import SUFFIXES
from uaccel.runner.request import EngineRequest, RunRequest
from uaccel.util.favour import Favour
from uaccel.util.files import accelerator_entries, accelerator_folders, data_dir

# Completion in a shell: boards, ports, accelerators, layers. Nothing here loads TVM, which takes seconds.

CPU = "cpu"


def board_names(incomplete: str) -> list[str]:
    """Completes boards that come with uaccel; the shell itself completes board files."""
    return [name for name in sorted(file.stem for file in data_dir("boards").glob("*.toml")) if _fits(name, incomplete)]


def chip_names(incomplete: str) -> list[str]:
    """Completes chips for which a board file can be written."""
    from uaccel.board.chips import known_chips

    return [name for name in known_chips() if _fits(name, incomplete)]


def accelerator_names(incomplete: str) -> list[str]:
    """Completes accelerators, bundled and installed ones."""
    return [name for name in sorted({*accelerator_folders(), *accelerator_entries()}) if _fits(name, incomplete)]


def ports_here(incomplete: str) -> list[str]:
    """Completes serial ports of this computer."""
    from serial.tools import list_ports

    return [port for port in sorted(str(info.device) for info in list_ports.comports()) if _fits(port, incomplete)]


def layer_and_engine(context: typer.Context, incomplete: str) -> list[str]:
    """Completes ``LAYER=ENGINE`` for the model on the command line."""
    engines = [CPU, *(Path(name).name for name in context.params.get("accelerator") or ())]
    models = [Path(word) for word in _line() if word.lower().endswith(".tflite")]
    offered = [f"{layer}={engine}" for model in models[:1] for layer in _layers(model) for engine in engines]
    return [words for words in offered if _fits(words, incomplete)]


def _line() -> list[str]:
    """Returns the words so far, as Typer's scripts hand them over: one variable for bash, another for other shells.

    Click does not give positional words while an option still lacks its value."""
    text = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        return shlex.split(text)
    except ValueError:  # a quote is open
        return text.split()


def _fits(word: str, incomplete: str) -> bool:
    return word.startswith(incomplete)


def _layers(model: Path) -> list[str]:
    """Names the layers of a TFLite file, whose operators can be read quickly."""
    from uaccel.frontend.checks import Budget
    from uaccel.frontend.tflite.reader import read

    try:
        graph, _ = read(model, Budget(model))
    except UaccelError:
        return []
    return [f"{operator.name.lower()}_{number}" for number, operator in enumerate(graph.operators)]


# Options about accelerators: which of them there are, and how layers are divided.


class Choose(str, Enum):
    """Says how to decide between engines that could all compute a layer."""

    preference = "preference"
    cost = "cost"


class Fallback(str, Enum):
    """Says what happens at run time when an accelerator fails."""

    none = "none"
    cpu = "cpu"


class Objective(str, Enum):
    """Says what accelerators that plan their work shall save."""

    latency = "latency"
    energy = "energy"


AcceleratorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accelerator",
        "-a",
        metavar="NAME|PATH",
        help="May be given several times, the preferred one first.",
        autocompletion=accelerator_names,
    ),
]
ChooseOption = Annotated[
    Choose | None,
    typer.Option("--choose", help="Between engines: as they are named, or by estimated cost."),
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="LAYER=ENGINE",
        help="Compute a layer there, or say why not.",
        autocompletion=layer_and_engine,
    ),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="LAYER=ENGINE", help="Do not compute a layer there.", autocompletion=layer_and_engine
    ),
]
EnginesOption = Annotated[
    Path | None,
    typer.Option("--engines", metavar="FILE.toml", help="Pins, prohibitions and subgraphs.", readable=False),
]
FallbackOption = Annotated[
    Fallback, typer.Option("--fallback", help="Let the CPU compute what an accelerator fails at.")
]
ObjectiveOption = Annotated[
    Objective, typer.Option("--objective", help="What accelerators that plan save: cycles, or bytes moved.")
]
AllowNoneFlag = Annotated[
    bool, typer.Option("--allow-none", help="Go on where the accelerators compute nothing at all.")
]


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Holds the options about who computes what; commands that compile a model take them."""

    accelerator: AcceleratorOption = None
    choose: ChooseOption = None
    pin: PinOption = None
    forbid: ForbidOption = None
    engines: EnginesOption = None
    fallback: FallbackOption = Fallback.none
    objective: ObjectiveOption = Objective.latency
    allow_none: AllowNoneFlag = False

    def who(self) -> EngineRequest:
        """Returns what these options say; raises an error for those that mean nothing without an accelerator."""
        found = EngineRequest(
            tuple(self.accelerator or ()),
            self.choose.value if self.choose is not None else "",
            tuple(self.pin or ()),
            tuple(self.forbid or ()),
            self.engines,
            self.fallback is Fallback.cpu,
            self.objective.value,
            self.allow_none,
        )
        found.require_accelerators()
        return found


# Options of the commands that compile a model.

if TYPE_CHECKING:
    from uaccel.memory import Pool

# readable=False leaves it to the reader of a file to say what is wrong, which is more exact than Typer's message.
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
    """Reads ``NAME:D0,D1,...`` words as shapes by name; a name may hold colons itself."""
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
    """Reads ``NAME[=BYTES]`` words, for constants with ``:fetch[=BYTES]`` at the end.

    Names become words of C, and so are checked."""
    from uaccel.memory import Pool
    from uaccel.util.text import is_reserved

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
    """Reads ``:fetch[=BYTES]``; without a size, all constants of a layer are fetched."""
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
    """Holds the options of every command that compiles a model."""

    board: BoardOption = "host"
    input_shape: InputShapeOption = None
    favour: FavourOption = Favour.balanced
    limit_memory: ImportMemoryOption = None
    limit_seconds: ImportSecondsOption = None
    as_json: JsonFlag = False

    def request(self, model: Path, **more: Any) -> RunRequest:
        """Makes a request; ``more``: what the command's own options say."""
        return RunRequest(model, load_board(self.board), Path(self.board).name, **self._given(), **more)

    def _given(self) -> dict[str, Any]:
        return {"engines": self.who(), "input_shapes": read_shapes(self.input_shape), "favour": self.favour}


@dataclass(frozen=True, kw_only=True)
class CompileOptions(ModelOptions):
    """Adds the options of commands that choose kernels by records, and fit a model into RAM."""

    records: RecordsOption = None
    ram: RamOption = None

    def _given(self) -> dict[str, Any]:
        return super()._given() | {"records": self.records, "ram": self.ram}


@dataclass(frozen=True, kw_only=True)
class PlacedOptions(CompileOptions):
    """Adds the options about memory that the application hands over, and about constants."""

    workspace_pool: PoolOption = None
    constant_pool: ConstantPoolOption = None
    feed: FeedFlag = False

    def _given(self) -> dict[str, Any]:
        pools = {
            "pools": read_pools(self.workspace_pool),
            "constant_pools": read_pools(self.constant_pool, CONSTANT_POOL),
        }
        return super()._given() | pools | {"feed": self.feed}


# Options about the device behind an accelerator's driver.


class DeviceChoice(str, Enum):
    """Says what stands behind drivers."""

    model = "model"
    rtl = "rtl"


DeviceOption = Annotated[
    DeviceChoice,
    typer.Option("--device", help="Behind the drivers: models of the devices, or their Verilog, verilated."),
]
WavesOption = Annotated[
    Path | None, typer.Option("--waves", metavar="FILE.fst|FILE.vcd", help="Write the waveform of the RTL.")
]
WavesLayerOption = Annotated[
    str, typer.Option("--waves-layer", metavar="LAYER", help="Of the waveform only what belongs to this layer.")
]
CoverageOption = Annotated[
    Path | None,
    typer.Option("--coverage", metavar="DIR", help="Add what of the RTL was exercised, for verilator_coverage."),
]


# Options of the commands on firmware projects.

ProjectArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The project's folder, as 'uaccel create' makes it.", readable=False)
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the project's server; may be repeated."),
]
TemplateOption = Annotated[
    Path | None,
    typer.Option("--template", "-t", metavar="DIR", help="A template of your own, with its Project API server."),
]
StandaloneCrtOption = Annotated[
    Path | None,
    typer.Option(
        "--standalone-crt",
        metavar="DIR",
        help="With --template: the folder of C sources that it copies from, such as TVM's build/standalone_crt.",
    ),
]
VerboseFlag = Annotated[bool, typer.Option("--verbose", "-v", help="Show what the tools print, on stderr.")]


def read_options(words: list[str] | None) -> dict[str, OptionValue]:
    """Reads ``NAME=VALUE`` words; the project's server refuses names that it does not know."""
    options: dict[str, OptionValue] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UaccelError(f"--option {word!r}: wanted NAME=VALUE")
        if name in options:
            raise UaccelError(f"--option {name} is given twice; leave one away")
        options[name] = value
    return options


# Options of sweeps and workers: the scheduler, its TLS files, and limits.

SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler (tcp://HOST:8786)."),
]
CaOption = Annotated[
    Path | None, typer.Option("--tls-ca", metavar="FILE", help="For tls://: the certificate of who signs.")
]
CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="For tls://: one's own certificate.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="For tls://: the key of it.")]
WaitOption = Annotated[
    float, typer.Option("--wait", min=1, metavar="SECONDS", help="How long rows wait for a worker that can run them.")
]
SecondsOption = Annotated[
    float | None, typer.Option("--limit-seconds", min=1, metavar="N", help="What one run may take, with its build.")
]
MemoryOption = Annotated[
    str | None, typer.Option("--limit-memory", metavar="SIZE", help="What the process of one run may take, as 2G.")
]
