"""Defines ``uaccel worker``, which offers this computer and its boards to sweeps of a Dask scheduler."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.cli.command import Command, group
from uaccel.cli.output import emit, say, show_lines
from uaccel.runner.sweep.options import LabOptions, PoolLimits
from uaccel.util.option import argument, like, option, read_size

if TYPE_CHECKING:
    from rich.console import Console


class WorkerCommand(Command):
    """Offer this computer, and the boards at its ports, to the sweeps of a Dask scheduler.

    Whoever reaches the scheduler may run code here: see SECURITY.md.
    """

    address: str = argument("The scheduler's, as tcp://HOST:8786, or tls://HOST:8786.", "ADDRESS")
    boards: tuple[str, ...] = option(
        (), "A board that is here, besides those found at USB; repeatable.", "--board", metavar="NAME=PORT"
    )
    jobs: int | None = option(None, "So many builds at once (one for each core).", "-j", metavar="N", least=1)
    no_build: bool = option(False, "Boards only: nothing is compiled here.")
    name: str | None = option(None, "What results call it (the host's).", metavar="NAME")
    host: str | None = option(None, "The address of this computer to listen at (127.0.0.1).", metavar="ADDRESS")
    limit_output: int = option(
        "4G", "What a job may write to one file, as 1G.", metavar="SIZE", panel=PoolLimits.PANEL, read=read_size
    )
    board_wait: float = option(20.0, "How long a board may be away when it is needed.", metavar="SECONDS", least=0)
    limits: PoolLimits = group()
    tls: Path | None = like(LabOptions, "tls", None)

    def run(self) -> None:
        from uaccel.runner.sweep.farm import WorkerCapacity, can_build, found_boards, stated_boards, work_at
        from uaccel.runner.sweep.scheduler import distributed, exposure, keys_for, listening_at
        from uaccel.runner.sweep.sweep import processes

        distributed()
        tls, place = keys_for(self.address, self.tls), listening_at(self.address, self.host)
        offer = WorkerCapacity(
            self.name or f"{socket.gethostname()}-{os.getpid()}",
            0 if self.no_build or not can_build() else self.jobs or processes(),
            found_boards() | stated_boards(list(self.boards)),
            replace(self.limits, output=self.limit_output),
            self.board_wait,
            place,
        )
        if exposed := exposure(self.address, place):
            say(exposed)

        def ready(own: str) -> None:
            report = {
                "scheduler": self.address,
                "worker": own,
                "name": offer.name,
                "resources": offer.resources,
                "boards": dict(offer.boards),
            }
            emit(report, self.as_json, lambda console: _show(console, report))

        work_at(self.address, offer, tls, ready)


def _show(console: Console, report: dict[str, Any]) -> None:
    offered = ", ".join(f"{name}={count}" for name, count in report["resources"].items())
    lines = [("Worker", report["name"]), ("Scheduler", report["scheduler"]), ("Offers", offered)]
    show_lines(console, [*lines, ("Ends", "with Ctrl-C")])
