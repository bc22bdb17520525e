"""Finds boards and debug probes at a computer's ports, lets one user at a time have a board, and flashes it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from uaccel.board import Board, CommandFlash, Flash, RttConsole, SerialRun
from uaccel.board.chips import CLOCK_HZ, Chip, unknown_chip
from uaccel.board.cmsis_pack import chip_in_installed_packs, joined
from uaccel.build.board_json import FILE, ToolCall, flash_steps, read_board_json, reset_steps
from uaccel.build.children import run as run_program
from uaccel.build.programs import find_program
from uaccel.build.project_api import port_from_here
from uaccel.errors import BoardError, DeviceError, ToolError
from uaccel.session.connect import for_board

# USB devices: serial ports and debug probes that are plugged in, each with the boards that it may be.

USB_DEVICES: Final = Path("/sys/bus/usb/devices")  # Where Linux lists what is plugged in.
PROBES: Final[dict[str, str]] = {
    "0483:3744": "ST-LINK/V1",
    "0483:3748": "ST-LINK/V2",
    **dict.fromkeys(("0483:374b", "0483:3752"), "ST-LINK/V2-1"),
    **dict.fromkeys(
        ("0483:374d", "0483:374e", "0483:374f", "0483:3753", "0483:3754", "0483:3755", "0483:3757"), "ST-LINK/V3"
    ),
    "0d28:0204": "DAPLink",
    **dict.fromkeys(("2e8a:0004", "2e8a:000c"), "Raspberry Pi Debug Probe"),
    **dict.fromkeys(("03eb:2111", "03eb:2145", "03eb:2175"), "Atmel EDBG"),
    "03eb:2141": "Atmel-ICE",
    "1fc9:0090": "LPC-Link2",
    "1fc9:0143": "MCU-Link",
    "1d50:6018": "Black Magic Probe",
    **dict.fromkeys(("0403:6010", "0403:6011", "0403:6014"), "FTDI (JTAG)"),
}
MAKERS: Final = {"1366": "J-Link"}  # Vendors that make nothing but probes.
CMSIS_DAP: Final = "CMSIS-DAP"  # Probes of that protocol have it in their product's name.


@dataclass(frozen=True)
class SerialPort:
    """Describes a serial port; ``boards`` are the known boards that have its USB identity."""

    port: str
    usb: str | None
    serial_number: str | None
    description: str
    boards: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """Describes a debug probe at USB; ``boards`` are the known boards that have its USB identity."""

    kind: str
    usb: str
    serial_number: str | None
    description: str
    boards: tuple[str, ...]


def usb_ports() -> list[ListPortInfo]:
    """The serial ports at USB. A computer's own ports are left out, since they exist even with nothing at them."""
    return [info for info in list_ports.comports() if info.vid is not None]


def identity(info: ListPortInfo) -> str:
    """``vendor:product``, as board files have it."""
    return f"{info.vid:04x}:{info.pid:04x}"


def fits(run: SerialRun, usb: str | None, serial_number: str | None) -> bool:
    """Whether a USB device can be the one that a board file describes."""
    return run.usb in (None, usb) and run.serial_number in (None, serial_number)


def serial_ports(boards: Sequence[Board]) -> list[SerialPort]:
    """All serial ports of the computer, those at USB first."""
    found = []
    for info in sorted(list_ports.comports(), key=lambda info: (info.vid is None, str(info.device))):
        usb = None if info.vid is None else identity(info)
        about = "" if info.description in (None, "n/a") else str(info.description)
        guesses = _guesses(boards, usb, info.serial_number)
        found.append(SerialPort(str(info.device), usb, info.serial_number, about, guesses))
    return found


def probes(boards: Sequence[Board], devices: Path = USB_DEVICES) -> list[Probe]:
    """The debug probes that the operating system lists; ``devices`` is its folder of USB devices."""
    found = []
    for folder in sorted(devices.glob("*")):
        vendor, product = _word(folder / "idVendor"), _word(folder / "idProduct")
        about = _word(folder / "product")
        kind = _kind_of_probe(vendor, product, about)
        if kind:
            number = _word(folder / "serial") or None
            usb = f"{vendor}:{product}"
            found.append(Probe(kind, usb, number, about, _guesses(boards, usb, number)))
    return found


def _kind_of_probe(vendor: str, product: str, about: str) -> str:
    """The kind of a probe; empty for any other device."""
    known = PROBES.get(f"{vendor}:{product}") or MAKERS.get(vendor)
    return known or (CMSIS_DAP if CMSIS_DAP in about else "")


def _guesses(boards: Iterable[Board], usb: str | None, serial_number: str | None) -> tuple[str, ...]:
    """Names of the boards that a device may be; boards without a stated USB identity are left out."""
    return tuple(
        board.name
        for board in boards
        for run in board.runs
        if isinstance(run, SerialRun) and run.usb and fits(run, usb, serial_number)
    )


def _word(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# The port of a board: the one that is named, or the one with the board's USB identity.

AUTO: Final = "auto"
PROBE: Final = "rtt://pyocd"  # Whatever single debug probe is plugged in.


class BoardAbsentError(DeviceError):
    """The wanted board is not plugged in."""


def find_port(board: Board, port: str | None = None) -> str:
    """Finds a board's port as a device path or URL. ``port`` overrides the board file; ``auto`` searches USB ports."""
    if port and port != AUTO:
        return for_board(board, port)
    run = serial_run(board)
    if isinstance(board.console, RttConsole):
        return for_board(board, PROBE if run.port == AUTO else run.port)
    return _search(board, run) if port == AUTO or run.port == AUTO else run.port


def only_port() -> str:
    """The only USB port, whatever board is there; an error if there are none or several."""
    seen = usb_ports()
    if len(seen) == 1:
        return str(seen[0].device)
    raise BoardAbsentError(
        f"the only USB port is wanted, seen {_list(seen) or 'none'}; name one with --port, or the board with --board"
    )


def port_of_project(project: Path, port: str = "") -> str | None:
    """The port by which other programs know a project's board; None if nothing states one.

    A board that is flashed through a debug probe need not be at any port, so that is no error.
    """
    runs = read_board_json(project).runs if (project / FILE).is_file() else []
    serial = next((run for run in runs if run["kind"] == "serial"), {})
    named = port or serial.get("port")
    if named != AUTO:
        return port_from_here(named) if named else None
    run = SerialRun(AUTO, serial.get("usb"), serial.get("serial_number"))
    fitting = [info for info in usb_ports() if _fits(info, run)]
    told = run.usb is not None or run.serial_number is not None
    return str(fitting[0].device) if told and len(fitting) == 1 else None


def serial_run(board: Board) -> SerialRun:
    """The serial line by which the board file reaches the board."""
    for run in board.runs:
        if isinstance(run, SerialRun):
            return run
    raise BoardError(f"{board.file}: board {board.name} has no serial line: there is no [run.serial]")


def _search(board: Board, run: SerialRun) -> str:
    seen = usb_ports()
    fitting = [info for info in seen if _fits(info, run)]
    if len(fitting) == 1:
        return str(fitting[0].device)
    if not fitting:
        raise BoardAbsentError(
            f"board {board.name} is at no USB port: wanted {_wanted(run)}; seen {_list(seen) or 'none'}; "
            "plug it in, or name its port with --port"
        )
    raise DeviceError(
        f"{len(fitting)} USB ports may be board {board.name}: {_list(fitting)}; "
        f"name one with --port, or give 'serial_number' in [run.serial] of {board.file}"
    )


def _fits(info: ListPortInfo, run: SerialRun) -> bool:
    return fits(run, identity(info), info.serial_number)


def _wanted(run: SerialRun) -> str:
    what = [run.usb or "any device"]
    what += [f"with serial number {run.serial_number}"] if run.serial_number else []
    return " ".join(what)


def _list(ports: Sequence[ListPortInfo]) -> str:
    return ", ".join(
        f"{info.device} ({identity(info)}, serial number {info.serial_number or 'unknown'})" for info in ports
    )


# Locks: one user of a board at a time, over all programs of the computer, by a locked file for each port.

POLL_SECONDS: Final = 0.1
SHOWN: Final = 80  # Characters of the holder's command that messages show.
FOR_ALL: Final = 0o666  # The file's mode: every user of the computer may lock it.


class BoardBusyError(DeviceError):
    """Another program has the board."""


@contextmanager
def hold(port: str, *, wait: float = 0.0, user: str = "") -> Iterator[None]:
    """Locks the board at ``port`` for the block; waits up to ``wait`` seconds for others to release it.

    ``user`` is the name that others are shown. The operating system ends the lock with the process, however that ends.
    A process whose ancestor has the board may use it, too: a test that holds it may call ``uaccel run``.
    """
    file = lock_file(port)
    descriptor = _open(file)
    try:
        if not _lock(descriptor, port, wait):
            yield
            return
        _note(descriptor, user or " ".join(sys.argv))
        try:
            yield
        finally:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def hold_if_known(port: str | None) -> AbstractContextManager[None]:
    """Locks a board as ``hold`` does; does nothing for a board whose port is not known."""
    return hold(port) if port else nullcontext()


def lock_file(port: str) -> Path:
    """The lock file of a port, the same for all names (symbolic links) of it. It stays when nobody holds it: if it were
    deleted, two programs could lock two files of the same name."""
    device = port.partition("?")[0] if "://" in port else os.path.realpath(port)
    name = "".join(char if char.isalnum() else "-" for char in device)[-40:]
    number = hashlib.sha256(device.encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"uaccel-{number}-{name.strip('-')}.lock"


def _open(file: Path) -> int:
    """Opens the lock file; the first user makes it, for all users of the computer.

    It is opened without O_CREAT if it exists: in a folder that all may write to, Linux may refuse that for another
    user's file. O_NOFOLLOW keeps a planted link from leading elsewhere. The loop repeats if two programs meet here.
    """
    try:
        while True:
            with suppress(FileNotFoundError):
                return os.open(file, os.O_RDWR | os.O_NOFOLLOW)
            with suppress(FileExistsError):
                descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, FOR_ALL)
                os.fchmod(descriptor, FOR_ALL)
                return descriptor
    except OSError as error:
        raise DeviceError(f"cannot open lock file {file}: {error.strerror}; see who owns it") from error


def _lock(descriptor: int, port: str, wait: float) -> bool:
    """Locks the file; False if an ancestor of this process has it already."""
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if _holding_process(descriptor) in tuple(_ancestors()):
                return False
            if time.monotonic() >= deadline:
                waited = f", also after {wait:g} s" if wait else ""
                raise BoardBusyError(
                    f"the board at {port} is in use by {_holder(descriptor)}{waited}; try again when that has ended"
                ) from None
            time.sleep(POLL_SECONDS)


def _note(descriptor: int, user: str) -> None:
    text = json.dumps({"pid": os.getpid(), "user": user, "since": time.strftime("%H:%M:%S")})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _read_note(descriptor: int) -> Any:
    return json.loads(os.pread(descriptor, 1 << 16, 0))


def _holding_process(descriptor: int) -> int | None:
    try:
        return int(_read_note(descriptor)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _ancestors() -> Iterator[int]:
    """The parent process, its parent and so on, as far as Linux tells."""
    process = os.getppid()
    while process > 0:
        yield process
        try:
            status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        process = int(status.rpartition(")")[2].split()[1])


def _holder(descriptor: int) -> str:
    try:
        note = _read_note(descriptor)
        user = " ".join(str(note["user"]).split())
        short = user if len(user) <= SHOWN else user[: SHOWN - 3] + "..."
        return f"process {int(note['pid'])} ({short}) since {note['since']}"
    except (ValueError, KeyError, TypeError):
        return "another program"


# Chips that pyOCD knows: it states their memories, but not their core.

LEAST: Final = 8 << 10  # Bytes; smaller regions are option bytes and the like.
RAM_FROM, RAM_TO = 0x20000000, 0x30000000  # Half of Cortex-M's SRAM addresses; with TrustZone the rest is an alias.


def chip_of_pyocd(name: str, core: str) -> Chip:
    """A chip by pyOCD's name: from an installed pack, which states the core, or one that is built into pyOCD."""
    installed = chip_in_installed_packs(name, core)
    if installed is not None:
        return installed
    try:
        from pyocd.target.builtin import BUILTIN_TARGETS
    except ImportError:
        raise unknown_chip(name) from None
    wanted = name.lower().replace("-", "_")
    if wanted not in BUILTIN_TARGETS:
        raise unknown_chip(name, list(BUILTIN_TARGETS))
    if not core:
        raise BoardError(f"pyOCD knows {wanted}, but not its core: say it with --core, as in --core cortex-m4f")
    regions = list(getattr(BUILTIN_TARGETS[wanted], "MEMORY_MAP", ()))
    flash = joined([_span(region) for region in regions if region.is_flash and region.length >= LEAST])
    ram = joined([_span(region) for region in regions if region.is_ram and RAM_FROM <= region.start < RAM_TO])
    if not flash or not ram:
        raise BoardError(f"pyOCD does not tell the memories of {wanted}; use 'uaccel new board NAME --like BOARD'")
    about = f"{wanted}, as pyOCD knows it"
    return Chip(wanted, about, core, CLOCK_HZ, flash[0], tuple(ram), wanted, guessed_clock=True)


def _span(region: Any) -> tuple[int, int]:
    return int(region.start), int(region.length)


# Flashing and resetting a board by the tool that its board file names.

FLASH_SECONDS: Final = 300.0
LOG: Final = "flash.log"
SHOWN_LINES: Final = 3
# Lines of a tool's output that say what went wrong; pyOCD marks them with C and E.
TELLING: Final = re.compile(
    r"\b(error|fail(ed|ure|s)?|cannot|can't|unable|denied|not found|timed? ?out)\b|^\d+ [CE] ", re.IGNORECASE
)


def flash(board: Board, elf: Path, port: str | None = None, *, timeout: float = FLASH_SECONDS) -> None:
    """Writes firmware to the board and starts it. ``port`` matters to tools whose command asks for it."""
    tool = _tool_of(board)
    if not elf.is_file():
        raise ToolError(f"there is no firmware at {elf}: build it first")
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        (Path(folder) / "firmware.elf").symlink_to(elf.resolve())  # however it is called
        for step in flash_steps(tool):
            words, place = _filled(step, board, elf.resolve(), port, Path(folder))
            _run(words, place, f"flashing board {board.name}", timeout, elf.with_name(LOG))


def reset(board: Board, port: str | None = None, *, timeout: float = FLASH_SECONDS) -> None:
    """Restarts the board through its flash tool, for firmware that no longer answers."""
    steps = reset_steps(_tool_of(board))
    if not steps:
        raise BoardError(f"{board.where('flash')}: board {board.name} cannot be reset: [flash] has no 'reset'")
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        for step in steps:
            words, place = _filled(step, board, None, port, Path(folder))
            _run(words, place, f"resetting board {board.name}", timeout, None)


def _tool_of(board: Board) -> Flash:
    if board.flash is None:
        raise BoardError(f"{board.file}: board {board.name} cannot be flashed: say with [flash] which tool does it")
    return board.flash


def _filled(
    step: ToolCall, board: Board, elf: Path | None, port: str | None, beside_firmware: Path
) -> tuple[tuple[str, ...], Path]:
    """The words of a tool's call, with the values of their placeholders, and the folder in which it runs. A port is
    searched only if one of them asks for it."""
    if any("{port}" in word for word in step.command):
        port = find_port(board, port)
    folder = board.file.resolve().parent
    values = {"{elf}": str(elf or ""), "{port}": port or "", "{board}": str(folder)}
    program, *words = step.command
    for place, value in values.items():
        words = [word.replace(place, value) for word in words]
    found = (program,) if isinstance(board.flash, CommandFlash) else find_program(program).command
    return (*found, *words), folder if step.folder == "board" else beside_firmware


def _run(command: tuple[str, ...], folder: Path, what: str, timeout: float, log: Path | None) -> None:
    """Runs a tool, and all that it starts, which end as a whole when time is up."""
    tool = Path(command[0]).name
    try:
        done = run_program(command, timeout=timeout, cwd=folder)
    except OSError as error:
        raise ToolError(
            f"{what} failed: cannot run {command[0]} ({error.strerror}); install it, or correct [flash]"
        ) from error
    except subprocess.TimeoutExpired as error:
        said = _words((error.output or b"").decode(errors="replace"))
        raise DeviceError(f"{what} did not end within {timeout:g} s: {tool} said last: {said}") from None
    if log is not None:
        with suppress(OSError):
            log.write_text(done.stdout, encoding="utf-8")
    if done.returncode == 0:
        return
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    rest = f"; all that it said: {log}" if log is not None and log.is_file() else ""
    raise DeviceError(f"{what} failed: {tool} ended with {how}: {_words(done.stdout)}{rest}")


def _words(text: str) -> str:
    """The lines of a tool's output that say what went wrong, or else its last one, in one line."""
    lines = [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]
    telling = [line for line in lines if TELLING.search(line)]
    return "; ".join(dict.fromkeys(telling[:SHOWN_LINES] or lines[-1:])) or "it said nothing"
