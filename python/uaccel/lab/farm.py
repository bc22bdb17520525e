"""Workers of a Dask scheduler that work through rows: each is sent whole, and runs where what it needs is.

A row for a board at a line goes in three parts: built, run, judged. Dask hands the parts on, and does those again whose
worker died. A board that fails three times in a row is left alone until the next sweep.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from uaccel.errors import UaccelError
from uaccel.lab.connect import Tls, connect
from uaccel.lab.parcel import Packed, Packer, Parcel, replaced
from uaccel.lab.parts import BOARD, BUILD, JUDGE, WHOLE, BoardFailed, Job, act
from uaccel.lab.pool import ATTEMPTS, Limits, Outcome
from uaccel.lab.row import Row
from uaccel.lab.station import Lost, Task, as_it_is, do_task

BUILDS: Final = "build"
"""The resource of workers that have compilers and TVM."""
WINDOW: Final = 400
"""Rows that the scheduler knows of at a time."""
WAIT_SECONDS: Final = 60.0
"""How long rows wait for a worker that can run them."""
_LOOK_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 30.0
Item = tuple[str, Mapping[str, Any]]


def board_resource(name: str) -> str:
    """What a worker that has the board says it has."""
    return f"board:{name}"


@dataclass
class _Piece:
    """A row on its way: ``board`` where it needs one at a line, ``futures`` by part."""

    item: Item
    packed: Packed
    board: str
    attempts: int = 0
    futures: dict[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> list[str]:
        return [BUILDS, board_resource(self.board)] if self.board else [BUILDS]


class Farm:
    """``wait``: seconds after which rows fail that no worker can run. ``function``: as in :class:`Task`; one of the
    caller's own gets rows for boards at lines as a whole, where both the board and compilers are."""

    def __init__(
        self,
        address: str,
        limits: Limits | None = None,
        tls: Tls | None = None,
        wait: float = WAIT_SECONDS,
        function: Callable[[Job], Any] = act,
    ) -> None:
        self._address = address
        self._limits = limits or Limits()
        self._wait = wait
        self._function = function
        self._parts = function is act
        self._client = connect(address, tls)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What waits is cancelled; what runs ends by itself."""
        self._client.cancel(
            [future for piece in self._running.values() for future in piece.futures.values()], force=True
        )
        self._running.clear()
        self._contents.clear()
        self._client.close(timeout=5)

    def run(self, items: Sequence[Item], given: Mapping[str, Any] | None = None) -> Iterator[Outcome]:
        """Outcomes as they come; every item has one. ``given``: what jobs get besides, by the items' digests."""
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

    def _begin(self, item: Item) -> Iterator[Outcome]:
        row = Row.from_json(item[1])
        try:
            request = row.request()
            packed = self._packer.pack(row)
        except UaccelError as error:
            yield Outcome(item, failure=str(error))
            return
        piece = _Piece(item, packed, request.board.name if request.at_line else "")
        if piece.board in self._quarantined:
            yield Outcome(item, failure=self._quarantined[piece.board])
            return
        self._submit(piece)

    def _submit(self, piece: _Piece) -> None:
        """A board's later tries come after the first ones of other rows."""
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
        return self._client.submit(
            do_task, task, parcels, before, resources=dict.fromkeys(needs, 1), priority=-piece.attempts, pure=False
        )

    def _content(self, parcel: Parcel) -> Any:
        """Sent once, and held by Dask as long as this sweep lasts."""
        if parcel.digest not in self._contents:
            key = f"uaccel-{parcel.digest}"
            self._contents[parcel.digest] = self._client.submit(as_it_is, parcel, key=key)
        return self._contents[parcel.digest]

    # ------------------------------------------------------------------------------------------------ results in

    def _finished(self) -> list[Any]:
        """Those that are done by now, after a while of waiting for one."""
        found = []
        try:
            found.append(self._done.get(timeout=_LOOK_SECONDS))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            return [future for future in found if future in self._running]

    def _values(self, futures: Sequence[Any]) -> Iterator[tuple[_Piece, Any]]:
        whole = [future for future in futures if future.status == "finished"]
        values = self._gathered(whole)
        for future in futures:
            piece = self._running.pop(future)
            if future in values:
                yield piece, values[future]
            elif future.status == "error":
                yield piece, Lost(_words(future.exception()), attempts=ATTEMPTS)
            else:
                self._require_scheduler()
                self._submit(piece)

    def _gathered(self, futures: list[Any]) -> dict[Any, Any]:
        """Those that are still there: a worker may have died with what it was to give."""
        try:
            return dict(zip(futures, self._client.gather(futures), strict=True))
        except Exception:  # whatever Dask calls it, it is one of them
            found = {}
            for future in futures:
                with suppress(Exception):
                    found[future] = future.result(timeout=_GATHER_SECONDS)
            return found

    def _settled(self, piece: _Piece, value: Any) -> Iterator[Outcome]:
        if isinstance(value, BoardFailed):
            yield from self._board_failed(piece, replaced(value.error, piece.packed.paths))
            return
        self._failures.pop(piece.board, None)
        piece.futures.clear()
        if isinstance(value, Lost):
            failure, log = replaced([value.failure, value.log], piece.packed.paths)
            yield Outcome(piece.item, None, failure, log, max(value.attempts, piece.attempts))
        else:
            told = replaced(value, piece.packed.paths) if isinstance(value, dict) else value
            yield Outcome(piece.item, told, attempts=piece.attempts)

    def _board_failed(self, piece: _Piece, error: str) -> Iterator[Outcome]:
        board = piece.board
        self._failures[board] += 1
        if self._failures[board] >= ATTEMPTS and board not in self._quarantined:
            line = f"board {board} is left alone: it failed {ATTEMPTS} times in a row, last: {error}"
            self._quarantined[board] = f"{line}; look after it, then sweep again"
        if board in self._quarantined:
            yield Outcome(piece.item, failure=self._quarantined[board], attempts=piece.attempts)
            yield from self._given_up(lambda other: other.board == board, self._quarantined[board])
        elif piece.attempts < ATTEMPTS:
            self._submit(piece)
        else:
            yield Outcome(piece.item, failure=error, attempts=piece.attempts)

    def _given_up(self, which: Callable[[_Piece], bool], failure: str) -> Iterator[Outcome]:
        for future, piece in list(self._running.items()):
            if which(piece):
                del self._running[future]
                self._client.cancel(list(piece.futures.values()), force=True)
                yield Outcome(piece.item, failure=failure, attempts=piece.attempts)

    # ------------------------------------------------------------------------------------------------ who is there

    def _look(self) -> Iterator[Outcome]:
        """Nothing came for a while: is anybody there to do it?"""
        self._require_scheduler()
        workers = self._client.scheduler_info()["workers"].values()
        there = {name for worker in workers for name, count in worker.get("resources", {}).items() if count}
        now = time.monotonic()
        for need in sorted({need for piece in self._running.values() for need in piece.needs}):
            since = self._seen.setdefault(need, now)
            if need in there:
                self._seen[need] = now
            elif now - since > self._wait:
                failure = f"no worker with {need} for {self._wait:g} s; start one with {_command(need, self._address)}"
                yield from self._given_up(_needing(need), failure)

    def _require_scheduler(self) -> None:
        if self._client.status != "running":
            raise UaccelError(
                f"the scheduler at {self._address} has gone; start it, and the same sweep again: it goes on from here"
            )


def _needing(need: str) -> Callable[[_Piece], bool]:
    return lambda piece: need in piece.needs


def _command(need: str, address: str) -> str:
    board = f" --board {need.partition(':')[2]}=PORT" if need != BUILDS else ""
    return f"'uaccel worker {address}{board}'"


def _words(error: BaseException) -> str:
    """Dask's own errors are several lines long."""
    if type(error).__name__ == "KilledWorker":
        return (
            f"its worker died, and so did those that tried it again ({getattr(error, 'allowed_failures', 3)} at least)"
        )
    return f"{type(error).__name__}: {error}"
