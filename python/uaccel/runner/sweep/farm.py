"""Gives rows of a sweep to the workers of a Dask scheduler, and lets this process be such a worker.

A row for a board at a line goes in three stages, built, run and judged, each where its computer can do it. Other rows
go as a whole. Dask hands on results of stages, and repeats stages whose worker died.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import re
import tempfile
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from uaccel.bench import find_port
from uaccel.board import SerialRun, available_boards
from uaccel.errors import DeviceError, InputError, ToolError, UaccelError
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.pool import ATTEMPTS, PoolLimits, PoolOutcome
from uaccel.runner.sweep.row_result import BOARD, BUILD, JUDGE, WHOLE, BoardFailed, RowJob, act
from uaccel.runner.sweep.worker import (
    Lost,
    Packed,
    Packer,
    Parcel,
    Station,
    Task,
    as_it_is,
    do_task,
    forget_old,
    substitute_paths,
    take_over,
)
from uaccel.util import incoming

# The connection to a Dask scheduler: its address and the TLS files.

SECONDS: Final = 10.0  # How long a scheduler may take to answer.
_ADDRESS: Final = re.compile(r"(tcp|tls)://\S+:\d{1,5}")


@dataclass(frozen=True)
class Tls:
    """Names the files in PEM: the certificate of who signs, one's own, and its key."""

    ca: Path
    cert: Path
    key: Path


def tls_of(address: str, ca: Path | None, cert: Path | None, key: Path | None) -> Tls | None:
    """Checks the TLS options: ``tcp://`` takes none of them, ``tls://`` all three."""
    given = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    missing = [name for name, path in given.items() if path is None]
    if not address.startswith("tls://"):
        if len(missing) < len(given):
            raise InputError(f"{address} is not encrypted, and there are --tls options; wanted tls://HOST:PORT")
        return None
    if ca is None or cert is None or key is None:
        raise InputError(f"{address} takes --tls-ca, --tls-cert and --tls-key; missing: {', '.join(missing)}")
    for name, path in (("--tls-ca", ca), ("--tls-cert", cert), ("--tls-key", key)):
        try:
            incoming.read_bytes(path, incoming.TEXT)  # Python's TLS opens it by name, and would wait for a pipe
        except OSError as error:
            raise InputError(f"{name}: cannot read {path}: {error.strerror}; wanted a file in PEM") from error
    return Tls(ca, cert, key)


def distributed() -> Any:
    """Imports Dask's package and silences its logs."""
    try:
        import distributed as package
    except ImportError as error:
        raise ToolError(
            "a lab needs Dask, which is not installed; install it with: pip install 'uaccel[farm]'"
        ) from error
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", message="Sending large graph")
    return package


def checked(address: str) -> str:
    """Returns an address if a scheduler can have it."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"{address!r} is no address of a scheduler; wanted one such as tcp://192.168.1.10:8786")
    return address


def security(tls: Tls | None) -> Any:
    """Makes Dask's security settings, with which both ends must show a certificate of the same signer."""
    if tls is None:
        return None
    files = {"tls_ca_file": str(tls.ca)}
    for role in ("client", "worker", "scheduler"):
        files |= {f"tls_{role}_cert": str(tls.cert), f"tls_{role}_key": str(tls.key)}
    return distributed().Security(require_encryption=True, **files)


def connect(address: str, tls: Tls | None) -> Any:
    """Connects a client; raises a one-line error if nobody answers."""
    package = distributed()
    try:
        return package.Client(
            checked(address), security=security(tls), timeout=SECONDS, set_as_default=False, name="uaccel"
        )
    except (OSError, ValueError, TypeError) as error:  # a time-out is an OSError
        raise no_scheduler(address, error) from error


def no_scheduler(address: str, error: BaseException) -> UaccelError:
    """Makes the error for a scheduler that does not answer."""
    cause = error.__cause__ or error
    said = re.sub(r"^in <[^>]*>: \w+: ", "", " ".join(str(cause).split()))  # which of Dask's objects it was
    words = said[:120] or type(cause).__name__
    return UaccelError(
        f"no scheduler answers at {address} within {SECONDS:g} s ({words}); start one with 'dask scheduler', or "
        "correct the address and its --tls options"
    )


# Rows out to workers, results back in.
#
# There are two counts of failures. A row whose board failed is tried up to three times, behind the first tries of other
# rows. A board that failed three times in a row, whichever rows these were, is left alone until the next sweep.

BUILDS: Final = "build"  # The resource of workers that have compilers and TVM.
WINDOW: Final = 400  # Rows that the scheduler knows of at a time, however large the matrix is.
WAIT_SECONDS: Final = 60.0  # How long rows wait for a worker that can run them.
_LOOK_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 30.0
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
        tls: Tls | None = None,
        wait: float = WAIT_SECONDS,
        function: Callable[[RowJob], Any] = act,
    ) -> None:
        self._address = address
        self._limits = limits or PoolLimits()
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
        """Cancels what waits; what runs ends by itself."""
        self._client.cancel(
            [future for piece in self._running.values() for future in piece.futures.values()], force=True
        )
        self._running.clear()
        self._contents.clear()
        self._client.close(timeout=5)

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
        return self._client.submit(
            do_task, task, parcels, before, resources=dict.fromkeys(needs, 1), priority=-piece.attempts, pure=False
        )

    def _content(self, parcel: Parcel) -> Any:
        """Returns the future of a parcel, which is sent once and held by Dask as long as this sweep lasts."""
        if parcel.digest not in self._contents:
            key = f"uaccel-{parcel.digest}"
            self._contents[parcel.digest] = self._client.submit(as_it_is, parcel, key=key)
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
        """Returns the values that are still there: a worker may have died with its results.

        If fetching them together fails, each is fetched by itself, so that one loss does not cost the others."""
        try:
            return dict(zip(futures, self._client.gather(futures), strict=True))
        except Exception:  # whatever Dask calls it, it is one of them
            found = {}
            for future in futures:
                with suppress(Exception):
                    found[future] = future.result(timeout=_GATHER_SECONDS)
            return found

    def _settled(self, piece: _Piece, value: Any) -> Iterator[PoolOutcome]:
        if isinstance(value, BoardFailed):
            yield from self._board_failed(piece, substitute_paths(value.error, piece.packed.paths))
            return
        self._failures.pop(piece.board, None)
        piece.futures.clear()
        if isinstance(value, Lost):
            failure, log = substitute_paths([value.failure, value.log], piece.packed.paths)
            yield PoolOutcome(piece.item, None, failure, log, max(value.attempts, piece.attempts))
        else:
            told = substitute_paths(value, piece.packed.paths) if isinstance(value, dict) else value
            yield PoolOutcome(piece.item, told, attempts=piece.attempts)

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
                self._client.cancel(list(piece.futures.values()), force=True)
                yield PoolOutcome(piece.item, failure=failure, attempts=piece.attempts)

    # ------------------------------------------------------------------------------------------------ who is there

    def _look(self) -> Iterator[PoolOutcome]:
        """Gives up rows for which no worker has been there for ``wait`` seconds; called when nothing came for a while.

        The time counts from when a resource was last offered, or first looked for."""
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
    """Returns an error in one line; Dask's own have several."""
    if type(error).__name__ == "KilledWorker":
        return (
            f"its worker died, and so did those that tried it again ({getattr(error, 'allowed_failures', 3)} at least)"
        )
    return f"{type(error).__name__}: {error}"


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


def work_at(address: str, offer: WorkerCapacity, tls: Tls | None, ready: Callable[[str], None]) -> None:
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
        dashboard=False,
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
