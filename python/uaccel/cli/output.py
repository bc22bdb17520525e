"""What every command says, and where: results to stdout, all else to stderr.

With ``--json`` stdout carries exactly one JSON object. What else writes to it meanwhile, even a C library, is
sent to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from uaccel.basics.sinks import shown_json
from uaccel.errors import UaccelError, escape_terminal, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from uaccel.session.session import LogLine

JsonFlag = Annotated[bool, typer.Option("--json", help="Write one JSON object to stdout, and nothing else.")]
"""The parameter that every command has: ``as_json: JsonFlag = False``."""

_WIDTH_OF_A_FILE = 200
_WIDTH_OF_A_STEP = 60
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
    text = shown_json(json.dumps(data, ensure_ascii=False, allow_nan=False)) + "\n"
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
    """A Rich console that takes text as it stands: square brackets, colons and control characters mean nothing."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Screen(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Whatever it is, and whoever made it of which names."""
            for segment in super().render(renderable, options):
                safe = segment.control or segment.text.isprintable()
                lines = map(escape_terminal, segment.text.split("\n"))
                yield segment if safe else Segment("\n".join(lines), segment.style)

    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return Screen(file=stream, markup=False, emoji=False, highlight=False, width=width)


def say(line: str) -> None:
    """One line for a person, on stderr; what a terminal would not print is escaped."""
    if sys.stderr is not None:  # print would take stdout for it
        print(f"uaccel: {one_line(line)}", file=sys.stderr, flush=True)


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


class Steps:
    """Shows what a long command is at: call it with each step as it begins.

    A terminal shows a spinner, a bar where a step is counted, and leaves a line with the time of each finished
    step; a file gets a plain line as each step begins.
    """

    def __call__(self, description: str) -> None:
        """The next step begins."""
        say(description)

    def count(self, done: int, total: int) -> None:
        """So many parts of the step are done, of how many."""

    def log(self, line: LogLine) -> None:
        """The device's log says something."""
        say(_log_words(line))


def _log_words(line: LogLine) -> str:
    lost = f" ({line.lost} lines before it were lost)" if line.lost else ""
    return f"{line.device}: {line.level.name.lower()}: {line.text}{lost}"


class _ShownSteps(Steps):
    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._description = ""
        self._begun = 0.0
        self._live: Progress | None = None

    def __call__(self, description: str) -> None:
        self.finish()
        self._begun, self._description = time.monotonic(), description
        self._live = _bar(self._screen)
        self._live.add_task(description, total=None)
        self._live.start()

    def count(self, done: int, total: int) -> None:
        if self._live is not None:
            self._live.update(self._live.task_ids[0], completed=done, total=total)

    def log(self, line: LogLine) -> None:
        self._screen.print(f"  {one_line(_log_words(line))}", style="yellow", soft_wrap=True)

    def stop(self) -> None:
        """Take away what moves."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def finish(self) -> None:
        """Leave a line with the step's time."""
        if self._live is not None:
            self.stop()
            seconds = f"{time.monotonic() - self._begun:7.2f} s"
            width = min(_WIDTH_OF_A_STEP, self._screen.width - len(seconds) - 4)
            self._screen.print(f"  {self._description:<{width}} {seconds}", style="dim", soft_wrap=True)


def _bar(screen: Console) -> Progress:
    """A spinner and the step's name; behind them, where the step is counted, how far it is."""
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.text import Text

    class Counted(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text()
            left = f", {task.time_remaining:.0f} s left" if task.time_remaining else ""
            return Text(f"{task.completed:,.0f} of {task.total:,.0f}{left}")

    class Bar(BarColumn):
        def render(self, task: Task) -> Any:
            return Text() if task.total is None else super().render(task)

    name = TextColumn("{task.description}", markup=False)
    return Progress(SpinnerColumn(), name, Bar(), Counted(), console=screen, transient=True)


@contextmanager
def progress() -> Iterator[Steps]:
    """The steps of a command, on stderr."""
    if not sys.stderr.isatty():
        yield Steps()
        return
    steps = _ShownSteps(console(sys.stderr))
    try:
        yield steps
        steps.finish()
    finally:
        steps.stop()
