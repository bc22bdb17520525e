"""Provides the fixture ``uaccel_board``: one board, and all that a test can do with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from uaccel.board import Board
from uaccel.errors import ModelError, UaccelError, escape_terminal
from uaccel.testing.firmware_cache import CachedFirmware, Workshop
from uaccel.testing.needs import over_line
from uaccel.testing.outcome import Check, Outcome, Values

if TYPE_CHECKING:
    from uaccel.session.link import Timeouts
    from uaccel.session.session import LogLine, Session

Report = Callable[[str, object], None]


class BoardUnderTest:
    """Is one board, which belongs to this test alone while it runs."""

    def __init__(
        self, board: Board, port: str, workshop: Workshop, folders: tuple[Path, ...], timeouts: Timeouts, report: Report
    ) -> None:
        self.board = board
        self.port = port  # Where it is; empty for a board that runs as a process of this computer.
        self._workshop = workshop
        self._folders = folders
        self._timeouts = timeouts
        self._report = report

    @property
    def name(self) -> str:
        """The board's name."""
        return self.board.name

    def __repr__(self) -> str:
        return f"<board {self.name}{f' at {self.port}' if self.port else ''}>"

    def check(
        self,
        model: str | Path,
        inputs: Values | None = None,
        expected: Values | None = None,
        *,
        accelerators: Sequence[str | Path] = (),
        objective: str = "latency",
        sequence: bool = False,
        samples: int = 8,
        seed: int = 0,
    ) -> Outcome:
        """Compile, build, flash and run a model, and compare what it computes.

        ``inputs``: without them the ramp, whose outputs the outcome has; zeros, extremes and random values from
        ``seed`` are compared as well, ``samples`` in all. ``expected``: without it the exact meaning of the model.
        Where a byte differs, :class:`~uaccel.errors.VerificationError` says which, and in which layer it first went
        wrong.
        ``accelerators``: names, or :class:`~pathlib.Path` of their folders, the preferred one first.
        ``objective``: what those that can plan for it save, ``latency`` or ``energy``.
        ``sequence``: the samples are frames in order, and the model's state goes on from each to the next.
        """
        __tracebackhide__ = True
        path, engines = self._path(model), tuple(accelerators)
        try:
            return self._do(Check(path, inputs, expected, engines, objective, sequence, samples, seed))
        except UaccelError as error:
            if os.environ.get("UACCEL_DEBUG") == "1":
                raise
            raise error.with_traceback(None) from None  # the test's own line is what matters

    @contextmanager
    def session(
        self,
        model: str | Path,
        *,
        observe: bool = False,
        accelerators: Sequence[str | Path] = (),
        objective: str = "latency",
    ) -> Iterator[Session]:
        """Compile, build and flash a model, and talk to it; with ``observe`` its layers can be read."""
        product = self._made(self._path(model), accelerators, objective)
        with product.bench(self.port, self._timeouts).session(observe=observe, on_log=self._show_log) as session:
            yield session

    def _do(self, check: Check) -> Outcome:
        """Does a check whose model is given by its full path."""
        from uaccel.testing.check import check_product  # what it imports takes seconds

        product = self._made(check.model, check.accelerators, check.objective)
        at_line = over_line(self.board, self.port)  # there it would be flashed a second time to look inside
        where = {"port": self.port, "timeouts": self._timeouts}
        outcome = check_product(product, check, self._show_log, look_inside=not at_line, **where)
        for what, value in (("instructions", outcome.instructions), ("seconds", outcome.seconds)):
            if value is not None:
                self._report(f"uaccel_{product.compiled.program.name}_{what}", value)
        return outcome

    def _made(self, model: Path, accelerators: Sequence[str | Path], objective: str) -> CachedFirmware:
        return self._workshop.product(model, self.board, accelerators, objective)

    def _show_log(self, line: LogLine) -> None:
        """Prints a line of the device's log; pytest shows it if the test fails."""
        lost = f" ({line.lost} lines before it were lost)" if line.lost else ""
        print(escape_terminal(f"{self.name}: {line.level.name.lower()}: {line.text}{lost}"))

    def _path(self, model: str | Path) -> Path:
        """Finds a model in the test's own folder, else where pytest was started."""
        places = dict.fromkeys(folder / model for folder in self._folders)
        found = next((place for place in places if place.exists()), None)
        if found is None:
            raise ModelError(
                f"there is no model {' or '.join(map(str, places))}; give its path, "
                "or one that comes along: uaccel.models()['gesture']"
            )
        return found
