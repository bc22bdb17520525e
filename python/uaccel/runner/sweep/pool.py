"""Processes of this computer that work through a list, each one warm after its first piece of work.

A process that dies, or works longer than it may, is replaced, and its piece is tried again; what fails three times is
given up. What a process starts, emulators among it, ends with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from uaccel.errors import InternalError

ATTEMPTS: Final = 3
LOG_BYTES: Final = 8192  # Of what a process wrote to its streams: the end of it, where a piece fails.
_FOREVER: Final = 365 * 24 * 3600.0


@dataclass(frozen=True)
class Limits:
    """Of one piece of work: seconds, bytes of memory of its process, bytes of a file that it writes; None for any."""

    seconds: float | None = None
    memory: int | None = None
    output: int | None = None

    def within(self, other: Limits) -> Limits:
        """The smaller of each."""
        pairs = ((self.seconds, other.seconds), (self.memory, other.memory), (self.output, other.output))
        seconds, memory, output = (min((v for v in pair if v is not None), default=None) for pair in pairs)
        return Limits(seconds, None if memory is None else int(memory), None if output is None else int(output))


@dataclass(frozen=True)
class Outcome:
    """``result`` is what the function gave; None where it raised, died or took too long: then ``failure`` says what
    happened, and ``log`` is the end of what the process wrote."""

    item: Any
    result: Any = None
    failure: str = ""
    log: str = ""
    attempts: int = 1


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    log: Path
    piece: _Piece | None = None
    since: float = 0.0

    @property
    def pid(self) -> int:
        found: int = self.process.pid
        return found


@dataclass
class _Piece:
    item: Any
    attempts: int = field(default=0)


class Pool:
    """``function`` is a module's own, of one argument; both travel to the processes."""

    def __init__(self, function: Callable[[Any], Any], processes: int, limits: Limits | None = None) -> None:
        self._function = function
        self._count = processes
        self._limits = limits or Limits()
        self._workers: list[_Worker] = []
        self._closed = False
        self._context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-pool-")

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, busy ones too; who waits for an outcome in another thread gets an error."""
        self._closed = True
        for worker in list(self._workers):
            self._end(worker)
        self._folder.cleanup()

    def run(self, items: Iterable[Any], until: float | None = None) -> Iterator[Outcome]:
        """Outcomes as they come. Every item has one; the next item is asked for when a process is free for it.

        At ``until`` of the monotonic clock it ends: what is worked on then is given up, and has no outcome.
        """
        coming, again = iter(items), deque[_Piece]()
        while until is None or time.monotonic() < until:
            self._hand_out(coming, again)
            if not any(worker.piece for worker in self._workers):
                return
            for worker in self._ready(until):
                outcome = self._received(worker)
                if outcome.failure and worker not in self._workers and _may_try(outcome):
                    assert worker.piece is not None  # it was lost with its process
                    again.append(worker.piece)
                else:
                    yield outcome
        for worker in [worker for worker in self._workers if worker.piece is not None]:
            self._end(worker)

    def _hand_out(self, coming: Iterator[Any], again: deque[_Piece]) -> None:
        idle = [worker for worker in self._workers if worker.piece is None]
        while idle or len(self._workers) < self._count:
            piece = again.popleft() if again else _next_of(coming)
            if piece is None:
                return
            worker = idle.pop() if idle else self._start()
            piece.attempts += 1
            worker.piece, worker.since = piece, time.monotonic()
            with contextlib.suppress(OSError):  # it died: that is seen when it is waited for
                worker.pipe.send(piece.item)

    def _ready(self, until: float | None) -> list[_Worker]:
        """Those with an answer, those that died, and those whose time is up."""
        busy = [worker for worker in self._workers if worker.piece is not None]
        limit = self._limits.seconds or _FOREVER
        ends = [worker.since + limit for worker in busy] + ([] if until is None else [until])
        left = min(ends, default=0.0) - time.monotonic()
        signalled = set(wait([worker.pipe for worker in busy], max(0.0, min(left, 3600.0))))
        late = time.monotonic() - limit
        return [worker for worker in busy if worker.pipe in signalled or worker.since <= late]

    def _received(self, worker: _Worker) -> Outcome:
        piece = worker.piece
        assert piece is not None
        try:
            told = worker.pipe.recv() if worker.pipe.poll() else None
        except (EOFError, OSError):
            told = None
            return self._lost(worker, piece, self._death(worker))
        if told is None:
            return self._lost(worker, piece, f"took longer than {self._limits.seconds:g} seconds")
        worker.piece = None
        result, failure = told
        return Outcome(piece.item, result, failure, _end_of(worker.log) if failure else "", piece.attempts)

    def _lost(self, worker: _Worker, piece: _Piece, failure: str) -> Outcome:
        log = _end_of(worker.log)
        self._end(worker)
        return Outcome(piece.item, None, failure, log, piece.attempts)

    def _death(self, worker: _Worker) -> str:
        worker.process.join(5)
        code = worker.process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
        return f"its process ended {how}"

    def _start(self) -> _Worker:
        self._require_open()
        ours, theirs = self._context.Pipe()
        number, name = tempfile.mkstemp(dir=self._folder.name, suffix=".log")
        os.close(number)
        process = self._context.Process(target=_serve, args=(theirs, self._function, name, self._limits))
        process.start()
        theirs.close()
        worker = _Worker(process, ours, Path(name))
        self._workers.append(worker)
        if self._closed:  # while it began
            self._end(worker)
        self._require_open()
        return worker

    def _require_open(self) -> None:
        if self._closed:
            raise InternalError("a pool that was closed was to start a process")

    def _end(self, worker: _Worker) -> None:
        """With everything that it started."""
        if worker in self._workers:
            self._workers.remove(worker)
        worker.pipe.close()
        if worker.piece is None:
            worker.process.join(2)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join()


def _next_of(coming: Iterator[Any]) -> _Piece | None:
    for item in coming:
        return _Piece(item)
    return None


def _may_try(outcome: Outcome) -> bool:
    """Again: what took too long would do so again."""
    return outcome.attempts < ATTEMPTS and not outcome.failure.startswith("took longer")


def _serve(pipe: Connection, function: Callable[[Any], Any], log: str, limits: Limits) -> None:
    """The life of a process: what it writes goes to its log, what it is sent is worked on."""
    os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever sent the work tells when to stop
    stream = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    if limits.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    if limits.output is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output, limits.output))
    while True:
        try:
            item = pipe.recv()
        except (EOFError, OSError):
            return
        os.ftruncate(stream, 0)
        try:
            answer = (function(item), "")
        except MemoryError:
            answer = (None, "ran out of memory")
        except Exception as error:
            traceback.print_exc()
            answer = (None, f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        sys.stderr.flush()
        pipe.send(answer)


def _end_with_parent() -> None:
    """Nobody would hear what a process gives whose parent was killed; what it has started ends with it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _end_of(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - LOG_BYTES))
        return stream.read().decode("utf-8", "replace")
