"""A Dask scheduler and workers as processes of their own, as in a lab of several computers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
START_SECONDS = 180
TOLD = "scheduler.json"
# At a port that is free. Without a dashboard Dask still serves figures, at all addresses unless it is told another.
DASK = [
    *("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", TOLD),
    *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
]


@dataclass
class Lab:
    """``address`` of its scheduler; ``workers`` in the order of their start. Logs are in ``folder``."""

    folder: Path
    address: str = ""
    options: Sequence[str] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def workers(self) -> list[subprocess.Popen[bytes]]:
        return self.processes[1:]

    def begin(self, command: Sequence[str]) -> None:
        """The scheduler, which writes down where it is."""
        self._start(command, "scheduler")
        told = self.folder / TOLD
        self.address = soon(lambda: json.loads(told.read_text())["address"] if told.exists() else "")

    def hire(self, name: str, *options: str, first: str = "", **variables: str) -> subprocess.Popen[bytes]:
        """A worker, when it is ready. ``first``: where it looks for Python's modules before all else."""
        command = ["-m", "uaccel", "worker", self.address, "--name", name, "--json", *self.options, *options]
        child = self._start(command, name, first, **variables)
        soon(lambda: (self.folder / f"{name}.out").read_text())
        return child

    def _start(self, command: Sequence[str], name: str, first: str = "", **variables: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [first, str(TESTS), os.environ.get("PYTHONPATH", "")]))
        own = {"PYTHONPATH": path, "UACCEL_CACHE": str(self.folder / f"{name}.cache"), **variables}
        with (self.folder / f"{name}.out").open("wb") as out, (self.folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, *command], stdout=out, stderr=log, cwd=self.folder, env={**os.environ, **own}
            )
        self.processes.append(child)
        return child


@contextmanager
def lab(folder: Path, *keys: str, program: Sequence[str] = DASK) -> Iterator[Lab]:
    """A scheduler; workers are hired by the test. ``keys``: its options for TLS."""
    made = Lab(folder)
    try:
        made.begin([*program, *keys])
        yield made
    finally:
        for child in reversed(made.processes):
            child.kill()
            child.wait()


def soon(look: Callable[[], Any]) -> Any:
    """What ``look`` gives when that is true."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            found = look()
        except ValueError:  # half written
            found = None
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("what was waited for did not come")


def children(parent: int) -> list[int]:
    """The processes that one has started, by its own main thread or another."""
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def command(pid: int) -> bytes:
    """Empty where the process has ended."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_bytes() if path.exists() else b""
