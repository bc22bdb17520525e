"""A tool that takes minutes: it says now and then what it is at, and does not run longer than it may."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError
from uaccel.toolchain.children import start

OFTEN: Final = 15.0
"""Seconds between two lines."""
KEPT: Final = 1 << 22
"""Bytes at most of what it wrote: the last."""
_PASS: Final = re.compile(r"^[\d.]+\. Executing (\w+)")
_ROUTER: Final = re.compile(r"^Info: (\w[\w ]+?)(?:\.\.\.|:|\.)")


class OutOfTimeError(ToolError):
    """The tool was stopped."""


def watched(
    command: Sequence[str], folder: Path, step: str, limit: float, progress: Callable[[str], None]
) -> tuple[int, str]:
    """Its exit status, and what it wrote. ``limit`` in seconds, after which it is stopped."""
    progress(step)
    begun = told = time.monotonic()
    stage = "begins"
    output = bytearray()
    with start(
        command, group=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                while True:
                    if selector.select(1.0):
                        block = process.stdout.read(1 << 16)
                        if block == b"":
                            break
                        output += block or b""
                        del output[:-KEPT]
                    now = time.monotonic()
                    if now - begun > limit:
                        raise _out_of_time(step, command[0], limit)
                    if now - told > OFTEN:
                        told, stage = now, at(output) or stage
                        progress(f"{step}: {stage}, {now - begun:.0f} s")
            process.wait(max(0.0, begun + limit - time.monotonic()))  # it may say no more, and go on
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _out_of_time(step, command[0], limit) from None
            raise
    return process.returncode, output.decode(errors="replace")


def _out_of_time(step: str, program: str, limit: float) -> OutOfTimeError:
    return OutOfTimeError(f"{step}: {Path(program).name} was stopped after {limit:.0f} s; --limit gives it longer")


def at(output: bytes | bytearray) -> str:
    """What a tool was at when it wrote the last of this; empty where that says nothing."""
    lines = bytes(output[-20000:]).decode(errors="replace").splitlines()
    found = (match[1] for line in reversed(lines) if (match := _PASS.match(line) or _ROUTER.match(line)))
    return next(found, "").lower()
