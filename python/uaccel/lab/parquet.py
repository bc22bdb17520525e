"""Results as a Parquet table, for pandas, DuckDB and their like: a row for each row, a column for each figure."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from uaccel.basics.files import write_atomically
from uaccel.errors import UaccelError
from uaccel.lab.work import FIGURES, Result

OPTION = "--parquet"


def pyarrow(name: str = "pyarrow") -> Any:
    """A module of the package, which is an extra, imported when it is first needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UaccelError(
            f"{OPTION} takes the pyarrow package, and importing it fails ({error}); "
            "install it: pip install 'uaccel[farm]'"
        ) from error


def write_parquet(path: Path, results: Sequence[Result]) -> None:
    """Figures that are not known are null; options and tags are JSON."""
    table = pyarrow().table(_columns(results))
    parquet = pyarrow("pyarrow.parquet")

    def write(stream: IO[bytes]) -> None:
        parquet.write_table(table, stream)

    write_atomically(path, write, OPTION)


def _columns(results: Sequence[Result]) -> dict[str, Any]:
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
