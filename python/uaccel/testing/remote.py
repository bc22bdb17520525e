"""Lets a test check a model on a board of a lab: a worker of a Dask scheduler compiles, runs and compares it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from uaccel import errors
from uaccel.board import Board, load_board
from uaccel.errors import DeviceError, InputError, UaccelError
from uaccel.runner.sweep.farm import Farm
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.row_result import RowJob
from uaccel.session.link import Timeouts
from uaccel.testing.board import BoardUnderTest, Report
from uaccel.testing.firmware_cache import CachedFirmware, Workshop
from uaccel.testing.outcome import Check, Outcome, Values


@dataclass(frozen=True)
class _Given:
    """Holds what a worker must know of a check besides the files, which its row names."""

    check: Check
    timeouts: Timeouts


@dataclass(frozen=True)
class _Checked:
    """Holds what it returns of a check that passed; ``reports`` are for JUnit's XML."""

    outcome: Outcome
    reports: dict[str, object] = field(default_factory=dict)


class BoardInLab(BoardUnderTest):
    """Is a board at some worker; ``port`` is for a board that could be emulated as well."""

    def __init__(
        self, board: Board, port: str, farm: Farm, folders: tuple[Path, ...], timeouts: Timeouts, report: Report
    ) -> None:
        super().__init__(board, port, Workshop(Path()), folders, timeouts, report)
        self._farm = farm

    def _made(self, model: Path, accelerators: Sequence[str | Path], objective: str) -> CachedFirmware:
        """Raises an error: a session needs a line to the board, and no line goes through a scheduler."""
        raise InputError(
            f"a session with board {self.name} goes over a line, and --uaccel-scheduler gives none; "
            "run this test at the board with --uaccel-port, or use check()"
        )

    def _do(self, check: Check) -> Outcome:
        options = {"port": self.port} if self.port else {}
        row = SweepRow(str(check.model), self._board_word(), tuple(map(_word, check.accelerators)), options)
        here = replace(check, accelerators=(), inputs=_arrays(check.inputs), expected=_arrays(check.expected))
        item = ("check", row.to_json())
        (found,) = self._farm.run([item], {"check": _Given(here, self._timeouts)})
        if found.failure:
            raise DeviceError(found.failure)
        if isinstance(found.result, _Checked):
            for name, value in found.result.reports.items():
                self._report(name, value)
            return found.result.outcome
        kind = getattr(errors, found.result["error"], UaccelError)
        raise (DeviceError if kind is errors.LayerError else kind)(found.result["words"])

    def _board_word(self) -> str:
        bundled = load_board(self.board.name).file if _is_bundled(self.board.name) else None
        return self.board.name if bundled == self.board.file else str(self.board.file)


def _is_bundled(name: str) -> bool:
    from uaccel.board import available_boards

    return any(board.name == name for board in available_boards())


def _word(accelerator: str | Path) -> str:
    return str(accelerator.resolve()) if isinstance(accelerator, Path) else accelerator


def _arrays(values: Values | None) -> Values | None:
    """Reads the arrays of a file here, as the worker does not have it."""
    from uaccel.session.tensors import read_arrays

    return read_arrays(Path(values)) if isinstance(values, (str, Path)) else values


def check_here(job: RowJob) -> Any:
    """Does a check in a worker's process. A failure is returned as JSON, in which paths become those of the test."""
    row, given = SweepRow.from_json(job.row), job.before
    assert isinstance(given, _Given)
    reports: dict[str, object] = {}
    board = load_board(row.board)
    under_test = BoardUnderTest(board, job.port, _workshop(), (Path(),), given.timeouts, reports.__setitem__)
    accelerators = tuple(Path(name) if "/" in name else name for name in row.accelerators)
    check = given.check
    try:
        outcome = under_test.check(
            Path(row.model),
            check.inputs,
            check.expected,
            accelerators=accelerators,
            objective=check.objective,
            sequence=check.sequence,
            samples=check.samples,
            seed=check.seed,
        )
        return _Checked(outcome, reports)
    except UaccelError as error:
        return {"error": type(error).__name__, "words": str(error)}


@lru_cache(maxsize=1)
def _workshop() -> Workshop:
    """Returns the firmware cache of this process; its folder is removed at exit."""
    folder = tempfile.mkdtemp(prefix="uaccel-checks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Workshop(Path(folder))


def farm_of(address: str, files: Mapping[str, str | None], wait: float) -> Farm:
    """Connects to a lab in which checks run.

    ``files``: the TLS files, as :func:`~uaccel.runner.sweep.farm.tls_of` names them."""
    from uaccel.runner.sweep.farm import tls_of

    paths = {name: Path(path) if path else None for name, path in files.items()}
    return Farm(address, tls=tls_of(address, **paths), wait=wait, function=check_here)
