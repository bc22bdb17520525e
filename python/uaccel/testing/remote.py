"""Lets a test check a model on a board of a lab: a worker of a Dask scheduler compiles, runs and compares it."""

from __future__ import annotations

import atexit
import base64
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from uaccel.board import Board, load_board
from uaccel.errors import DeviceError, InputError, UaccelError, need
from uaccel.model import npz_arrays, write_npz
from uaccel.runner.sweep.farm import Farm
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.row_result import RowJob
from uaccel.runner.sweep.scheduler import exposure, keys_for
from uaccel.session.link import Timeouts
from uaccel.testing.board import BoardUnderTest, Report
from uaccel.testing.firmware_cache import CachedFirmware, Workshop
from uaccel.testing.outcome import Check, Outcome, Values
from uaccel.util.form import NUMBER, TEXT, WHOLE, Maybe, Named, Value, complaint


@dataclass(frozen=True)
class _Given:
    """Holds what a worker must know of a check besides the files, which its row names."""

    check: Check
    timeouts: Timeouts


# What it returns: an outcome with its arrays as an .npz, and figures for JUnit's XML; or an error, by its class.
_FIGURE: Final = Value("a number or text", lambda value: isinstance(value, (int, float, str)))
_OUTCOME: Final = {
    "outputs": TEXT,
    "seconds": Maybe(NUMBER),
    "instructions": Maybe(WHOLE),
    "stack": WHOLE,
    "calls": Named(WHOLE),
    "reports": Named(_FIGURE),
}
_ERROR: Final = {"error": TEXT, "words": TEXT}


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
        need(not found.failure, found.failure, DeviceError)
        if "error" in found.result:
            raise _error_of(found.result)
        outcome = _outcome_of(found.result)
        for name, value in found.result["reports"].items():
            self._report(name, value)
        return outcome

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
    try:
        outcome = under_test._do(replace(given.check, model=Path(row.model), accelerators=accelerators))
    except UaccelError as error:
        return {"error": type(error).__name__, "words": str(error)}
    arrays = BytesIO()
    write_npz(arrays, outcome.outputs)
    return {**vars(outcome), "outputs": base64.b64encode(arrays.getvalue()).decode(), "reports": reports}


def _outcome_of(told: Mapping[str, Any]) -> Outcome:
    """Reads an outcome, which any worker may have written."""
    wrong = complaint(told, _OUTCOME)
    try:
        arrays = {} if wrong else npz_arrays(BytesIO(base64.b64decode(told["outputs"], validate=True)))
    except (ValueError, OSError) as error:
        wrong = f"outputs: {error}"
    need(not wrong, f"what came back is no outcome of a check: {wrong}", DeviceError)
    return Outcome(arrays, told["seconds"], told["instructions"], told["stack"], told["calls"])


def _error_of(told: Mapping[str, Any]) -> UaccelError:
    """Makes the error that a worker names, if that is one of uaccel's; one of a layer is a device's here."""
    wrong = complaint(told, _ERROR)
    if wrong:
        return DeviceError(f"what came back is no error of a check: {wrong}")
    known = {kind.__name__: kind for kind in UaccelError.__subclasses__() if kind.__module__ == UaccelError.__module__}
    return known.get(told["error"], DeviceError)(told["words"])


@lru_cache(maxsize=1)
def _workshop() -> Workshop:
    """Returns the firmware cache of this process; its folder is removed at exit."""
    folder = tempfile.mkdtemp(prefix="uaccel-checks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Workshop(Path(folder))


def farm_of(address: str, tls: Path | None, wait: float) -> Farm:
    """Connects to a lab in which checks run; ``tls``: as :func:`~uaccel.runner.sweep.scheduler.keys_for` wants it."""
    keys = keys_for(address, tls)
    if exposed := exposure(address):
        warnings.warn(exposed, stacklevel=2)
    return Farm(address, tls=keys, wait=wait, function=check_here)
