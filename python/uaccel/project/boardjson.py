"""What the Project API server of a project must know of its board: ``board/board.json``.

It holds command lines ready to run, so that the server needs to know no board file, no emulator and no flash tool:
``{elf}`` stands for the firmware, ``{port}`` for the serial port, ``{board}`` for the folder of the board's files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_json
from uaccel.board import Board, Console, QemuRun, RtlRun, RttConsole, Run, SemihostingConsole, SerialRun
from uaccel.cycles.timing import Timing
from uaccel.errors import UaccelError
from uaccel.project.flash_steps import ELF, Step, flash_steps
from uaccel.project.forms import TEXT, WHOLE, Fields, Maybe, Rows, Value, complaint

FILE: Final = Path("board") / "board.json"
BAUD: Final = 115200
"""Where a line has none of its own."""
# Projects on a user's disk hold this name: whoever moves the module leaves one at this place.
SIMULATED_BOARD: Final = "uaccel.session.simulated"

_COMMAND: Final = Rows(TEXT, least=1)
_AREA: Final = Value(
    "an origin and a length", lambda value: isinstance(value, list) and len(value) == 2 and all(map(WHOLE.holds, value))
)
_AREAS: Final = Rows(_AREA, least=1)
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
_KIND: Final = Value(f"one of {', '.join(_RUNS)}", lambda value: isinstance(value, str) and value in _RUNS)
_FORM: Final = Fields(
    {
        "board": TEXT,
        "firmware": TEXT,
        "runs": Rows(Fields({"kind": _KIND}), least=1),
        "flash": Rows(Fields({"in": TEXT, "command": _COMMAND})),
        "timing": Fields({"core": TEXT, "objdump": TEXT, "slow": Rows(Rows(WHOLE, least=3))}),
    },
    optional=("timing",),
)


@dataclass(frozen=True)
class ProjectBoard:
    """What such a file says."""

    name: str
    firmware: str
    runs: list[dict[str, Any]]
    flash: list[dict[str, Any]]
    timing: Timing | None = None
    """None in projects of before it was noted."""


def read_board_json(project: Path) -> ProjectBoard:
    file = project / FILE
    try:
        data = parse_json(file.read_text(encoding="utf-8"))
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
    """``folder``: where files lie that the board file names; none for what shall work on any computer."""
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
    """``rtt``: origins and lengths of the RAM, where rings in it are the line."""
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

    A UART goes through a multiplexer, whose escape character no byte can be: its buffer is what makes the way from
    host to guest several times faster than a UART without a FIFO is by itself. For rings in RAM the host's side is that
    of QEMU's debugger stub.
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


def _step(step: Step) -> dict[str, Any]:
    return {"in": step.folder, "command": list(step.command)}
