"""Gives rows of a sweep to the workers of a Dask scheduler, and lets this process be such a worker.

A row for a board at a line goes in three stages, built, run and judged, each where its computer can do it. Other rows
go as a whole. Dask hands on results of stages, and repeats stages whose worker died.
"""

from __future__ import annotations

import asyncio
import queue
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from uaccel.bench import find_port
from uaccel.board import SerialRun, available_boards
from uaccel.errors import DeviceError, InputError, UaccelError
from uaccel.runner.sweep.answer import Lost, read_answer
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.options import PoolLimits
from uaccel.runner.sweep.pool import ATTEMPTS, PoolOutcome
from uaccel.runner.sweep.row_result import BOARD, BUILD, JUDGE, WHOLE, BoardFailed, RowJob, act
from uaccel.runner.sweep.scheduler import LOOPBACK, SECONDS, SchedulerLink, checked, distributed, no_scheduler, security
from uaccel.runner.sweep.worker import Packed, Packer, Parcel, Station, Task, as_it_is, do_task, forget_old, take_over

# Rows out to workers, results back in.
#
# There are two counts of failures. A row whose board failed is tried up to three times, behind the first tries of other
# rows. A board that failed three times in a row, whichever rows these were, is left alone until the next sweep.

BUILDS: Final = "build"  # The resource of workers that have compilers and TVM.
WINDOW: Final = 400  # Rows that the scheduler knows of at a time, however large the matrix is.
WAIT_SECONDS: Final = 60.0  # How long rows wait for a worker that can run them.
_LOOK_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 30.0
_DIED: Final = (
    "its worker died, and so did those that tried it again; or they could not read what they were sent: have all ends "
    "the same Python and Dask?"
)
_NO_ANSWER: Final = f"{ATTEMPTS} times its worker was lost before it had answered, or answered what is no text"
Item = tuple[str, Mapping[str, Any]]


def board_resource(name: str) -> str:
    """Returns the name of the resource that workers with the board offer."""
    return f"board:{name}"


@dataclass
class _Piece:
    """Follows a row on its way: ``board`` if it needs one at a line, ``futures`` by stage."""

    item: Item
    packed: Packed
    board: str
    attempts: int = 0
    futures: dict[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> list[str]:
        return [BUILDS, board_resource(self.board)] if self.board else [BUILDS]


class Farm:
    """Works through items with the workers of a scheduler.

    Each item ends as exactly one outcome. It is in ``_running`` by the future of its last stage, until that settles; a
    row that is tried again gets new futures, but keeps that of its build. A row whose last future was lost without an
    error, as after a worker's death, is submitted again.

    ``wait``: seconds after which rows fail that no worker can run. ``function``: as in :class:`Task`; a function of the
    caller's own gets rows for boards at lines as a whole, where both the board and compilers are."""

    def __init__(
        self,
        address: str,
        limits: PoolLimits | None = None,
        tls: Path | None = None,
        wait: float = WAIT_SECONDS,
        function: Callable[[RowJob], Any] = act,
    ) -> None:
        self._limits = limits or PoolLimits()
        self._wait = wait
        self._function = function
        self._parts = function is act
        self._link = SchedulerLink(address, tls)
        self._contents: dict[str, Any] = {}
        self._packer = Packer()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[Any, _Piece] = {}
        self._given: Mapping[str, Any] = {}
        self._failures: Counter[str] = Counter()
        self._quarantined: dict[str, str] = {}
        self._seen: dict[str, float] = {}

    def __enter__(self) -> Farm:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancels what waits; what runs ends by itself."""
        self._link.cancel([future for piece in self._running.values() for future in piece.futures.values()])
        self._running.clear()
        self._contents.clear()
        self._link.close()

    def run(self, items: Sequence[Item], given: Mapping[str, Any] | None = None) -> Iterator[PoolOutcome]:
        """Yields outcomes as they come; every item has one. ``given``: what jobs get besides, by the items' digests."""
        waiting = deque(items)
        self._given = given or {}
        while waiting or self._running:
            while waiting and len(self._running) < WINDOW:
                yield from self._begin(waiting.popleft())
            finished = self._finished()
            for piece, value in self._values(finished):
                yield from self._settled(piece, value)
            if not finished:
                yield from self._look()

    # ------------------------------------------------------------------------------------------------ rows out

    def _begin(self, item: Item) -> Iterator[PoolOutcome]:
        row = SweepRow.from_json(item[1])
        try:
            request = row.request()
            packed = self._packer.pack(row)
        except UaccelError as error:
            yield PoolOutcome(item, failure=str(error))
            return
        piece = _Piece(item, packed, request.board.name if request.at_line else "")
        if piece.board in self._quarantined:
            yield PoolOutcome(item, failure=self._quarantined[piece.board])
            return
        self._submit(piece)

    def _submit(self, piece: _Piece) -> None:
        """Submits the stages of a row; further tries have a lower priority than the first tries of other rows."""
        piece.attempts += 1
        parcels = [self._content(parcel) for parcel in piece.packed.parcels]
        if not (piece.board and self._parts):
            given = self._given.get(piece.item[0])
            last = self._part(piece, WHOLE, parcels, given, *piece.needs)
            piece.futures = {WHOLE: last}
        else:
            built = piece.futures.get(BUILD) or self._part(piece, BUILD, parcels, None, BUILDS)
            ran = self._part(piece, BOARD, parcels, built, board_resource(piece.board))
            last = self._part(piece, JUDGE, parcels, ran, BUILDS)
            piece.futures = {BUILD: built, BOARD: ran, JUDGE: last}
        self._running[last] = piece
        last.add_done_callback(self._done.put)

    def _part(self, piece: _Piece, kind: str, parcels: list[Any], before: Any, *needs: str) -> Any:
        digest, board = piece.item[0], piece.board if kind in (BOARD, WHOLE) else ""
        task = Task(kind, digest, piece.packed.row, board, self._limits, function=self._function)
        return self._link.submit(do_task, task, parcels, before, needs=needs, priority=-piece.attempts)

    def _content(self, parcel: Parcel) -> Any:
        """Returns the future of a parcel, which is sent once and held by Dask as long as this sweep lasts."""
        if parcel.digest not in self._contents:
            self._contents[parcel.digest] = self._link.submit(as_it_is, parcel, key=f"uaccel-{parcel.digest}")
        return self._contents[parcel.digest]

    # ------------------------------------------------------------------------------------------------ results in

    def _finished(self) -> list[Any]:
        """Waits a while for a future, and returns all that are done by then."""
        found = []
        try:
            found.append(self._done.get(timeout=_LOOK_SECONDS))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            return [future for future in found if future in self._running]

    def _values(self, futures: Sequence[Any]) -> Iterator[tuple[_Piece, Any]]:
        texts = self._link.texts([one for one in futures if one.status == "finished"], _GATHER_SECONDS)
        for future in futures:
            piece = self._running.pop(future)
            if future in texts:
                yield piece, _read(texts[future], piece)
            elif future.status == "error":
                yield piece, Lost(_DIED, attempts=ATTEMPTS)
            elif piece.attempts < ATTEMPTS:
                self._link.require()
                self._submit(piece)
            else:
                yield piece, Lost(_NO_ANSWER, attempts=ATTEMPTS)

    def _settled(self, piece: _Piece, value: Any) -> Iterator[PoolOutcome]:
        if isinstance(value, BoardFailed):
            yield from self._board_failed(piece, value.error)
            return
        self._failures.pop(piece.board, None)
        piece.futures.clear()
        if isinstance(value, Lost):
            yield PoolOutcome(piece.item, None, value.failure, value.log, max(value.attempts, piece.attempts))
        else:
            yield PoolOutcome(piece.item, value, attempts=piece.attempts)

    def _board_failed(self, piece: _Piece, error: str) -> Iterator[PoolOutcome]:
        board = piece.board
        self._failures[board] += 1
        if self._failures[board] >= ATTEMPTS and board not in self._quarantined:
            line = f"board {board} is left alone: it failed {ATTEMPTS} times in a row, last: {error}"
            self._quarantined[board] = f"{line}; look after it, then sweep again"
        if board in self._quarantined:
            yield PoolOutcome(piece.item, failure=self._quarantined[board], attempts=piece.attempts)
            yield from self._given_up(lambda other: other.board == board, self._quarantined[board])
        elif piece.attempts < ATTEMPTS:
            self._submit(piece)
        else:
            yield PoolOutcome(piece.item, failure=error, attempts=piece.attempts)

    def _given_up(self, which: Callable[[_Piece], bool], failure: str) -> Iterator[PoolOutcome]:
        for future, piece in list(self._running.items()):
            if which(piece):
                del self._running[future]
                self._link.cancel(list(piece.futures.values()))
                yield PoolOutcome(piece.item, failure=failure, attempts=piece.attempts)

    # ------------------------------------------------------------------------------------------------ who is there

    def _look(self) -> Iterator[PoolOutcome]:
        """Gives up rows for which no worker has been there for ``wait`` seconds; called when nothing came for a while.

        The time counts from when a resource was last offered, or first looked for."""
        self._link.require()
        there = self._link.resources()
        now = time.monotonic()
        for need in sorted({need for piece in self._running.values() for need in piece.needs}):
            since = self._seen.setdefault(need, now)
            if need in there:
                self._seen[need] = now
            elif now - since > self._wait:
                failure = (
                    f"no worker with {need} for {self._wait:g} s; start one with {_command(need, self._link.address)}"
                )
                yield from self._given_up(_needing(need), failure)


def _needing(need: str) -> Callable[[_Piece], bool]:
    return lambda piece: need in piece.needs


def _command(need: str, address: str) -> str:
    board = f" --board {need.partition(':')[2]}=PORT" if need != BUILDS else ""
    return f"'uaccel worker {address}{board}'"


def _read(text: Any, piece: _Piece) -> Any:
    """Returns what a worker's answer tells; of one that is not as it should be, that it is not."""
    try:
        found = read_answer(text, piece.packed.paths)
        if isinstance(found, dict):
            found.pop("reads", None)  # it says nothing about this computer
        return found
    except ValueError as error:
        return Lost(f"what its worker answered is not what a worker answers: {error}")


# This process as a worker: what it offers, and its time at a scheduler.

AUTO: Final = "auto"


@dataclass(frozen=True)
class WorkerCapacity:
    """Says what a worker offers. ``jobs``: builds at a time, 0 without a compiler; ``boards``: ports by board names."""

    name: str
    jobs: int
    boards: Mapping[str, str] = field(default_factory=dict)
    limits: PoolLimits = field(default_factory=PoolLimits)
    board_wait: float = 20.0
    host: str = LOOPBACK  # Where it listens.

    @property
    def resources(self) -> dict[str, int]:
        builds = {BUILDS: self.jobs} if self.jobs else {}
        return builds | {board_resource(name): 1 for name in self.boards}


def can_build() -> bool:
    """Says whether TVM is installed here."""
    return find_spec("tvm") is not None


def found_boards() -> dict[str, str]:
    """Finds the boards that come with uaccel and are at a USB port of this computer."""
    found = {}
    for board in available_boards():
        if any(isinstance(run, SerialRun) and run.usb and run.port == AUTO for run in board.runs):
            try:
                find_port(board, AUTO)
            except DeviceError:
                continue
            found[board.name] = AUTO  # it may have another port after its cable was out
    return found


def stated_boards(words: list[str]) -> dict[str, str]:
    """Reads ``NAME=PORT`` words."""
    found = {}
    for word in words:
        name, equals, port = word.partition("=")
        if not equals or not name or not port:
            raise InputError(f"--board {word}: wanted NAME=PORT, such as nucleo_f746zg=/dev/ttyACM0")
        found[name] = port
    return found


def work_at(address: str, offer: WorkerCapacity, tls: Path | None, ready: Callable[[str], None]) -> None:
    """Works until the scheduler goes or a signal comes; ``ready`` is called with this worker's address."""
    if not offer.resources:
        raise InputError(
            "this worker has nothing to offer: no TVM to build with, no board; name one with --board NAME=PORT"
        )
    station = Station(offer.name, offer.boards, offer.limits, offer.board_wait)
    take_over(station)
    forget_old()
    try:
        with tempfile.TemporaryDirectory(prefix="uaccel-worker-") as folder:
            asyncio.run(_live(checked(address), offer, security(tls), folder, ready))
    finally:
        station.close()


async def _live(address: str, offer: WorkerCapacity, keys: Any, folder: str, ready: Callable[[str], None]) -> None:
    """Runs Dask's worker without a memory limit, as jobs have processes of their own with their own limits.

    It has a thread for each unit of its resources, so that builds and boards do not wait for each other."""
    worker = distributed().Worker(
        address,
        nthreads=sum(offer.resources.values()),
        resources=offer.resources,
        name=offer.name,
        security=keys,
        memory_limit=0,
        local_directory=folder,
        death_timeout=SECONDS,
        host=offer.host,
        dashboard=False,
        dashboard_address=f"{LOOPBACK}:0",  # Dask serves figures there, dashboard or not
    )
    try:
        await asyncio.wait_for(worker, SECONDS + 5)
    except (OSError, ValueError, asyncio.TimeoutError, RuntimeError) as error:
        raise no_scheduler(address, error) from error
    try:
        ready(worker.address)
        await worker.finished()
    finally:
        await worker.close(timeout=2, executor_wait=False, nanny=False)
    raise UaccelError(f"the scheduler at {address} has gone; start it, and this worker again")
