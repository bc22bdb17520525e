"""Works through a list with processes of this computer, each of which stays warm after its first item.

A process that dies is replaced, and its item is tried again, up to three times in all. A process that works longer than
it may is replaced as well, but its item fails: it would take as long again. An item whose function raises fails at
once. What a process starts, emulators among it, ends with it: each leads a process group, which is killed as a whole.

Processes are spawned, not forked, since a fork of a process with threads may inherit a lock that nobody will release.
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
from typing import Any, Final

from uaccel.errors import InternalError, need
from uaccel.runner.sweep.options import PoolLimits
from uaccel.util import incoming

ATTEMPTS: Final = 3
LOG_BYTES: Final = 8192  # How much of the end of a process's output is kept where an item fails.
_FOREVER: Final = 365 * 24 * 3600.0


@dataclass(frozen=True)
class PoolOutcome:
    """Holds what became of an item. ``result`` is what the function gave, or None where it raised, its process died or
    it took too long: then ``failure`` says what happened, and ``log`` is the end of what the process wrote."""

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


class WorkerPool:
    """Calls a function of one argument in several processes. It must be defined at a module's top level, as it is sent
    to the processes by name; the items are sent as data."""

    def __init__(self, function: Callable[[Any], Any], processes: int, limits: PoolLimits | None = None) -> None:
        self._function = function
        self._count = processes
        self._limits = limits or PoolLimits()
        self._workers: list[_Worker] = []
        self._closed = False
        self._context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-pool-")

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, busy ones too. A thread that waits for an outcome gets an error."""
        self._closed = True
        for worker in list(self._workers):
            self._end(worker)
        self._folder.cleanup()

    def run(self, items: Iterable[Any], until: float | None = None) -> Iterator[PoolOutcome]:
        """Yields outcomes as they come. Every item has one; the next item is asked for when a process is free for it.

        It ends at ``until`` of the monotonic clock; what is worked on then is given up and has no outcome. An item is
        tried again only if its process is gone; while the process lives, a failure is that of the function.
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
        """Waits, and returns the processes with an answer, those that died, and those whose time is up.

        A dead process closes its end of the pipe, which wakes up ``wait`` as an answer does. It sleeps until the first
        deadline, but an hour at most, since the system's timeout in milliseconds has 32 bits."""
        busy = [worker for worker in self._workers if worker.piece is not None]
        limit = self._limits.seconds or _FOREVER
        ends = [worker.since + limit for worker in busy] + ([] if until is None else [until])
        left = min(ends, default=0.0) - time.monotonic()
        signalled = set(wait([worker.pipe for worker in busy], max(0.0, min(left, 3600.0))))
        late = time.monotonic() - limit
        return [worker for worker in busy if worker.pipe in signalled or worker.since <= late]

    def _received(self, worker: _Worker) -> PoolOutcome:
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
        return PoolOutcome(piece.item, result, failure, _end_of(worker.log) if failure else "", piece.attempts)

    def _lost(self, worker: _Worker, piece: _Piece, failure: str) -> PoolOutcome:
        log = _end_of(worker.log)
        self._end(worker)
        return PoolOutcome(piece.item, None, failure, log, piece.attempts)

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
        need(not self._closed, "a pool that was closed was to start a process", InternalError)

    def _end(self, worker: _Worker) -> None:
        """Ends a process with everything that it started; an idle one gets two seconds to end by itself."""
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


def _may_try(outcome: PoolOutcome) -> bool:
    """Says whether to try an item again; what took too long would do so again."""
    return outcome.attempts < ATTEMPTS and not outcome.failure.startswith("took longer")


def _serve(pipe: Connection, function: Callable[[Any], Any], log: str, limits: PoolLimits) -> None:
    """Is the main loop of a process: its output goes to its log, each item that it receives is worked on.

    The log is emptied before each item, so that it tells of that item alone."""
    os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
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
    """Kills the process group once the parent is gone, which nobody else would do if the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _end_of(log: Path) -> str:
    with incoming.opened(log, incoming.ARCHIVE) as stream:
        stream.seek(max(0, log.stat().st_size - LOG_BYTES))
        return stream.read().decode("utf-8", "replace")
