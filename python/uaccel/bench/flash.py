"""Firmware onto a board, by the tool that its board file names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.bench.find import find_port
from uaccel.board import Board, CommandFlash, Flash
from uaccel.errors import BoardError, DeviceError, ToolError
from uaccel.project.flash_steps import Step, flash_steps, reset_steps
from uaccel.toolchain import find_program
from uaccel.toolchain.children import start

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
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        (Path(folder) / "firmware.elf").symlink_to(elf.resolve())  # however it is called
        for step in flash_steps(tool):
            call = _filled(step, board, elf.resolve(), port, Path(folder))
            _run(call, f"flashing board {board.name}", timeout, elf.with_name(LOG))


def reset(board: Board, port: str | None = None, *, timeout: float = FLASH_SECONDS) -> None:
    """Restart the board through its flash tool: for firmware that no longer answers."""
    steps = reset_steps(_tool_of(board))
    if not steps:
        raise BoardError(f"{board.where('flash')}: board {board.name} cannot be reset: [flash] has no 'reset'")
    with tempfile.TemporaryDirectory(prefix="uaccel-flash-") as folder:
        for step in steps:
            _run(_filled(step, board, None, port, Path(folder)), f"resetting board {board.name}", timeout, None)


def _tool_of(board: Board) -> Flash:
    if board.flash is None:
        raise BoardError(f"{board.file}: board {board.name} cannot be flashed: say with [flash] which tool does it")
    return board.flash


def _filled(step: Step, board: Board, elf: Path | None, port: str | None, beside_firmware: Path) -> Call:
    """With what its words stand for. A port is looked for where one of them asks for it."""
    if any("{port}" in word for word in step.command):
        port = find_port(board, port)
    folder = board.file.resolve().parent
    values = {"{elf}": str(elf or ""), "{port}": port or "", "{board}": str(folder)}
    program, *words = step.command
    for place, value in values.items():
        words = [word.replace(place, value) for word in words]
    found = (program,) if isinstance(board.flash, CommandFlash) else find_program(program).command
    return Call((*found, *words), folder if step.folder == "board" else beside_firmware)


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
        process = start(
            call.command,
            group=True,
            cwd=call.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
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
