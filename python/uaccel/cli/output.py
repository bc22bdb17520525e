"""What every command says, and where: results to stdout, all else to stderr.

With ``--json`` stdout carries exactly one JSON object. What else writes to it meanwhile, even a C library, is
sent to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from uaccel.errors import UaccelError

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Write one JSON object to stdout, and nothing else.")]
"""The parameter that every command has: ``as_json: JsonFlag = False``."""

_WIDTH_OF_A_FILE = 200
_CLOSED = "it is closed; open it, or send it to /dev/null"


@dataclass
class _Stdout:
    """Where the result goes, and whether it has gone."""

    reserved: int | None = None
    """A file descriptor."""
    emitted: bool = False


_stdout = _Stdout()


def emit(data: Mapping[str, Any], as_json: bool, show: Callable[[Console], None]) -> None:
    """The result of a command: as JSON, or shown to a person; once in a command's life."""
    if as_json:
        write_json(data)
    elif sys.stdout is not None:  # closed: a person who asked for nothing to be shown
        show(console(sys.stdout))


def write_json(data: Mapping[str, Any]) -> None:
    """One object on one line of stdout; an error that follows it goes to stderr only."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"
    _stdout.emitted = True
    if _stdout.reserved is None:
        sys.stdout.write(text)
        return
    rest = text.encode()
    while rest:
        rest = rest[os.write(_stdout.reserved, rest) :]


def has_emitted() -> bool:
    """Whether the one JSON object is out."""
    return _stdout.emitted


def console(stream: IO[str]) -> Console:
    """A Rich console that takes text as it stands: square brackets and colons mean nothing."""
    from rich.console import Console

    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def say(line: str) -> None:
    """One line for a person, on stderr; what a terminal would not print is escaped."""
    safe = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(line.splitlines()))
    if sys.stderr is not None:  # print would take stdout for it
        print(f"uaccel: {safe}", file=sys.stderr, flush=True)


@contextmanager
def stdout_for(as_json: bool) -> Iterator[None]:
    """Around a whole command: with ``--json``, keep stdout for the one object."""
    _stdout.emitted = False
    if not as_json:
        yield
        return
    if sys.stdout is None:
        raise UaccelError(_CLOSED)
    sys.stdout.flush()
    _stdout.reserved = reserved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        _stdout.reserved = None
        sys.stdout.flush()
        os.dup2(reserved, 1)
        os.close(reserved)


def discard_stdout() -> None:
    """Nobody reads it any more: let what is still buffered go nowhere, without a complaint at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show what a long command is at: call the function with each step as it begins.

    A terminal shows a spinner and leaves a line with the time of each finished step; a file gets a plain line
    as each step begins.
    """
    if not sys.stderr.isatty():
        yield say
        return
    screen = console(sys.stderr)
    begun = time.monotonic()
    current = ""

    def finish() -> None:
        if current:
            screen.print(f"  {current:<60} {time.monotonic() - begun:7.2f} s", style="dim")

    with screen.status("") as status:

        def step(description: str) -> None:
            nonlocal begun, current
            finish()
            begun, current = time.monotonic(), description
            status.update(description)

        yield step
        finish()
