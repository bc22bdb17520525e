"""One worker of a lab: its boards, its limits, and the processes in which it does what it is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uaccel.bench import BoardAbsentError, find_port, hold
from uaccel.board import load_board
from uaccel.errors import DeviceError, UaccelError
from uaccel.lab.parcel import Parcel, replaced, unpacked
from uaccel.lab.parts import BOARD, JUDGE, BoardFailed, Job, Part, act
from uaccel.lab.pool import Limits, Outcome, Pool
from uaccel.version import __version__

BUSY_SECONDS: Final = 600.0
"""How long others of the computer may have a board that a job waits for."""
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Task:
    """What a worker is sent. ``board``: the name of the one that it needs. ``function`` is given the :class:`Job`."""

    kind: str
    digest: str
    row: Mapping[str, Any]
    board: str = ""
    limits: Limits = field(default_factory=Limits)
    version: str = __version__
    function: Callable[[Job], Any] = act


@dataclass(frozen=True)
class Lost:
    """What a job raised, or how its process ended."""

    failure: str
    log: str = ""
    attempts: int = 1


class Station:
    """``ports``: where boards are, by their names; ``wait``: how many seconds one may be away when it is needed."""

    def __init__(
        self, name: str = "", ports: Mapping[str, str] | None = None, limits: Limits | None = None, wait: float = 0.0
    ) -> None:
        self.name = name
        self.ports = dict(ports or {})
        self.limits = limits or Limits()
        self.wait = wait
        self._idle: list[tuple[Any, Pool]] = []
        self._pools: list[Pool] = []
        self._lock = threading.Lock()

    def do(self, task: Task, parcels: Sequence[Parcel], before: Any) -> Any:
        """A result as JSON, a :class:`Part` for the next, :class:`BoardFailed` or :class:`Lost`."""
        if task.version != __version__:
            return Lost(f"worker {self.name} has uaccel {__version__}, wanted {task.version}: install the same")
        if task.kind in (BOARD, JUDGE) and not isinstance(before, Part):
            return before  # the part before has failed: that is the result
        try:
            row, paths = unpacked(task.row, parcels)
        except OSError as error:
            return Lost(f"worker {self.name} cannot write {error.filename}: {error.strerror}")
        if not task.board:
            return self._worked(task, Job(task.kind, task.digest, row, before), paths)
        try:
            with self._held(task.board, row) as port:
                return self._worked(task, Job(task.kind, task.digest, row, before, port), paths)
        except DeviceError as error:
            return BoardFailed(str(error))
        except UaccelError as error:
            return Lost(str(error))

    def close(self) -> None:
        """End its processes, in the middle of a job too."""
        with self._lock:
            pools, self._pools = self._pools, []
        for pool in pools:
            pool.close()

    def _worked(self, task: Task, job: Job, paths: Mapping[str, str]) -> Any:
        with self._pool(task.function, task.limits.within(self.limits)) as pool:
            (outcome,) = pool.run([job])
        return self._told(outcome, paths)

    def _told(self, outcome: Outcome, paths: Mapping[str, str]) -> Any:
        """With marks in place of this computer's paths."""
        if outcome.result is None:
            failure, log = replaced([outcome.failure, outcome.log], paths)
            return Lost(failure, log, outcome.attempts)
        if isinstance(outcome.result, BoardFailed):
            return BoardFailed(replaced(outcome.result.error, paths))
        if isinstance(outcome.result, dict):
            return replaced(outcome.result, paths) | {"worker": self.name}
        return outcome.result

    @contextmanager
    def _pool(self, function: Callable[[Job], Any], limits: Limits) -> Iterator[Pool]:
        """A process that is warm, where one is idle; those for other work are ended."""
        kind = (function, limits)
        with self._lock:
            fitting = [entry for entry in self._idle if entry[0] == kind]
            others = [entry for entry in self._idle if entry[0] != kind]
            self._idle = fitting[:-1]
            ended = [entry[1] for entry in others]
            self._pools = [other for other in self._pools if other not in ended]
            pool = fitting[-1][1] if fitting else Pool(function, 1, limits)
            self._pools += [] if fitting else [pool]
        for other in ended:
            other.close()
        try:
            yield pool
        finally:
            with self._lock:
                self._idle.append((kind, pool))

    @contextmanager
    def _held(self, name: str, row: Mapping[str, Any]) -> Iterator[str]:
        """The board's port, when it is there and nobody else uses it."""
        port = self._port(name, row)
        with hold(port, wait=BUSY_SECONDS, user=f"uaccel worker {self.name}"):
            yield port

    def _port(self, name: str, row: Mapping[str, Any]) -> str:
        """It may have another number after the cable was out."""
        board, until = load_board(row["board"]), time.monotonic() + self.wait
        while True:
            try:
                port = find_port(board, self.ports.get(name, "auto"))
                if "://" in port or Path(port).exists():
                    return port
                problem = DeviceError(f"board {name} is not at {port} of worker {self.name}; plug it in")
            except BoardAbsentError as error:
                problem = error
            if time.monotonic() >= until:
                raise problem
            time.sleep(_LOOK_SECONDS)


_HERE: list[Station] = []


def take_over(station: Station) -> None:
    """From now on this process works as that worker."""
    _HERE[:] = [station]


def do_task(task: Task, parcels: Sequence[Parcel], before: Any) -> Any:
    """What workers are sent, as a module's own function."""
    if not _HERE:
        take_over(Station())
    return _HERE[0].do(task, parcels, before)


def as_it_is(parcel: Parcel) -> Parcel:
    """Content as a task: who loses it can make it again."""
    return parcel
