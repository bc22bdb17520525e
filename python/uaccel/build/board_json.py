"""Writes and reads ``board/board.json``, by which a project's server knows its board without a board file.

It also has the command lines of flashing tools and of QEMU, and checks JSON documents against a stated form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from uaccel.board import (
    Board,
    Console,
    Flash,
    OpenOcdFlash,
    PyOcdFlash,
    QemuRun,
    RtlRun,
    RttConsole,
    Run,
    SemihostingConsole,
    SerialRun,
)
from uaccel.cycles.estimate import Timing
from uaccel.errors import UaccelError
from uaccel.util import incoming
from uaccel.util.files import parse_json

# Commands that flash or reset a board: the one place that knows the tools' command lines.

# Stands for the firmware, as ``{port}`` does for the serial port and ``{board}`` for the board file's folder.
ELF: Final = "{elf}"


@dataclass(frozen=True)
class ToolCall:
    """Describes one call of a tool, in the folder of the board file or in that of the firmware."""

    folder: Literal["board", "build"]
    command: tuple[str, ...]


def flash_steps(flash: Flash) -> list[ToolCall]:
    """The calls that flash a board, in order. OpenOCD runs beside the firmware and names it without a path, since its
    scripts would take a path apart at blanks."""
    if isinstance(flash, OpenOcdFlash):
        return [_openocd(flash, "program firmware.elf verify reset exit")]
    if isinstance(flash, PyOcdFlash):
        return [_pyocd(flash, "flash", ELF)]
    return [ToolCall("board", words) for words in (flash.command, flash.reset) if words]


def reset_steps(flash: Flash) -> list[ToolCall]:
    """The calls that reset a board; none where the user gives no command for it."""
    if isinstance(flash, OpenOcdFlash):
        return [_openocd(flash, "init; reset run; shutdown")]
    if isinstance(flash, PyOcdFlash):
        return [_pyocd(flash, "reset")]
    return [ToolCall("board", flash.reset)] if flash.reset else []


def _openocd(flash: OpenOcdFlash, task: str) -> ToolCall:
    """A call of OpenOCD, whose configuration may lie beside the board file."""
    words = ["openocd", "-s", "{board}", *(word for file in flash.config for word in ("-f", file))]
    words += [word for command in (*flash.commands, task) for word in ("-c", command)]
    return ToolCall("build", tuple(words))


def _pyocd(flash: PyOcdFlash, task: str, *what: str) -> ToolCall:
    """A call of pyOCD, which does not wait for a probe. It runs where the board file lies, as its configuration
    (pyocd.yaml) may lie there too."""
    pack = () if flash.pack is None else ("--pack", flash.pack)
    return ToolCall("board", ("pyocd", task, "--no-wait", "--target", flash.target, *pack, *flash.options, *what))


# Forms of JSON documents: what one must look like that anybody may have written, stated as data and checked once.
#
# After the check, values have the types that the form states, and readers need no checks of their own. A document may
# have more keys than its form.

LARGEST: Final = 1 << 40  # The largest size, extent or count that is accepted.
MOST_DIMENSIONS: Final = 32
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_SHOWN: Final = 60  # Characters of a wrong value that a message shows.


@dataclass(frozen=True)
class JsonValue:
    """Accepts a single value for which ``holds`` is true; ``words`` say what is wanted."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class JsonRows:
    """Accepts a list of ``least`` entries or more, all of one form."""

    each: Form
    least: int = 0


@dataclass(frozen=True)
class Maybe:
    """Accepts null, or the inner form."""

    inner: Form


@dataclass(frozen=True)
class Named:
    """Accepts an object whose keys are names, any or those of C, and whose values have one form."""

    each: Form
    in_c: bool = False


@dataclass(frozen=True)
class Fields:
    """Accepts an object with these keys. The ``optional`` ones may be missing, and any if it is ``loose``."""

    wanted: dict[str, Form]
    optional: tuple[str, ...] = ()
    loose: bool = False


Form: TypeAlias = JsonValue | JsonRows | Maybe | Named | Fields

TEXT: Final = JsonValue("text", lambda value: isinstance(value, str))
FLAG: Final = JsonValue("true or false", lambda value: isinstance(value, bool))
INDEX: Final = JsonValue("a whole number", lambda value: type(value) is int and abs(value) <= LARGEST)
WHOLE: Final = JsonValue(
    f"a whole number from 0 to {LARGEST}", lambda value: type(value) is int and 0 <= value <= LARGEST
)
NUMBER: Final = JsonValue(
    "a number from 0", lambda value: isinstance(value, (int, float)) and type(value) is not bool and value >= 0
)
SHAPE: Final = JsonValue(
    f"at most {MOST_DIMENSIONS} whole numbers from 0 to {LARGEST}",
    lambda value: (
        isinstance(value, list)
        and len(value) <= MOST_DIMENSIONS
        and all(type(n) is int and 0 <= n <= LARGEST for n in value)
    ),
)
OBJECT: Final = JsonValue("an object", lambda value: isinstance(value, dict))


def digits(count: int) -> JsonValue:
    pattern = re.compile(f"[0-9a-f]{{{count}}}")
    return JsonValue(
        f"{count} hexadecimal digits", lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None
    )


def complaint(document: Any, form: Form) -> str:
    """The first thing that is wrong with a document, and where; empty if nothing is."""
    try:
        _check(document, form, "")
    except ValueError as error:
        return str(error)
    return ""


def _check(value: Any, form: Form, where: str) -> None:
    if isinstance(form, Maybe):
        if value is not None:
            _check(value, form.inner, where)
    elif isinstance(form, JsonValue):
        _need(form.holds(value), value, where, form.words)
    elif isinstance(form, JsonRows):
        wanted = f"a list of {form.least} or more" if form.least else "a list"
        _need(isinstance(value, list) and len(value) >= form.least, value, where, wanted)
        for number, entry in enumerate(value):
            _check(entry, form.each, f"{where}[{number}]")
    else:
        _need(isinstance(value, dict), value, where, "an object")
        if isinstance(form, Named):
            _check_names(value, form, where)
        else:
            _check_fields(value, form, where)


def _need(condition: bool, value: Any, where: str, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{where or 'it'} is {_shown(value)}, wanted {wanted}")


def _check_names(value: dict[str, Any], form: Named, where: str) -> None:
    for name, entry in value.items():
        if form.in_c and not IDENTIFIER.fullmatch(name):
            raise ValueError(f"{where} names {_shown(name)}, wanted letters, digits and underscores")
        _check(entry, form.each, f"{where}[{_shown(name)}]")


def _check_fields(value: dict[str, Any], form: Fields, where: str) -> None:
    for key, inner in form.wanted.items():
        path = f"{where}.{key}" if where else key
        if key in value:
            _check(value[key], inner, path)
        elif not form.loose and key not in form.optional:
            raise ValueError(f"{path} is missing")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


# ``board/board.json``: what the Project API server of a project must know of its board.
#
# It holds command lines ready to run, so that the server needs to know no board file, no emulator and no flash tool:
# ``{elf}`` stands for the firmware, ``{port}`` for the serial port, ``{board}`` for the folder of the board's files.

FILE: Final = Path("board") / "board.json"
BAUD: Final = 115200  # The baud rate of a line that states none.
# Projects on a user's disk hold this name: whoever moves the module leaves one at this place.
SIMULATED_BOARD: Final = "uaccel.session.simulated"

_COMMAND: Final = JsonRows(TEXT, least=1)
_AREA: Final = JsonValue(
    "an origin and a length", lambda value: isinstance(value, list) and len(value) == 2 and all(map(WHOLE.holds, value))
)
_AREAS: Final = JsonRows(_AREA, least=1)
_RUNS: Final = {
    "host": Fields({"command": _COMMAND}),
    "qemu": Fields(
        {
            "command": _COMMAND,
            "ram": Maybe(Fields({"origin": WHOLE, "length": WHOLE})),
            "rtt": _AREAS,
        },
        optional=("rtt",),
    ),
    "rtl": Fields({"command": _COMMAND}),
    "serial": Fields(
        {
            **dict.fromkeys(("port", "usb", "serial_number"), Maybe(TEXT)),
            "baud": WHOLE,
            "rtt": _AREAS,
        },
        optional=("rtt",),
    ),
}
_KIND: Final = JsonValue(f"one of {', '.join(_RUNS)}", lambda value: isinstance(value, str) and value in _RUNS)
_FORM: Final = Fields(
    {
        "board": TEXT,
        "firmware": TEXT,
        "runs": JsonRows(Fields({"kind": _KIND}), least=1),
        "flash": JsonRows(Fields({"in": TEXT, "command": _COMMAND})),
        "timing": Fields({"core": TEXT, "objdump": TEXT, "slow": JsonRows(JsonRows(WHOLE, least=3))}),
    },
    optional=("timing",),
)


@dataclass(frozen=True)
class ProjectBoard:
    """Holds what ``board.json`` says, checked."""

    name: str
    firmware: str
    runs: list[dict[str, Any]]
    flash: list[dict[str, Any]]
    timing: Timing | None = None  # None in projects of older versions, which do not note it.


def read_board_json(project: Path) -> ProjectBoard:
    file = project / FILE
    try:
        data = parse_json(incoming.read_text(file))
    except OSError as error:
        raise UaccelError(f"cannot read {file}: {error.strerror}; make the project anew") from error
    except ValueError as error:
        raise UaccelError(f"{file} is not as it was made ({error}); make the project anew") from error
    wrong = complaint(data, _FORM) or next(filter(None, map(_wrong_run, data["runs"])), "")
    if wrong:
        raise UaccelError(f"{file} is not as it was made ({wrong}); make the project anew")
    timing = Timing.from_json(data["timing"]) if "timing" in data else None
    return ProjectBoard(data["board"], data["firmware"], data["runs"], data["flash"], timing)


def _wrong_run(run: dict[str, Any]) -> str:
    wrong = complaint(run, _RUNS[run["kind"]])
    return f"in runs of kind {run['kind']} {wrong}" if wrong else ""


def board_json(board: Board, folder: Path | None) -> str:
    """The text of ``board.json``. ``folder`` is where files lie that the board file names; None for a project that
    shall work on any computer."""
    data = {
        "board": board.name,
        "firmware": "firmware" if board.cpu.arch == "native" else "firmware.elf",
        "folder": None if folder is None else str(folder),
        "runs": [_run(board, run) for run in board.runs],
        "flash": [] if board.flash is None else [_step(step) for step in flash_steps(board.flash)],
        "timing": Timing.of(board).to_json(),
    }
    return json.dumps(data, indent=2) + "\n"


def _run(board: Board, run: Run) -> dict[str, Any]:
    """One way to run firmware; ``rtt`` has origins and lengths of the RAM, where the line is a pair of rings in it."""
    rtt = {"rtt": board.ram_areas} if isinstance(board.console, RttConsole) else {}
    if isinstance(run, QemuRun):
        words = qemu_words(run, "stdio,signal=off", ELF, board.console)
        ram = None if run.ram_origin is None else {"origin": run.ram_origin, "length": run.ram_length}
        return {"kind": run.kind, "command": [f"qemu-system-{run.system}", *words], "ram": ram, **rtt}
    if isinstance(run, RtlRun):
        return {"kind": run.kind, "command": ["python3", "-m", SIMULATED_BOARD, board.name, ELF]}
    if isinstance(run, SerialRun):
        line = {"port": run.port, "usb": run.usb, "serial_number": run.serial_number}
        return {"kind": run.kind, **line, "baud": getattr(board.console, "baud", BAUD), **rtt}
    return {"kind": run.kind, "command": [ELF]}


def qemu_words(run: QemuRun, chardev: str, firmware: str, console: Console) -> list[str]:
    """QEMU's arguments; ``chardev`` is the host's side of the console, without an id: ``stdio,signal=off``.

    A UART goes through QEMU's multiplexer, since that has a buffer: bytes from host to guest pass several times faster
    than into a UART without a FIFO. The escape character 0x100 is no byte, so that data is never taken for a command.
    For rings in RAM the host's side is that of QEMU's debugger stub.
    """
    words = ["-machine", run.machine, "-display", "none", "-monitor", "none", *(["-cpu", run.cpu] if run.cpu else [])]
    words += run.args
    if isinstance(console, SemihostingConsole):
        words += ["-serial", "null", "-chardev", f"{chardev},id=console"]
        words += ["-semihosting-config", "enable=on,target=native,chardev=console"]
    elif isinstance(console, RttConsole):
        words += ["-serial", "null", "-chardev", f"{chardev},id=console", "-gdb", "chardev:console"]
    else:
        words += ["-serial", "null"] * run.serial
        words += ["-chardev", f"{chardev},id=console,mux=on", "-echr", "0x100", "-serial", "chardev:console"]
    return [*words, "-kernel", firmware]


def _step(step: ToolCall) -> dict[str, Any]:
    return {"in": step.folder, "command": list(step.command)}
