"""Keeps results of a sweep in a file, compares them with stored figures, and writes them as JUnit XML and Parquet."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from uaccel.errors import InputError, UaccelError
from uaccel.runner.sweep.row_result import FAILED, FIGURES, GOOD, WRONG, RowResult
from uaccel.util import incoming
from uaccel.util.files import imported, parse_json, require_writable, write_atomically, writing

# The file of results: one JSON object a line, appended as they come, so that a sweep can be interrupted at any time.


class SweepResults:
    """Reads and appends results; it must be entered before results are added.

    A line that was cut off when its writer was killed is ended with a line break, and skipped by readers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> SweepResults:
        require_writable(self.path, "-o")
        with writing(self.path, "-o"):
            self._stream = self.path.open("ab")
            self._end_line()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stream is not None
        self._stream.close()

    def add(self, result: RowResult) -> None:
        """Appends a result and waits until it is on the disk."""
        assert self._stream is not None
        with writing(self.path, "-o"):
            self._stream.write(json.dumps(result.to_json(), ensure_ascii=False).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def read(self) -> dict[str, RowResult]:
        """Returns the results by digest, the last one of each."""
        return {result.digest: result for result in read_results(self.path)} if self.path.exists() else {}

    def _end_line(self) -> None:
        """Ends a line that was cut off, so that the next result has its own."""
        assert self._stream is not None
        if self._stream.tell():
            with incoming.opened(self.path) as stream:
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    self._stream.write(b"\n")


def read_results(path: Path) -> Iterable[RowResult]:
    """Yields the results of a file that a sweep wrote, without lines that were cut off."""
    with incoming.reading(InputError, path, "wanted what 'uaccel sweep' writes"):
        lines = incoming.read_bytes(path).splitlines()
    for number, line in enumerate(lines, 1):
        try:
            yield RowResult.from_json(parse_json(line))
        except (ValueError, KeyError, TypeError) as error:
            if number == 1 and len(lines) > 1:
                raise InputError(f"{path}:1 is no result; wanted what 'uaccel sweep' writes") from error
            continue  # cut off when its writer was killed


# Stored figures of a matrix: a sweep fails if a row falls behind them.

Stored = Mapping[str, Mapping[str, float]]  # The figures of each row, by the row's title.


@dataclass(frozen=True)
class Regression:
    """Names a figure that is worse than the stored one by more than it may be."""

    title: str
    figure: str
    stored: float
    now: float

    def __str__(self) -> str:
        grown = f" ({100 * (self.now / self.stored - 1):+.1f} %)" if self.stored else ""
        return f"{self.title}: {self.figure} is {self.now:,.10g}, stored are {self.stored:,.10g}{grown}"


def read_expected(path: Path) -> Stored:
    """Reads stored figures; none if the file is not there yet."""
    if not path.exists():
        return {}
    with incoming.reading(InputError, path):
        content = incoming.read_bytes(path)
    try:
        figures = parse_json(content)["figures"]
        return {title: {name: float(value) for name, value in row.items()} for title, row in figures.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} holds no figures; wanted what 'uaccel sweep --accept' writes") from error


def behind(results: Iterable[RowResult], figures: Mapping[str, float], stored: Stored) -> list[Regression]:
    """Finds the figures of good results that fell behind. More is worse, except for utilisation and offloaded layers.

    ``figures``: by how many percent each may be worse."""
    found = []
    for result in results:
        before = stored.get(result.row.title, {})
        for name, percent in figures.items():
            now = result.figures.get(name)
            if result.status not in GOOD or name not in before or now is None:
                continue
            if _worse(name, before[name], now, percent):
                found.append(Regression(result.row.title, name, before[name], now))
    return found


def _worse(name: str, stored: float, now: float, percent: float) -> bool:
    if name in ("utilisation", "offloaded"):
        return now < stored * (1 - percent / 100)
    return now > stored * (1 + percent / 100)


def write_expected(path: Path, results: Iterable[RowResult], figures: Mapping[str, float]) -> None:
    """Stores the figures of good results, for review and for the next sweep."""
    rows = {
        result.row.title: {name: value for name, value in sorted(result.figures.items()) if name in figures}
        for result in results
        if result.status in GOOD
    }
    text = json.dumps({"figures": dict(sorted(rows.items()))}, indent=1) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()), "expected in the matrix file")


# Results as JUnit XML for continuous integration: a test case for each row.

JUNIT_OPTION = "--junit"
# Characters that XML 1.0 cannot hold, not even as escapes.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, name: str, results: Sequence[RowResult], worse: Sequence[Regression]) -> None:
    """Writes a suite of this name; a row that is wrong or behind is a failure, one that did not run is an error."""
    text = ET.tostring(_suites(name, results, worse), encoding="utf-8", xml_declaration=True)
    write_atomically(path, lambda stream: stream.write(text + b"\n"), JUNIT_OPTION)


def _suites(name: str, results: Sequence[RowResult], worse: Sequence[Regression]) -> ET.Element:
    behind: dict[str, list[Regression]] = {}
    for entry in worse:
        behind.setdefault(entry.title, []).append(entry)
    cases = [_case(name, result, behind.get(result.row.title, ())) for result in results]
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(result.took for result in results):.3f}",
    }
    suites = ET.Element("testsuites", totals)
    ET.SubElement(suites, "testsuite", {"name": _clean(name), **totals}).extend(cases)
    return suites


def _case(suite: str, result: RowResult, behind: Sequence[Regression]) -> ET.Element:
    board = Path(result.row.board).stem.replace(".", "_")
    words = {"classname": f"{suite}.{board}", "name": result.row.title, "time": f"{result.took:.3f}"}
    case = ET.Element("testcase", {key: _clean(value) for key, value in words.items()})
    if result.status == FAILED:
        _say(case, "error", result.status, result.error, result.log)
    elif result.status == WRONG:
        _say(case, "failure", result.status, result.error, result.log)
    elif behind:
        _say(case, "failure", "behind", str(behind[0]), "\n".join(map(str, behind)))
    return case


def _say(case: ET.Element, kind: str, type_: str, message: str, log: str) -> None:
    told = ET.SubElement(case, kind, {"type": type_, "message": _clean(message)})
    told.text = _clean(log or message)


def _clean(text: str) -> str:
    """Writes characters that XML cannot hold as Python's escapes."""
    return _FORBIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)


# Results as a Parquet table: a line for each row of the matrix, a column for each figure.

OPTION = "--parquet"


def pyarrow(name: str = "pyarrow") -> Any:
    """Imports a module of pyarrow, an optional package, when it is first needed."""
    takes = f"{OPTION} takes the pyarrow package, and importing it"
    return imported(name, UaccelError, takes, "install it: pip install 'uaccel[farm]'")


def write_parquet(path: Path, results: Sequence[RowResult]) -> None:
    """Writes a table in which unknown figures are null; options and tags are JSON."""
    table = pyarrow().table(_columns(results))
    parquet = pyarrow("pyarrow.parquet")
    write_atomically(path, lambda stream: parquet.write_table(table, stream), OPTION)


def _columns(results: Sequence[RowResult]) -> dict[str, Any]:
    arrow = pyarrow()
    rows, text = [result.row for result in results], arrow.string()

    def words(values: Sequence[str]) -> Any:
        return arrow.array([value.encode("utf-8", "replace").decode() for value in values], text)

    return {
        "title": words([row.title for row in rows]),
        "model": words([row.model for row in rows]),
        "board": words([row.board for row in rows]),
        "accelerators": arrow.array([list(row.accelerators) for row in rows], arrow.list_(text)),
        "options": words([json.dumps(dict(row.options)) for row in rows]),
        "tags": words([json.dumps(dict(row.tags)) for row in rows]),
        "repetition": arrow.array([row.repetition for row in rows], arrow.int32()),
        "label": words([result.label for result in results]),
        "status": words([result.status for result in results]),
        "error": words([result.error for result in results]),
        **{name: arrow.array([one.figures.get(name) for one in results], arrow.float64()) for name in FIGURES},
        "took": arrow.array([result.took for result in results], arrow.float64()),
    }
