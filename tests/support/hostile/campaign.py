"""Runs many commands in forked workers, so that what kills one is seen and told apart from what refuses a file."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Result:
    """How one command ended; ``megabytes`` is the peak of resident memory, ``signal`` what killed the process."""

    number: int
    status: int | None
    words: str
    seconds: float
    megabytes: int
    signal: int = 0


def resident_peak() -> int:
    """In megabytes, since the last call of ``forget_peak``."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) >> 10
    return 0


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def run(
    numbers: Iterable[int], one: Callable[[int], tuple[int, str]], seconds: float, megabytes: int
) -> Iterator[Result]:
    """``one`` in a worker for each number, which gives status and words; a worker that dies is replaced."""
    left = list(numbers)
    while left:
        done = 0
        for result in _worker(left, one, seconds, megabytes):
            done += 1
            yield result
        left = left[done:]


def _worker(
    numbers: list[int], one: Callable[[int], tuple[int, str]], seconds: float, megabytes: int
) -> Iterator[Result]:
    """The results until it ends or dies; the last one then tells of what."""
    reading, writing = os.pipe()
    gc.collect()
    gc.freeze()  # what is there stays shared with the workers
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(numbers, one, writing, megabytes)
    os.close(writing)
    buffer, count, begun = b"", 0, time.monotonic()
    killed = False
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, begun + seconds - time.monotonic()))
        if not ready and not killed:
            os.kill(child, signal.SIGKILL)
            killed = True
            continue
        data = os.read(reading, 1 << 16)
        if not data:
            break
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            count += 1
            begun = time.monotonic()
            yield Result(**json.loads(line))
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if count < len(numbers) and (os.WIFSIGNALED(status) or os.WEXITSTATUS(status)):
        how = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        words = "no end" if killed else "killed"
        yield Result(numbers[count], None, words, time.monotonic() - begun, 0, how or 1)


def _work(numbers: list[int], one: Callable[[int], tuple[int, str]], pipe: int, megabytes: int) -> None:
    """Never returns. After a while it ends, so that memory of one command is not counted for another."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, resource.RLIM_INFINITY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        base = resident_peak()
        for number in numbers:
            forget_peak()
            ended: int | None
            begun = time.process_time()
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    ended, words = one(number)
                except BaseException:
                    ended, words = None, traceback.format_exc()[-1500:]
            result = Result(number, ended, words, time.process_time() - begun, resident_peak())
            os.write(pipe, json.dumps(asdict(result)).encode() + b"\n")
            gc.collect()
            if resident_peak() > base + 600:
                break
        status = 0
    finally:
        os._exit(status)
