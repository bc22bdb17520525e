"""A worker of a lab in this process: what it has to offer, and its life at a scheduler."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from uaccel.bench import find_port
from uaccel.board import SerialRun, available_boards
from uaccel.errors import DeviceError, InputError, UaccelError
from uaccel.lab.connect import SECONDS, Tls, checked, distributed, no_scheduler, security
from uaccel.lab.farm import BUILDS, board_resource
from uaccel.lab.parcel import forget_old
from uaccel.lab.pool import Limits
from uaccel.lab.station import Station, take_over

AUTO: Final = "auto"


@dataclass(frozen=True)
class Offer:
    """``jobs`` are builds at a time, none where there is no compiler; ``boards``: ports by the boards' names."""

    name: str
    jobs: int
    boards: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    board_wait: float = 20.0

    @property
    def resources(self) -> dict[str, int]:
        builds = {BUILDS: self.jobs} if self.jobs else {}
        return builds | {board_resource(name): 1 for name in self.boards}


def can_build() -> bool:
    """Whether TVM is installed here."""
    return find_spec("tvm") is not None


def found_boards() -> dict[str, str]:
    """Those that come with uaccel and are at a USB port of this computer."""
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
    """Of ``NAME=PORT``."""
    found = {}
    for word in words:
        name, equals, port = word.partition("=")
        if not equals or not name or not port:
            raise InputError(f"--board {word}: wanted NAME=PORT, such as nucleo_f746zg=/dev/ttyACM0")
        found[name] = port
    return found


def work_at(address: str, offer: Offer, tls: Tls | None, ready: Callable[[str], None]) -> None:
    """Until the scheduler goes, or a signal comes; ``ready`` is told this worker's address."""
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


async def _live(address: str, offer: Offer, keys: Any, folder: str, ready: Callable[[str], None]) -> None:
    """``memory_limit``: the jobs have processes of their own, with their own limits."""
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
