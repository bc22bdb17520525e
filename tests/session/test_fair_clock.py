"""The clock of timeouts: it stands while a process waits for a processor, and runs while it works or sleeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from uaccel.session.connect import ProcessTransport
from uaccel.session.transport import FairClock

BUSY, ASLEEP = "while True: pass", "import time; time.sleep(1000)"
WITH_A_THREAD = f"import threading\nthreading.Thread(target=lambda: exec({BUSY!r})).start()\n{ASLEEP}"
SECONDS = 1.0
KNOWN = Path("/proc/self/schedstat").exists()


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def started(code: str, processes: list[subprocess.Popen[bytes]]) -> int:
    """On one processor, which all share."""
    cpu = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{cpu}]); print('ready', flush=True)\n{code}"
    process = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process.pid


def share(pid: int) -> float:
    """How fast the clock runs."""
    clock = FairClock(pid)
    before, begun, times = clock(), time.monotonic(), []
    while time.monotonic() < begun + SECONDS:
        times.append(clock())
        time.sleep(0.02)
    assert times == sorted(times)
    assert times[0] <= begun
    return (clock() - before) / (time.monotonic() - begun)


@pytest.mark.skipif(not KNOWN, reason="this system does not tell how long a process waits")
@pytest.mark.parametrize("code", [BUSY, WITH_A_THREAD], ids=["a process", "a thread"])
def test_it_stands_while_a_process_waits(code: str, processes: list[subprocess.Popen[bytes]]) -> None:
    """One of three at one processor has a third of it."""
    pid = started(code, processes)
    for _ in range(2):
        started(BUSY, processes)
    assert share(pid) < 0.7


def test_it_runs_while_a_process_sleeps(processes: list[subprocess.Popen[bytes]]) -> None:
    assert share(started(ASLEEP, processes)) > 0.6


def test_of_a_process_that_is_gone_it_is_the_walls() -> None:
    assert abs(FairClock(2**30)() - time.monotonic()) < 1


def test_sessions_with_a_process_have_it() -> None:
    line = ProcessTransport([sys.executable, "-S", "-c", ASLEEP])
    try:
        line._clock._waited = 5.0
        assert line.clock() < time.monotonic() - 4.9
    finally:
        line.close()
