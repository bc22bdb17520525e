"""Makes the page of a sweep: failures, matrix, design space, history, and the table of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any, Final

from uaccel.errors import InputError, need
from uaccel.report.page import rendered
from uaccel.report.svg import Section, Shown, numbered, seconds
from uaccel.util import incoming
from uaccel.util.files import parse_json
from uaccel.util.text import CPU, named

# Results: what ``uaccel sweep`` wrote, a line for each row.

GOOD: Final = ("right", "ran")
LARGEST: Final = 1 << 30  # Bytes of a file of results.
HINT: Final = "wanted what 'uaccel sweep' writes"


@dataclass(frozen=True)
class SweptRow:
    """Holds a row of a sweep. ``number`` is its place in the sweep; ``options`` are without the numbers of a design
    space, which are ``tags``."""

    number: int
    title: str
    model: str
    board: str
    engines: str
    options: str
    tags: Mapping[str, Any]
    status: str
    figures: Mapping[str, float]
    error: str = ""
    log: str = ""
    took: float = 0.0
    attempts: int = 1

    @property
    def good(self) -> bool:
        return self.status in GOOD

    @property
    def stands_for(self) -> dict[str, Any]:
        """What sets the row apart from others of its model."""
        apart = {"board": self.board, "accelerators": self.engines, "options": self.options}
        return dict(self.tags) or {name: words for name, words in apart.items() if words}

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of a design space in words."""
        return tuple(f"{name}={value}" for name, value in self.tags.items())


@dataclass(frozen=True)
class Sweep:
    """Holds a file of results; ``label`` is the sweep's own, else the file's name."""

    path: Path
    label: str
    rows: tuple[SweptRow, ...] = field(default=())


def read_sweep(path: Path) -> Sweep:
    """Reads a file of results. Among rows with the same title the last counts. A line that is cut off, since its writer
    was killed, is left out; a bad line before any result means another kind of file."""
    with incoming.reading(InputError, path, HINT):
        lines = incoming.read_bytes(path, LARGEST).splitlines()
    rows: dict[str, SweptRow] = {}
    label = ""
    for number, line in enumerate(lines, 1):
        try:
            data = parse_json(line)
            row = _row(data, rows)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            if number < len(lines) and not rows:
                raise InputError(f"{path}:{number} is no result; {HINT}") from error
            continue
        rows[row.title] = row
        label = str(data.get("label") or label)
    need(rows, f"{path} holds no result; {HINT}", InputError)
    return Sweep(path, label or path.stem, tuple(rows.values()))


def _row(data: Mapping[str, Any], before: Mapping[str, SweptRow]) -> SweptRow:
    said, title = data["row"], str(data["title"])
    engines = "+".join(PurePath(str(name)).name for name in said["accelerators"]) or CPU
    figures = {str(name): float(value) for name, value in data["figures"].items() if _is_number(value)}
    if (data["report"].get("target") or {}).get("emulated"):
        figures.pop("seconds", None)  # an emulator's time says nothing about a board's
    options = [f"{key}={_word(value)}" for key, value in said["options"].items()]
    number = before[title].number if title in before else len(before)
    names = (title, PurePath(str(said["model"])).stem, str(said["board"]), engines, " ".join(options))
    tags = {str(name): value for name, value in said["tags"].items()}
    told = (str(data["error"]), str(data["log"]), float(data["took"]), int(data["attempts"]))
    return SweptRow(number, *names, tags, str(data["status"]), figures, *told)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


# Verdict: how many rows are good, and for each failure its line of error and its log.


def failures(sweeps: Sequence[Sweep]) -> Section:
    """Makes the section on the last sweep's failures, wrong results before those that did not run."""
    rows = sweeps[-1].rows
    bad = sorted((row for row in rows if not row.good), key=lambda row: row.status != "wrong")
    counts = Counter(row.status for row in rows)
    shown = {
        "rows": bad,
        "verdict": _verdict(rows, bad),
        "counts": ", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        "took": seconds(sum(row.took for row in rows)),
        "sweeps": sweeps,
    }
    return Section("failures", "Failures" if bad else "Verdict", shown)


def _verdict(rows: Sequence[SweptRow], bad: Sequence[SweptRow]) -> str:
    if not bad:
        judged = sum(row.status == "right" for row in rows)
        unjudged = f"; {len(rows) - judged} ran without a comparison" if judged < len(rows) else ""
        return f"No row of {len(rows)} failed{unjudged}."
    wrong = sum(row.status == "wrong" for row in bad)
    words = [f"{wrong} computed wrong"] if wrong else []
    words += [f"{len(bad) - wrong} failed"] if len(bad) > wrong else []
    return f"Of {len(rows)} rows {' and '.join(words)}."


# Figures by which rows are compared: their labels, their kinds of numbers, and whether more is better.

COUNT, SIZE, SHARE, SECONDS, MILLISECONDS = "count", "size", "share", "seconds", "ms"


@dataclass(frozen=True)
class Figure:
    """Describes a figure; ``more``: a larger one is better."""

    name: str
    label: str
    kind: str = COUNT
    more: bool = False


FIGURES: Final = (
    Figure("latency.cycles", "Latency in cycles"),
    Figure("latency.ms", "Latency in ms", MILLISECONDS),
    Figure("instructions", "CPU instructions"),
    Figure("cycles_estimated", "CPU cycles, estimated"),
    Figure("accelerator_cycles", "Accelerator cycles"),
    Figure("ram.total", "RAM: all", SIZE),
    Figure("ram.arena", "RAM: arena", SIZE),
    Figure("flash.total", "Flash: all", SIZE),
    Figure("flash.weights", "Flash: weights", SIZE),
    Figure("flash.code", "Flash: code", SIZE),
    Figure("utilisation", "Utilisation", SHARE, True),
    Figure("bytes_moved", "Bytes moved", SIZE),
    Figure("offloaded", "Layers on accelerators", more=True),
    Figure("seconds", "Seconds, measured", SECONDS),
    Figure("area.lut", "Area: LUT"),
    Figure("area.ff", "Area: FF"),
    Figure("area.bram", "Area: BRAM"),
    Figure("area.dsp", "Area: DSP"),
)


def known_figures(rows: Iterable[SweptRow]) -> list[Figure]:
    """The figures that any row has; one that this version does not know goes by its own name."""
    seen = dict.fromkeys(name for row in rows for name in row.figures)
    named = {figure.name for figure in FIGURES}
    return [
        *(figure for figure in FIGURES if figure.name in seen),
        *(Figure(name, name) for name in seen if name not in named),
    ]


# Matrix: models down, boards and accelerators across; the script fills in the chosen figure.

Column = tuple[str, str, tuple[str, ...]]  # Board, accelerators, numbers of a design space.


NO_FIGURE: Final = "No row has a figure: all of them failed."


def matrix(sweeps: Sequence[Sweep]) -> Shown:
    """What the matrix of the last sweep shows."""
    rows = sweeps[-1].rows
    figures = known_figures(rows)
    if not figures:
        return NO_FIGURE
    down = list(dict.fromkeys((row.model, row.options) for row in rows))
    across = _columns(rows)
    cells: dict[tuple[tuple[str, str], Column], list[int]] = {}
    for row in rows:
        cells.setdefault(((row.model, row.options), _column(row)), []).append(row.number)
    several = len({options for _, options in down}) > 1
    return {
        "figures": figures,
        "boards": [(board, len(list(group))) for board, group in groupby(across, key=lambda column: column[0])],
        "columns": across,
        "rows": [
            (model, options if several else "", [cells.get(((model, options), column), []) for column in across])
            for model, options in down
        ],
        "options": "" if several else down[0][1],
    }


def _column(row: SweptRow) -> Column:
    return row.board, row.engines, row.numbers


def _columns(rows: Sequence[SweptRow]) -> list[Column]:
    """The columns: those of a board side by side, the CPU alone first, numbers of a design space in their order."""
    boards = list(dict.fromkeys(row.board for row in rows))

    def place(row: SweptRow) -> tuple[Any, ...]:
        numbers = [value if isinstance(value, (int, float)) else 0 for value in row.tags.values()]
        return boards.index(row.board), row.engines != CPU, row.engines, numbers

    return list(dict.fromkeys(_column(row) for row in sorted(rows, key=place)))


# History: a figure over several sweeps, in the order in which their files were given.

History = Mapping[str, Sequence[Mapping[str, float] | None]]


def history(sweeps: Sequence[Sweep]) -> Shown:
    """What is shown beside the history, which the script draws."""
    if len(sweeps) < 2:
        return "It takes several files: uaccel report MONDAY.jsonl TUESDAY.jsonl -o page.html"
    figures = known_figures(row for sweep in sweeps for row in sweep.rows)
    return {"figures": figures, "sweeps": [sweep.label for sweep in sweeps]} if figures else NO_FIGURE


def history_of(sweeps: Sequence[Sweep]) -> History:
    """Each row's figures in each sweep, by the row's title; None where it is missing or failed."""
    tables = [{row.title: row.figures for row in sweep.rows if row.good} for sweep in sweeps]
    titles = dict.fromkeys(row.title for sweep in sweeps for row in sweep.rows)
    return {title: [table.get(title) for table in tables] for title in titles}


# Design space: two figures against each other, the Pareto front marked, with what each point stands for.

# Figures of the two axes before the user chooses any: the first known one of each.
FIRST: Final = ("latency.cycles", "accelerator_cycles", "cycles_estimated", "instructions", "seconds")
SECOND: Final = ("utilisation", "bytes_moved", "ram.total", "flash.total")


def space(sweeps: Sequence[Sweep]) -> Shown:
    """What the design space of the last sweep shows. Rows that vary an accelerator's numbers are a group for each
    model, board, accelerator and set of options; all rows of a model are one, too."""
    rows = sweeps[-1].rows
    figures = known_figures(rows)
    if len(figures) < 2:
        return NO_FIGURE
    varied = [row for row in rows if row.tags]
    several = len({row.options for row in varied}) > 1
    groups: dict[str, list[int]] = {}
    for row in varied:
        groups.setdefault(_group(row, several), []).append(row.number)
    for row in rows:
        groups.setdefault(f"{row.model}, all rows", []).append(row.number)
    return {
        "groups": groups,
        "figures": figures,
        "across": _chosen(figures, FIRST, figures[0]),
        "up": _chosen(figures, SECOND, figures[1]),
    }


def _group(row: SweptRow, several: bool) -> str:
    words = f"{row.model} on {row.board} with {row.engines}"
    return f"{words} {row.options}" if several and row.options else words


def _chosen(figures: Sequence[Figure], names: Sequence[str], otherwise: Figure) -> str:
    known = [figure.name for figure in figures]
    return next((name for name in names if name in known), otherwise.name)


# The page of one sweep, or of several in their order: the rows of the last one, and the history of figures.


def page_of_results(paths: Sequence[Path]) -> tuple[str, list[Sweep]]:
    """Makes the page of files that ``uaccel sweep`` wrote, and returns it with what they hold."""
    sweeps = [read_sweep(path) for path in paths]
    return page_of_sweeps(sweeps), sweeps


def page_of_sweeps(sweeps: Sequence[Sweep]) -> str:
    sweeps = _labelled(sweeps)
    last = sweeps[-1]
    shown = [failures(sweeps), Section("matrix", "Matrix", matrix(sweeps))]
    shown += [Section("space", "Design space", space(sweeps))]
    shown += [Section("history", "History", history(sweeps)), Section("rows", "All rows", _all_rows(last))]
    title = f"Sweep {last.path.stem}" + (f", {last.label}" if last.label != last.path.stem else "")
    return rendered(title, shown, _carried(sweeps), script="sweep.js", styles=("style.css", "sweep.css"))


def _labelled(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Gives each sweep a label of its own: with its file's name, and a number if that is not enough."""
    seen = Counter(sweep.label for sweep in sweeps)
    labels = [sweep.label if seen[sweep.label] == 1 else f"{sweep.label} {sweep.path.stem}" for sweep in sweeps]
    return [replace(sweep, label=label) for sweep, label in zip(sweeps, numbered(labels), strict=True)]


def _all_rows(sweep: Sweep) -> Shown:
    """What the table of all rows shows, which the script sorts."""
    return {
        "rows": sweep.rows,
        "figures": known_figures(sweep.rows),
        "options": any(row.options for row in sweep.rows),
        "tags": list(dict.fromkeys(name for row in sweep.rows for name in row.tags)),
    }


def _carried(sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """The data from which the script draws."""
    every = [row for sweep in sweeps for row in sweep.rows]
    return {
        "figures": list(map(asdict, known_figures(every))),
        "sweeps": [sweep.label for sweep in sweeps],
        "rows": {
            row.number: {
                **named(row, "title", "status", "good", "stands_for"),
                "figures": dict(row.figures),
            }
            for row in sweeps[-1].rows
        },
        "history": history_of(sweeps) if len(sweeps) > 1 else {},
    }
