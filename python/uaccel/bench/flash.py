"""Firmware onto a board, by the tool that its board file names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.bench.find import find_port
from uaccel.board import Board, Flash, OpenOcdFlash, PyOcdFlash
from uaccel.errors import BoardError, DeviceError, ToolError
from uaccel.toolchain import find_program

FLASH_SECONDS: Final = 300.0
LOG: Final = "flash.log"
SHOWN_LINES: Final = 3
TELLING: Final = re.compile(
    r"\b(error|fail(ed|ure|s)?|cannot|can't|unable|denied|not found|timed? ?out)\b|^\d+ [CE] ", re.IGNORECASE
)
"""Lines that say what went wrong; pyOCD marks them with C and E."""


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    command: tuple[str, ...]
    folder: Path
    """Where it runs."""


def flash(board: Board, elf: Path, port: str | None = None, *, timeout: float = FLASH_SECONDS) -> None:
    """Write firmware to the board and start it. ``port`` matters to tools whose command asks for it."""
    tool = _tool_of(board)
    if not elf.is_file():
        raise ToolError(f"there is no firmware at {elf}: build it first")
    log = elf.with_name(LOG)
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        for call in _flash_calls(board, tool, elf.resolve(), port, Path(folder)):
            _run(call, f"flashing board {board.name}", timeout, log)


def reset(board: Board, port: str | None = None, *, timeout: float = FLASH_SECONDS) -> None:
    """Restart the board through its flash tool: for firmware that no longer answers."""
    tool = _tool_of(board)
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        for call in _reset_calls(board, tool, port, Path(folder)):
            _run(call, f"resetting board {board.name}", timeout, None)


def _tool_of(board: Board) -> Flash:
    if board.flash is None:
        raise BoardError(f"{board.file}: board {board.name} cannot be flashed: say with [flash] which tool does it")
    return board.flash


def _flash_calls(board: Board, tool: Flash, elf: Path, port: str | None, folder: Path) -> list[Call]:
    beside = board.file.resolve().parent
    if isinstance(tool, OpenOcdFlash):
        (folder / "firmware.elf").symlink_to(elf)  # its scripts take a path apart at blanks
        return [_openocd(tool, beside, folder, "program firmware.elf verify reset exit")]
    if isinstance(tool, PyOcdFlash):
        return [_pyocd(tool, beside, "flash", str(elf))]
    calls = [_own(board, tool.command, elf, port)]
    return [*calls, _own(board, tool.reset, elf, port)] if tool.reset else calls


def _reset_calls(board: Board, tool: Flash, port: str | None, folder: Path) -> list[Call]:
    beside = board.file.resolve().parent
    if isinstance(tool, OpenOcdFlash):
        return [_openocd(tool, beside, folder, "init; reset run; shutdown")]
    if isinstance(tool, PyOcdFlash):
        return [_pyocd(tool, beside, "reset")]
    if not tool.reset:
        raise BoardError(f"{board.where('flash')}: board {board.name} cannot be reset: [flash] has no 'reset'")
    return [_own(board, tool.reset, None, port)]


def _openocd(tool: OpenOcdFlash, beside: Path, folder: Path, task: str) -> Call:
    """Its configuration may lie beside the board file."""
    words = [*find_program("openocd").command, "-s", str(beside)]
    for file in tool.config:
        words += ["-f", file]
    for command in (*tool.commands, task):
        words += ["-c", command]
    return Call(tuple(words), folder)


def _pyocd(tool: PyOcdFlash, beside: Path, task: str, *what: str) -> Call:
    """Runs where the board file is, as its own configuration (pyocd.yaml) may be; does not wait for a probe."""
    words = [*find_program("pyocd").command, task, "--no-wait", "--target", tool.target, *tool.options, *what]
    return Call(tuple(words), beside)


def _own(board: Board, words: Sequence[str], elf: Path | None, port: str | None) -> Call:
    """The user's command, which runs where the board file is."""
    if any("{port}" in word for word in words):
        port = find_port(board, port)
    filled = [word.replace("{elf}", str(elf or "")).replace("{port}", port or "") for word in words]
    return Call(tuple(filled), board.file.resolve().parent)


def _run(call: Call, what: str, timeout: float, log: Path | None) -> None:
    status, text = _execute(call, what, timeout)
    if log is not None:
        with suppress(OSError):
            log.write_text(text, encoding="utf-8")
    if status == 0:
        return
    tool = Path(call.command[0]).name
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    rest = f"; all that it said: {log}" if log is not None and log.is_file() else ""
    raise DeviceError(f"{what} failed: {tool} ended with {how}: {_words(text)}{rest}")


def _execute(call: Call, what: str, timeout: float) -> tuple[int, str]:
    """Exit status and output. In a session of its own: a tool's children end with it when time is up."""
    try:
        process = subprocess.Popen(
            call.command,
            cwd=call.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(
            f"{what} failed: cannot run {call.command[0]} ({error.strerror}); install it, or correct [flash]"
        ) from error
    with process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            said = _words((error.output or b"").decode(errors="replace"))
            raise DeviceError(
                f"{what} did not end within {timeout:g} s: {Path(call.command[0]).name} said last: {said}"
            ) from None
    return process.returncode, output.decode(errors="replace")


def _words(text: str) -> str:
    """The tool's own, in one line."""
    lines = [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]
    telling = [line for line in lines if TELLING.search(line)]
    return "; ".join(dict.fromkeys(telling[:SHOWN_LINES] or lines[-1:])) or "it said nothing"
