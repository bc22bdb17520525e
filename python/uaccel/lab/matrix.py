"""A matrix file: models x boards x accelerators x options, without what is excluded.

::

    models = ["ic.tflite", "kws.tflite"]     # paths from this file's folder
    boards = ["host", "mps2_an386"]
    accelerators = [[], ["matrix8"]]         # [] is the CPU alone; a name alone is a list of one
    repetitions = 1

    [run]                                    # for every row, as options of 'uaccel run'
    samples = 3

    [[options]]                              # one more axis: every row once with each
    favour = "balanced"
    [[options]]
    favour = "size"

    [[exclude]]                              # patterns; what is left away matches everything
    board = "host"
    accelerator = "matrix8"

    [[space]]                                # an accelerator whose numbers vary: every combination is a row
    accelerator = "npu"
    NPU_ROWS = [8, 16]

    [figures]                                # what must not get worse, and by how many percent it may
    instructions = 0
    "flash.total" = 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_toml
from uaccel.basics.suggest import did_you_mean
from uaccel.board import load_board
from uaccel.errors import InputError
from uaccel.lab.row import CPU_ONLY, FILES, OPTIONS, Row, problem_of

KEYS: Final = (
    "models",
    "boards",
    "accelerators",
    "repetitions",
    "run",
    "options",
    "exclude",
    "space",
    "figures",
    "expected",
)
EXCLUDES: Final = ("model", "board", "accelerator")
MOST_ROWS: Final = 100_000


@dataclass(frozen=True)
class Space:
    """An accelerator whose stated numbers vary: values by the name of the number."""

    accelerator: str
    numbers: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Matrix:
    """``rows`` in the order of the axes; rows of ``spaces`` name folders that are yet to be made (``lab.space``).

    ``figures``: by name, how many percent each may grow. ``expected``: the file with stored ones.
    """

    path: Path
    rows: tuple[Row, ...]
    spaces: tuple[tuple[Row, Space], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    expected: Path = Path()


def read_matrix(path: Path) -> Matrix:
    """Checked key by key; that its files and boards are there is checked, too."""
    try:
        table = parse_toml(path.read_bytes().decode())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; wanted a matrix file in TOML") from error
    except ValueError as error:
        raise InputError(f"{path} is no TOML file: {error}") from error
    return _Reader(path, table).matrix()


class _Reader:
    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        self.path = path
        self.table = table
        self.folder = path.parent
        self._known(table, KEYS, "")

    def matrix(self) -> Matrix:
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
        rows = [Row(m, b, e, common | own, {}, n) for m, b, e, own, n in every]
        if len(rows) > MOST_ROWS:
            raise self._wrong(f"{len(rows):,} rows; wanted at most {MOST_ROWS:,}")
        kept = tuple(row for row in rows if not any(_matches(row, one) for one in excluded))
        varied = tuple(
            (Row(m, b, (space.accelerator,), common | own, {}, n), space)
            for space in spaces
            for m, b, own, n in product(models, boards, axis, again)
        )
        varied = tuple(entry for entry in varied if not any(_matches(entry[0], one) for one in excluded))
        if not kept and not varied:
            raise self._wrong("every row is excluded; wanted one at least")
        return Matrix(self.path, kept, varied, self._figures(), self._expected())

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
        if not path.is_file():
            raise self._wrong(f"{key} names {word!r}, and there is no file {path}")
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
        """A path is from this file's folder, and stays one."""
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
            if not sound:
                raise self._wrong(f"{key} in [[space]] is {values!r}; wanted a list of numbers")
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


def _matches(row: Row, excluded: Mapping[str, Any]) -> bool:
    """Patterns of names, and options by their values."""
    engines = [Path(name).name for name in row.accelerators] or [CPU_ONLY]
    names = {"model": [Path(row.model).stem, Path(row.model).name], "board": [row.board], "accelerator": engines}
    return all(
        any(fnmatchcase(name, str(value)) for name in names[key]) if key in names else row.options.get(key) == value
        for key, value in excluded.items()
    )


def combinations(space: Space) -> Iterator[dict[str, int]]:
    """Every choice of the space's numbers."""
    for values in product(*space.numbers.values()):
        yield dict(zip(space.numbers, values, strict=True))
