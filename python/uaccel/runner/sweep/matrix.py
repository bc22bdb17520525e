"""Reads which runs a matrix file asks for, and makes the accelerators of design spaces that it varies."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, Final

from uaccel.board import load_board
from uaccel.build.project import programs_for
from uaccel.build.rtl.synthesis import PARTS
from uaccel.codegen.options import EmitOptions
from uaccel.errors import AcceleratorError, InputError, need
from uaccel.runner.options import EngineRequest, ProjectRunOptions
from uaccel.runner.prepare import key_of
from uaccel.runner.request import RunRequest
from uaccel.runner.runtimes import installed
from uaccel.util import incoming
from uaccel.util.cache import cache_folder, folder_digest
from uaccel.util.files import data_dir, parse_toml
from uaccel.util.option import Option, OptionField, made, options_of
from uaccel.util.text import did_you_mean

# One row of a matrix: a model on a board with accelerators and options, as plain data that processes can be sent.

CPU_ONLY: Final = "cpu"


AREA: Final = OptionField("area", Option("The FPGA that RTL is synthesised for.", choices=tuple(PARTS)), str, None)
# The options of ``uaccel run`` that a row may have, by their names there.
OPTIONS: Final[Mapping[str, OptionField]] = {
    one.key: one
    for owner in (RunRequest, EmitOptions, EngineRequest, ProjectRunOptions)
    for one in options_of(owner)
    if one.option.row
} | {AREA.key: AREA}
FILES: Final = tuple(key for key, one in OPTIONS.items() if one.type is Path)  # Seen from the matrix file's folder.


def problem_of(key: str, value: Any) -> tuple[str, str] | None:
    """Says what is wrong with an option: the words before and after its place. None if nothing is."""
    if key not in OPTIONS:
        return f"unknown key '{key}'", f"{did_you_mean(key, list(OPTIONS))}; known: {', '.join(OPTIONS)}"
    problem = OPTIONS[key].problem(value)
    return (key, f" {problem}") if problem else None


@dataclass(frozen=True)
class SweepRow:
    """Describes one run of a matrix.

    ``model`` and ``accelerators`` are as one types them, ``options`` by the names of :data:`OPTIONS`. ``tags``: what a
    design space varies, by name. ``repetition`` tells apart rows that are alike otherwise."""

    model: str
    board: str
    accelerators: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Any] = field(default_factory=dict)
    repetition: int = 0

    @property
    def title(self) -> str:
        """Names the row for people, by what sets it apart; stored figures are found by it."""
        engines = "+".join(Path(name).name for name in self.accelerators) or CPU_ONLY
        said = [f"{key}={_word(value)}" for key, value in (*self.options.items(), *self.tags.items())]
        again = [f"#{self.repetition + 1}"] if self.repetition else []
        return " ".join([Path(self.model).stem, f"on {self.board}", f"with {engines}", *said, *again])

    def request(self) -> RunRequest:
        """Returns the run that it stands for; raises UaccelError for a wrong board, file or value."""
        for key, value in self.options.items():
            problem = problem_of(key, value)
            if problem is not None:
                raise InputError("".join(problem))
        said = {"verify": "outputs", **self.options}
        engines = said if self.accelerators else {"records": said.get("records")}
        return made(
            RunRequest,
            said,
            model=Path(self.model),
            board=load_board(self.board),
            board_file=Path(self.board).name,
            wishes=made(ProjectRunOptions, said),
            engines=made(EngineRequest, engines, accelerators=self.accelerators),
            emit=made(EmitOptions, said),
        )

    def digest(self) -> str:
        """Returns a digest of all that its result depends on but the board itself.

        A stored result with the same digest is this row's. The key of the compilation covers the model's content, the
        accelerators and uaccel's own sources; the compilers, the emulator and the runtimes that judge are added, and
        the inputs, which no compilation reads."""
        request = self.request()
        key, tools = key_of(request), [programs_for(request.board), installed()]
        said = [self.model, self.board, list(self.accelerators), dict(self.options), dict(self.tags), self.repetition]
        inputs = self.options.get("inputs")
        given = incoming.read_bytes(inputs) if inputs is not None and Path(inputs).is_file() else b""
        whole = [key.digest if key is not None else "", tools, said, hashlib.sha256(given).hexdigest()]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:24]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "accelerators": list(self.accelerators)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SweepRow:
        return replace(cls(**data), accelerators=tuple(data["accelerators"]))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


# A matrix file: models x boards x accelerators x options, without what is excluded.
#
# ::
#
#     models = ["ic.tflite", "kws.tflite"]     # paths from this file's folder
#     boards = ["host", "mps2_an386"]
#     accelerators = [[], ["matrix8"]]         # [] is the CPU alone; a name alone is a list of one
#     repetitions = 1
#
#     [run]                                    # for every row, as options of 'uaccel run'
#     samples = 3
#
#     [[options]]                              # one more axis: every row once with each
#     favour = "balanced"
#     [[options]]
#     favour = "size"
#
#     [[exclude]]                              # patterns; what is left away matches everything
#     board = "host"
#     accelerator = "matrix8"
#
#     [[space]]                                # an accelerator whose numbers vary: every combination is a row
#     accelerator = "npu"
#     NPU_ROWS = [8, 16]
#
#     [figures]                                # what must not get worse, and by how many percent it may
#     instructions = 0
#     "flash.total" = 1

KEYS: Final = (
    *("models", "boards", "accelerators", "repetitions", "run"),
    *("options", "exclude", "space", "figures", "expected"),
)
EXCLUDES: Final = ("model", "board", "accelerator")
MOST_ROWS: Final = 100_000


@dataclass(frozen=True)
class Space:
    """Says which numbers of an accelerator vary: the values of each, by its name in the sources."""

    accelerator: str
    numbers: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class SweepMatrix:
    """Holds what a matrix file asks for: ``rows`` in the order of the axes.

    Rows of ``spaces`` name folders that are yet to be made (:func:`all_rows`).

    ``figures``: by name, how many percent each may grow. ``expected``: the file with stored ones.
    """

    path: Path
    rows: tuple[SweepRow, ...]
    spaces: tuple[tuple[SweepRow, Space], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    expected: Path = Path()


def read_matrix(path: Path) -> SweepMatrix:
    """Reads a matrix file and checks it key by key, also whether its files and boards are there."""
    with incoming.reading(InputError, path, "wanted a matrix file in TOML", "no TOML file"):
        table = parse_toml(incoming.read_text(path))
    return _Reader(path, table).matrix()


class _Reader:
    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        self.path = path
        self.table = table
        self.folder = path.parent
        self._known(table, KEYS, "")

    def matrix(self) -> SweepMatrix:
        models = [self._file(word, "models") for word in self._words("models")]
        boards = [self._board(word) for word in self._words("boards", ["host"])]
        engines = [self._engines(entry) for entry in self._list("accelerators", [[]])]
        common = self._options(self.table.get("run", {}), "[run]")
        axis = [self._options(entry, "[[options]]") for entry in self._list("options", [{}])]
        repetitions = self.table.get("repetitions", 1)
        if not isinstance(repetitions, int) or isinstance(repetitions, bool) or not 1 <= repetitions <= 1000:
            raise self._wrong(f"repetitions is {repetitions!r}; wanted a number from 1 to 1000")
        excluded = [self._exclusion(entry) for entry in self._list("exclude", [])]
        spaces = [self._space(entry) for entry in self._list("space", [])]
        again = range(repetitions)
        every = product(models, boards, engines, axis, again)
        rows = [SweepRow(m, b, e, common | own, {}, n) for m, b, e, own, n in every]
        need(len(rows) <= MOST_ROWS, f"{len(rows):,} rows; wanted at most {MOST_ROWS:,}", self._wrong)
        kept = tuple(row for row in rows if not any(_matches(row, one) for one in excluded))
        varied = tuple(
            (SweepRow(m, b, (space.accelerator,), common | own, {}, n), space)
            for space in spaces
            for m, b, own, n in product(models, boards, axis, again)
        )
        varied = tuple(entry for entry in varied if not any(_matches(entry[0], one) for one in excluded))
        if not kept and not varied:
            raise self._wrong("every row is excluded; wanted one at least")
        return SweepMatrix(self.path, kept, varied, self._figures(), self._expected())

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what}")

    def _known(self, table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        for key in table:
            if key not in known:
                place = f" in {where}" if where else ""
                raise self._wrong(f"unknown key '{key}'{place}{did_you_mean(key, known)}; known: {', '.join(known)}")

    def _list(self, key: str, default: list[Any]) -> list[Any]:
        value = self.table.get(key, default)
        if not isinstance(value, list):
            raise self._wrong(f"{key} is {value!r}; wanted a list")
        return value or default

    def _words(self, key: str, default: list[str] | None = None) -> list[str]:
        value = self._list(key, default or [])
        if not value or not all(isinstance(word, str) and word for word in value):
            raise self._wrong(f"{key} is {value!r}; wanted a list of names, one at least")
        return value

    def _file(self, word: str, key: str) -> str:
        path = self.folder / word
        need(path.is_file(), f"{key} names {word!r}, and there is no file {path}", self._wrong)
        return str(path)

    def _board(self, word: str) -> str:
        name = str(self.folder / word) if word.endswith(".toml") else word
        load_board(name)
        return name

    def _engines(self, entry: Any) -> tuple[str, ...]:
        names = [entry] if isinstance(entry, str) else entry
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise self._wrong(f"accelerators has {entry!r}; wanted a name, a path, or a list of them")
        return tuple(self._place(name) for name in names if name != CPU_ONLY)

    def _place(self, name: str) -> str:
        """Returns a path as seen from the matrix file's folder, still with a slash, and a name as it is."""
        if "/" not in name:
            return name
        path = str(self.folder / name)
        return path if "/" in path else f"./{path}"

    def _options(self, entry: Any, where: str) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise self._wrong(f"{where} is {entry!r}; wanted a table of options")
        for key, value in entry.items():
            problem = problem_of(key, value)
            if problem:
                raise self._wrong(f"{problem[0]} in {where}{problem[1]}")
        return {key: self._file(value, f"{key} in {where}") if key in FILES else value for key, value in entry.items()}

    def _exclusion(self, entry: Any) -> dict[str, str]:
        if not isinstance(entry, dict) or not entry:
            raise self._wrong(f"[[exclude]] is {entry!r}; wanted a table with {', '.join(EXCLUDES)} or an option")
        self._known(entry, [*EXCLUDES, *OPTIONS], "[[exclude]]")
        return entry

    def _space(self, entry: Any) -> Space:
        table = entry if isinstance(entry, dict) else {}
        name, numbers = table.get("accelerator"), {key: table[key] for key in table if key != "accelerator"}
        if not isinstance(name, str) or not numbers:
            raise self._wrong('[[space]] takes accelerator = "NAME" and lists of numbers, as NPU_ROWS = [8, 16]')
        for key, values in numbers.items():
            sound = isinstance(values, list) and values and all(type(value) is int for value in values)
            need(sound, f"{key} in [[space]] is {values!r}; wanted a list of numbers", self._wrong)
        return Space(self._place(name), {key: tuple(values) for key, values in numbers.items()})

    def _figures(self) -> dict[str, float]:
        table = self.table.get("figures", {})
        if not isinstance(table, dict):
            raise self._wrong(f'figures is {table!r}; wanted a table such as [figures] with "flash.total" = 1')
        for name, percent in table.items():
            if isinstance(percent, bool) or not isinstance(percent, (int, float)) or percent < 0:
                raise self._wrong(f"{name} in [figures] is {percent!r}; wanted by how many percent it may grow")
        return {name: float(percent) for name, percent in table.items()}

    def _expected(self) -> Path:
        value = self.table.get("expected", f"{self.path.stem}.expected.json")
        if not isinstance(value, str) or not value:
            raise self._wrong(f"expected is {value!r}; wanted the path of a file")
        return self.folder / value


def _matches(row: SweepRow, excluded: Mapping[str, Any]) -> bool:
    """Says whether an exclusion matches a row: names by patterns, options by their values."""
    engines = [Path(name).name for name in row.accelerators] or [CPU_ONLY]
    names = {"model": [Path(row.model).stem, Path(row.model).name], "board": [row.board], "accelerator": engines}
    return all(
        any(fnmatchcase(name, str(value)) for name in names[key]) if key in names else row.options.get(key) == value
        for key, value in excluded.items()
    )


def combinations(space: Space) -> Iterator[dict[str, int]]:
    """Yields every choice of the space's numbers."""
    for values in product(*space.numbers.values()):
        yield dict(zip(space.numbers, values, strict=True))


# Accelerators of a design space: copies of a folder with other numbers in the sources.
#
# Each pattern matches a line that states a number, in C, Python or Verilog: group 1 is the name, group 2 the number.

_C: Final = r"^[ \t]*#[ \t]*define[ \t]+({name})[ \t]+\(?(-?\d+)[uUlL]*\)?"
_PYTHON: Final = r"^({name})(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(-?\d+)[ \t]*(?:#.*)?$"
_VERILOG: Final = r"^[ \t]*(?:parameter|localparam)[ \t]+({name})[ \t]*=[ \t]*(-?\d+)"
_SUFFIXES: Final = {".h": _C, ".c": _C, ".py": _PYTHON, ".v": _VERILOG}


def all_rows(matrix: SweepMatrix, folder: Path | None = None) -> list[SweepRow]:
    """Returns all rows with those of spaces, whose accelerators are made in ``folder``, else in the cache.

    There the next sweep finds them, under the same path."""
    rows, folder = list(matrix.rows), folder or cache_folder() / "spaces"
    for row, space in matrix.spaces:
        for numbers in combinations(space):
            made = variant(space.accelerator, numbers, folder)
            rows.append(replace(row, accelerators=(str(made),), tags=numbers))
    return rows


def variant(accelerator: str, numbers: Mapping[str, int], folder: Path) -> Path:
    """Makes a copy of the accelerator's folder with these numbers below ``folder``, or finds it there.

    Its place is named by the source's digest and the numbers, so that a change of the source makes a new copy."""
    source = _source(accelerator)
    words = "_".join(f"{name}_{value}" for name, value in sorted(numbers.items())).lower()
    target = folder / folder_digest(source)[:12] / words / source.name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        made = Path(temporary) / source.name
        incoming.copy_folder(source, made, "__pycache__", "tests")
        for name, value in numbers.items():
            _set(made, name, value)
        with contextlib.suppress(OSError):  # another process was first
            made.rename(target)
    return target


def _source(accelerator: str) -> Path:
    folder = Path(accelerator) if "/" in accelerator else data_dir("accelerators") / accelerator
    if not (folder / "accelerator.py").is_file():
        raise AcceleratorError(f"a design space varies an accelerator's folder, and {folder} is none")
    return folder.resolve()


def _set(folder: Path, name: str, value: int) -> None:
    """Changes a number where it is stated, which must be once in the folder's C, Python or Verilog."""
    places = [(path, match) for path, match in _stated(folder, re.escape(name))]
    if len(places) != 1:
        known = sorted({match[1] for _, match in _stated(folder, r"\w+")})
        seen = "is not stated" if not places else f"is stated {len(places)} times"
        raise AcceleratorError(
            f"{name} {seen} in {folder.name}{did_you_mean(name, known)}; wanted a number that its C, Python or "
            "Verilog defines once"
        )
    path, match = places[0]
    text = incoming.read_text(path)
    path.write_text(f"{text[: match.start(2)]}{value}{text[match.end(2) :]}", encoding="utf-8")


def _stated(folder: Path, name: str) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in sorted(folder.rglob("*")):
        pattern = _SUFFIXES.get(path.suffix)
        if pattern is not None and path.is_file():
            text = incoming.read_text(path, errors="replace")
            yield from ((path, match) for match in re.finditer(pattern.replace("{name}", name), text, re.MULTILINE))
