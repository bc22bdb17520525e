"""Running the programs that build and flash."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from .connection import CHUNK, Connection, Deadline
from .errors import ToolFaultError

TICK = 0.2
"""Seconds between looks whether a program has ended whose children keep its output open."""
KEPT = 1 << 20
PATIENCE = 5.0
SHELL = "/bin/sh"
WATCH = '(while kill -s 0 "$1"; do kill -s 0 -- "-$2" || exit; sleep 0.3; done; kill -s KILL -- "-$2") <&- >&- 2>&- &'
SHOWN_LINES = 3
LONGEST_WORDS = 300
C_LIBRARIES = "libc6-dev, libnewlib-arm-none-eabi, picolibc-riscv64-unknown-elf"
TELLING = r"\b(error|fail(ed|ure|s)?|cannot|can't|unable|denied|not found|timed? ?out)\b|^\d+ [CE] "


class Finished(NamedTuple):
    """How a program ended, and what it printed: the last of it, where that is much."""

    status: int
    output: str


def offer_python_programs() -> None:
    """Programs that Python packages brought serve where the system has none: CMake, Ninja, and Zig's C compiler."""
    folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), folder]))
    zig = shutil.which("python-zig")
    if zig and not os.environ.get("CC") and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        os.environ["CC"] = f"{zig} cc"


def lend_zig_tools(build: Path) -> None:
    """Where Zig's compiler serves, it archives too: under the names by which CMake looks for such programs."""
    zig, folder = shutil.which("python-zig"), build / "tools"
    if zig is None or os.environ.get("CC") != f"{zig} cc":
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ar", "ranlib"):
        if shutil.which(name) is None:
            (folder / name).write_text(f"#!/bin/sh\nexec '{zig}' {name} \"$@\"\n")
            (folder / name).chmod(0o755)
    os.environ["PATH"] += os.pathsep + str(folder)


def find(program: str, needed_for: str, folder: Path | None = None) -> str:
    """The program's path: beside the board file where it is named by a relative one, else in PATH."""
    beside = folder / program if folder is not None and "/" in program else None
    found = shutil.which(str(beside or program))
    if found is None and beside and beside.is_file():
        raise ToolFaultError(f"{program} (needed for {needed_for}) may not be executed; chmod +x {beside}")
    if found is None:
        where = f"at {beside}" if beside else "in PATH"
        raise ToolFaultError(f"{program} (needed for {needed_for}) is not {where}; install it")
    return found


def run(connection: Connection, command: list[str], folder: Path, *, show: bool) -> Finished:
    """Run to the end; where the client goes away meanwhile, so does the program."""
    process = subprocess.Popen(
        command,
        cwd=str(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    watch(process)
    try:
        output = collect(connection, process, show)
        return Finished(process.wait(), output.decode("utf-8", "replace"))
    finally:
        end(process)


def watch(process: subprocess.Popen[bytes]) -> None:
    """It leads a process group: that ends when this process does, by whatever."""
    words = [SHELL, "-c", WATCH, SHELL, str(os.getpid()), str(process.pid)]
    subprocess.run(words, start_new_session=True, check=False)


def collect(connection: Connection, process: subprocess.Popen[bytes], show: bool) -> bytes:
    assert process.stdout is not None  # a pipe
    pipe = process.stdout.fileno()
    output = bytearray()
    while True:
        ready = connection.wait([pipe], [], Deadline(TICK)).reading
        data = os.read(pipe, CHUNK) if ready else b""
        if data and show:
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        output += data
        del output[:-KEPT]
        if not data and (ready or process.poll() is not None):
            return bytes(output)


def end(process: subprocess.Popen[bytes]) -> None:
    """The program and its children, if they still run."""
    if process.stdout is not None:
        process.stdout.close()
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, signal_number)
            process.wait(PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    process.wait()


NO_PROGRAM = r"\b[Ee]rror: |cannot find |sorry, unimplemented: "
"""What compilers say of a program that they cannot make."""


def first_error(output: str) -> str:
    """The line that says what is wrong: a compiler's or a linker's, CMake's paragraph, else the last."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    full = re.search(r"region `(\w+)' overflowed by (\d+) bytes", output)
    if full is not None:
        words = f"memory '{full[1]}' of the board is too small by {int(full[2]):,} bytes"
        return f"{words}; choose a board with more, or a smaller model"
    header = re.search(r"fatal error: ((?:std|str|mat)\w*\.h): No such file", output)
    if header is not None:
        return f"the compiler has no {header[1]}: install its C library (for Debian's compilers {C_LIBRARIES})"
    if "is not able to compile a simple test program" in " ".join(lines):
        reason = next((line for line in lines if re.search(NO_PROGRAM, line)), "it fails")
        return f"the C compiler cannot make a program: {reason}"[:LONGEST_WORDS]
    for index, line in enumerate(lines):
        if re.search(r"\berror: |undefined reference to ", line, re.IGNORECASE):
            return line[:LONGEST_WORDS]
        if line.startswith("CMake Error"):
            return " ".join([line, *paragraph(lines[index + 1 :])])[:LONGEST_WORDS]
    return next((line for line in reversed(lines) if line), "it said nothing")[:LONGEST_WORDS]


def paragraph(lines: list[str]) -> list[str]:
    """The first one."""
    begin = next((index for index, line in enumerate(lines) if line), len(lines))
    end = next((index for index, line in enumerate(lines) if index > begin and not line), len(lines))
    return lines[begin:end]


def tool_words(output: str) -> str:
    """A flash tool's own: the lines that tell of a fault, else the last."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    telling = [line for line in lines if re.search(TELLING, line, re.IGNORECASE)]
    return "; ".join(list(dict.fromkeys(telling))[:SHOWN_LINES]) or first_error(output)
