"""Writes what commands say: results, progress, tables, pages and traces."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from uaccel.errors import UaccelError, escape_terminal, one_line
from uaccel.util.files import write_atomically
from uaccel.util.text import CPU, shown_json

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


# Tables of layers, memory and outputs, which stay readable at 60 columns.

USUAL_WIDTH, WIDE = 80, 90  # Columns; on narrower screens MACs, shapes and estimates make room for measured costs.
WIDTH_OF_ENGINE = 20  # Columns that engines take, with the longer names of driver functions.
SHOWN_VALUES = 12
UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
# Start and end of nearly every layer's reason, and the prefix of kernels: left away to save room.
USUAL = ("CPU kernel ", " (portable)", "uaccel_")


@dataclass(frozen=True)
class _Column:
    title: str  # As new_table() takes it.
    cell: Callable[[dict[str, Any]], str]


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


def show_frontier(console: Console, report: dict[str, Any]) -> None:
    """Shows a row for each way to run the model, from the most RAM to the least."""
    table = new_table(">RAM", f">{report['unit']}", ">slower", ">constants", ">functions")
    for point in report["points"]:
        numbers = (f"{point[key]:,}" for key in ("ram", "estimate"))
        table.add_row(*numbers, f"{point['slower']:.1%}", f"{point['constants']:,}", str(point["functions"]))
    console.print(table)


def show_layers(console: Console, report: dict[str, Any]) -> None:
    """Shows a row for each layer; an engine that runs all layers is named once, below."""
    layers = report["layers"]
    engines = list(dict.fromkeys(layer["engine"] for layer in layers))
    columns = _columns(layers, several_engines=len(engines) > 1, width=console.width)
    table = new_table(*(column.title for column in columns))
    for layer in _told_once(layers):
        table.add_row(*(escape_terminal(column.cell(layer)) for column in columns))
    console.print(table)
    show_lines(console, [("Layers", _shares(layers, engines))])
    if report.get("instructions") is not None:
        show_lines(console, list(_time(report)))
    elif report.get("seconds") is not None:
        show_lines(console, [("Time", f"{_seconds(report['seconds'])}, the fastest inference")])
    if report.get("accelerator_cycles"):
        names = " and ".join(engine for engine in engines if engine != CPU)
        timed = report.get("instructions") is not None or report.get("seconds") is not None
        cycles = f"{report['accelerator_cycles']:,} cycles of {names}, one inference"
        show_lines(console, [("" if timed else "Time", cycles)])
    show_warnings(console, report)


def _shares(layers: list[dict[str, Any]], engines: list[str]) -> str:
    """Says how many layers each engine computes, and what share of the products accelerators compute."""
    macs = {engine: sum(layer["macs"] for layer in layers if layer["engine"] == engine) for engine in engines}
    total = sum(macs.values())
    if len(engines) == 1:
        return f"{len(layers)} on {engines[0]}, {total:,} multiply-accumulates"
    counts = Counter(layer["engine"] for layer in layers)
    parts = [f"{counts[engine]} on {engine}" for engine in engines]
    shares = [f"{macs[engine] / total:.1%} on {engine}" for engine in engines if engine != CPU and total]
    of_all = f" ({', '.join(shares)})" if shares else ""
    return f"{', '.join(parts)}, {total:,} multiply-accumulates{of_all}"


def show_warnings(console: Console, report: dict[str, Any]) -> None:
    for warning in report["warnings"]:
        show_lines(console, [("Warning", warning)], style="yellow")


def _time(report: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yields the time of an inference in instructions, in the core's own cycles, and in estimated ones."""
    yield "Time", f"{report['instructions']:,} instructions, one inference"
    if report.get("cycles") is not None:
        waited = report.get("waited") or {}
        what = [f"{cycles:,} for {name}" for name, cycles in waited.items() if cycles]
        told = f"; among them waiting: {', '.join(what)}" if what else ""
        yield "", f"{report['cycles']:,} cycles, as the core counts them{told}"
    by = report.get("cycles_estimated_by") or {"source": None}
    if report.get("cycles_estimated") is not None:
        yield "", f"about {report['cycles_estimated']:,} cycles, estimated for {by['core']}"
    elif by["source"] is not None:
        yield "", f"cycles are not estimated: {by['missing']}"


def _told_once(layers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Gives the layers; of those that one function computes together, the first alone has the reason."""
    last = None
    for layer in layers:
        same = (layer.get("region"), layer["reason"])
        yield layer | {"reason": "with the layer above"} if same[0] and same == last else layer
        last = same


def _columns(layers: list[dict[str, Any]], *, several_engines: bool, width: int) -> list[_Column]:
    """Returns the columns; on a narrow screen those that matter least are left away."""
    counted = any(layer.get("instructions") is not None for layer in layers)
    told = any(layer.get("core_cycles") is not None for layer in layers)
    estimated = width >= USUAL_WIDTH and any(layer.get("cycles_estimated") is not None for layer in layers)
    timed = not counted and any(layer.get("seconds") is not None for layer in layers)
    width -= WIDTH_OF_ENGINE if several_engines and (counted or timed) else 0
    shown = [
        (True, _Column("Layer", lambda layer: str(layer["name"]))),
        (
            width >= (WIDE if estimated else USUAL_WIDTH) or not (counted or timed),
            _Column("~Output", _shapes),
        ),
        (
            width >= (WIDE if counted or timed else USUAL_WIDTH),
            _Column(">MACs", lambda layer: _count(layer["macs"])),
        ),
        (counted, _Column(">Instructions", lambda layer: _count(layer.get("instructions")))),
        (told, _Column(">Cycles", lambda layer: _count(layer.get("core_cycles")))),
        (estimated, _Column(">Cycles, est.", lambda layer: _count(layer.get("cycles_estimated")))),
        (timed, _Column(">Time", lambda layer: _seconds(layer.get("seconds")))),
        (several_engines, _Column("Engine", lambda layer: str(layer["engine"]))),
        (True, _Column("~Function", lambda layer: function_of(layer["reason"]))),
    ]
    return [column for wanted, column in shown if wanted]


def _seconds(seconds: float | None) -> str:
    """Writes a time in the unit that leaves one to three digits before the point."""
    if seconds is None:
        return ""
    scale, unit = next(row for row in UNITS if seconds * row[0] >= 1 or row[1] == "µs")
    number = float(f"{seconds * scale:.3g}")
    return f"{number:.3g} {unit}" if number < 1000 else f"{seconds * scale:,.0f} {unit}"


def _shapes(layer: dict[str, Any]) -> str:
    """Writes shapes as 1x8x8x4, or as 2 of 1x8x8x4 if several outputs are alike."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in layer["outputs"]]
    if len(shapes) > 1 and len(set(shapes)) == 1:
        return f"{len(shapes)} of {shapes[0]}"
    return " ".join(shapes)


def _count(count: int | None) -> str:
    return f"{count:,}" if count else ""


def function_of(reason: str) -> str:
    """The C function that computes a layer. Why it is this one, 'uaccel explain' says."""
    driver = re.search(r"(?:^|; )driver functions? (.*)", reason)
    if driver:
        return driver[1]
    reason = reason.partition("; ")[0] if reason.startswith(USUAL[0]) else reason  # '--json' says why
    start, end, prefix = USUAL
    return reason.removeprefix(start).removesuffix(end).replace(prefix, "") if reason.startswith(start) else reason


def show_memory(console: Console, report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    holds = " with inputs and outputs" if report["workspace_io"] else ""
    arena = f"arena {ram['arena']:,}{holds} (lower bound {ram['arena_lower_bound']:,})"
    apart = ("constants", "static", "stack") if report["workspace_io"] else ("constants", "io", "static", "stack")
    divided = ", ".join(f"{name} {size:,}" for name, size in flash.get("pools", {}).items())
    show_lines(
        console,
        [
            ("RAM", _parts(ram, apart, [arena])),
            ("Flash", _parts(flash, ("weights", "code"), [])),
            *([("Pools", divided)] if divided else []),
        ],
    )


def _parts(sizes: dict[str, int | None], names: tuple[str, ...], parts: list[str]) -> str:
    parts += [f"{name} {sizes[name]:,}" for name in names if sizes.get(name) is not None]
    total = f" = {sizes['total']:,} bytes" if sizes["total"] is not None else " bytes"
    return " + ".join(parts) + total


def show_outputs(console: Console, outputs: dict[str, Any]) -> None:
    """Shows the first values of each output."""
    for name, tensor in outputs.items():
        values = [_number(value) for value in tensor["data"][:SHOWN_VALUES]]
        more = ["..."] if len(tensor["data"]) > SHOWN_VALUES else []
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        show_lines(console, [("Output", f"{name} ({tensor['dtype']} {shape}): {', '.join(values + more)}")])


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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
    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode("utf-8", "replace"))

    write_atomically(path, write, option)


def write_page_where(path: Path | None, report: dict[str, Any]) -> None:
    """Writes the page of one run if it is asked for."""
    if path is not None:
        from uaccel.report import page

        write_page(path, page([report]))


# Traces of ``uaccel run --trace FILE``: when the CPU and the engines of accelerators worked, for Perfetto.

TRACE = "--trace"


def write_trace(path: Path, document: Mapping[str, Any]) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write((json.dumps(document, indent=1) + "\n").encode())

    write_atomically(path, write, TRACE)
