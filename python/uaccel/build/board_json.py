"""Writes and reads ``board/board.json``, by which a project's server knows its board without a board file.

It also has the command lines of flashing tools and of QEMU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

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
from uaccel.errors import UaccelError, need
from uaccel.util import incoming
from uaccel.util.files import parse_json
from uaccel.util.form import FLAG, TEXT, WHOLE, Form, Maybe, Rows, Value, complaint

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


# ``board/board.json``: what the Project API server of a project must know of its board.
#
# It holds command lines ready to run, so that the server needs to know no board file, no emulator and no flash tool.
# ``{elf}`` stands for the firmware, ``{port}`` for the serial port, ``{board}`` for the folder of the board's files.

FILE: Final = Path("board") / "board.json"
BAUD: Final = 115200  # The baud rate of a line that states none.
# Projects on a user's disk hold this name: whoever moves the module leaves one at this place.
SIMULATED_BOARD: Final = "uaccel.session.simulated"

_COMMAND: Final = Rows(TEXT, least=1)
_AREA: Final = Value(
    "an origin and a length", lambda value: isinstance(value, list) and len(value) == 2 and all(map(WHOLE.holds, value))
)
_AREAS: Final = Rows(_AREA, least=1)
_RUNS: Final[dict[str, Form]] = {
    "host": {"command": _COMMAND},
    "qemu": {"command": _COMMAND, "ram": Maybe({"origin": WHOLE, "length": WHOLE}), "rtt?": _AREAS},
    "rtl": {"command": _COMMAND},
    "serial": {**dict.fromkeys(("port", "usb", "serial_number"), Maybe(TEXT)), "baud": WHOLE, "rtt?": _AREAS},
}
_KIND: Final = Value(f"one of {', '.join(_RUNS)}", lambda value: isinstance(value, str) and value in _RUNS)
# What pages show of a board.
TARGET: Final = {
    **dict.fromkeys(("description", "cpu"), TEXT),
    "features": [TEXT],
    "emulated": FLAG,
    "hz?": Maybe(WHOLE),
    "memories?": [{"name": TEXT, "kind": TEXT, "bytes": WHOLE}],
}
_FORM: Final = {
    "board": TEXT,
    "firmware": TEXT,
    "runs": Rows({"kind": _KIND}, least=1),
    "flash": [{"in": TEXT, "command": _COMMAND}],
    "timing?": {"core": TEXT, "objdump": TEXT, "slow": [Rows(WHOLE, least=3)]},
    "target?": TARGET,
}


@dataclass(frozen=True)
class ProjectBoard:
    """Holds what ``board.json`` says, checked."""

    name: str
    firmware: str
    runs: list[dict[str, Any]]
    flash: list[dict[str, Any]]
    # None in projects of older versions, which do not note them.
    timing: Timing | None = None
    target: dict[str, Any] | None = None


def read_board_json(project: Path) -> ProjectBoard:
    file = project / FILE
    with incoming.reading(UaccelError, file, "make the project anew", "not as it was made"):
        data = parse_json(incoming.read_text(file))
    wrong = complaint(data, _FORM) or next(filter(None, map(_wrong_run, data["runs"])), "")
    need(not wrong, f"{file} is not as it was made: {wrong}; make the project anew", UaccelError)
    timing = Timing.from_json(data["timing"]) if "timing" in data else None
    return ProjectBoard(data["board"], data["firmware"], data["runs"], data["flash"], timing, data.get("target"))


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
        "target": target_of(board),
    }
    return json.dumps(data, indent=2) + "\n"


def target_of(board: Board) -> dict[str, Any]:
    """What pages show of a board."""
    hz = board.timer.hz if board.timer.kind in ("systick", "mcycle") else None  # others tick apart from the CPU
    return {
        "board": board.name,
        "description": board.description,
        "cpu": board.cpu.name,
        "features": list(board.cpu.features),
        "hz": hz,
        "emulated": board.runs[0].kind in ("qemu", "rtl"),
        "memories": [{"name": m.name, "kind": m.kind, "bytes": m.length} for m in board.memories],
    }


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
