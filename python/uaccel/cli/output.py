"""Writes what commands say: results, progress, tables, pages and traces."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from uaccel.errors import UaccelError, escape_terminal, one_line
from uaccel.util.files import write_atomically
from uaccel.util.text import shown_json

# Results go to stdout, all else to stderr.
#
# With ``--json`` stdout carries exactly one JSON object. File descriptor 1 is pointed to stderr for that time, so that
# even a C library cannot write to it, and the object goes to a duplicate of the old one.

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from uaccel.session.session import LogLine

_WIDTH_OF_A_FILE = 200
_WIDTH_OF_A_STEP = 60
_CLOSED = "it is closed; open it, or send it to /dev/null"


@dataclass
class _Stdout:
    """Holds where the result goes, and whether it was written."""

    reserved: int | None = None  # A file descriptor.
    owner: int = 0  # The process that writes; copies of it that foreign code forks are silent.
    emitted: bool = False


_stdout = _Stdout()


def emit(data: Mapping[str, Any], as_json: bool, show: Callable[[Console], None]) -> None:
    """Writes the result of a command, once: as JSON, or as ``show`` presents it to a person."""
    _end_copy()
    if as_json:
        write_json(data)
    elif sys.stdout is not None:  # None if it is closed: then nothing is shown
        show(console(sys.stdout))


def write_json(data: Mapping[str, Any]) -> None:
    """Writes one object on one line of stdout; an error that follows it goes to stderr only."""
    _end_copy()
    text = shown_json(json.dumps(data, ensure_ascii=False, allow_nan=False)) + "\n"
    _stdout.emitted = True
    if _stdout.reserved is None:
        sys.stdout.write(text)
        return
    rest = text.encode()
    while rest:
        rest = rest[os.write(_stdout.reserved, rest) :]


def _end_copy() -> None:
    if _stdout.owner not in (0, os.getpid()):
        os._exit(UaccelError.exit_status)


def has_emitted() -> bool:
    """Says whether the one JSON object is written."""
    return _stdout.emitted


def console(stream: IO[str]) -> Console:
    """Makes a Rich console that shows text as it is: without markup or emoji, and with control characters escaped."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Screen(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Escapes what a terminal would obey in all text, as names in it may come from a model file."""
            for segment in super().render(renderable, options):
                safe = segment.control or segment.text.isprintable()
                lines = map(escape_terminal, segment.text.split("\n"))
                yield segment if safe else Segment("\n".join(lines), segment.style)

    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return Screen(file=stream, markup=False, emoji=False, highlight=False, width=width)


def say(line: str) -> None:
    """Writes one line to stderr; what a terminal would not print is escaped."""
    if sys.stderr is not None:  # print(file=None) would write to stdout
        print(f"uaccel: {one_line(line)}", file=sys.stderr, flush=True)


@contextmanager
def stdout_for(as_json: bool) -> Iterator[None]:
    """Keeps stdout for the one object during a command with ``--json``."""
    _stdout.emitted, _stdout.owner = False, os.getpid()
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
    """Sends what is still buffered to nowhere once the reader is gone, else Python would complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


class ShownSteps:
    """Shows how far a long command is: call it with each step as it begins.

    A terminal shows a spinner, a bar where a step is counted, and leaves a line with the time of each finished
    step; a file gets a plain line as each step begins.
    """

    def __call__(self, description: str) -> None:
        """Begins the next step."""
        say(description)

    def count(self, done: int, total: int) -> None:
        """Shows how many parts of the step are done."""

    def log(self, line: LogLine) -> None:
        """Shows a line of the device's log."""
        say(_log_words(line))


def _log_words(line: LogLine) -> str:
    lost = f" ({line.lost} lines before it were lost)" if line.lost else ""
    return f"{line.device}: {line.level.name.lower()}: {line.text}{lost}"


class _ShownSteps(ShownSteps):
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
        """Removes the bar."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def finish(self) -> None:
        """Leaves a line with the step's time."""
        if self._live is not None:
            self.stop()
            seconds = f"{time.monotonic() - self._begun:7.2f} s"
            width = min(_WIDTH_OF_A_STEP, self._screen.width - len(seconds) - 4)
            self._screen.print(f"  {self._description:<{width}} {seconds}", style="dim", soft_wrap=True)


def _bar(screen: Console) -> Progress:
    """Makes a spinner with the step's name, and a bar if the step is counted."""
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
def progress() -> Iterator[ShownSteps]:
    """Shows the steps of a command on stderr."""
    if not sys.stderr.isatty():
        yield ShownSteps()
        return
    steps = _ShownSteps(console(sys.stderr))
    try:
        yield steps
        steps.finish()
    finally:
        steps.stop()


# Tables and lines, which stay readable at 60 columns.


def new_table(*titles: str) -> Table:
    """Makes a table. Below a title that begins with ``>`` stand numbers, below one with ``~`` text that may be long."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True)
    for title in titles:
        right, fold = title.startswith(">"), title.startswith("~")
        table.add_column(
            title.lstrip(">~"),
            justify="right" if right else "left",
            no_wrap=not fold,
            overflow="fold" if fold else "ellipsis",
        )
    return table


def show_lines(console: Console, lines: Iterable[tuple[str, str]], style: str = "") -> None:
    """Shows lines of a word and a text; a text that is too long goes on below, indented."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    for word, text in lines:
        grid.add_row(f"  {word}", escape_terminal(text))
    console.print(grid, style=style)


# Pages of ``uaccel run --report FILE`` and ``uaccel report``; a file is written whole or not at all.

REPORT = "--report"


def write_page(path: Path, text: str, option: str = REPORT) -> None:
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8", "replace")), option)


def write_page_where(path: Path | None, report: dict[str, Any]) -> None:
    """Writes the page of one run if it is asked for."""
    if path is not None:
        from uaccel.report import page

        write_page(path, page([report]))


# Traces of ``uaccel run --trace FILE``: when the CPU and the engines of accelerators worked, for Perfetto.

TRACE = "--trace"


def write_trace(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=1) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()), TRACE)
