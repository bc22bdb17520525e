"""Defines ``uaccel worker``, which offers this computer and its boards to sweeps of a Dask scheduler."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.cli.cache import read_size
from uaccel.cli.options import CaOption, CertOption, KeyOption, MemoryOption, SecondsOption
from uaccel.cli.output import JsonFlag, emit, say

if TYPE_CHECKING:
    from rich.console import Console

AddressArgument = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The scheduler's, as tcp://HOST:8786, or tls://HOST:8786.")
]
BoardOption = Annotated[
    list[str] | None,
    typer.Option("--board", metavar="NAME=PORT", help="A board that is here, besides those found at USB; repeatable."),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="So many builds at once (one for each core).")
]
NoBuildFlag = Annotated[bool, typer.Option("--no-build", help="Boards only: nothing is compiled here.")]
NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What results call it (the host's).")]
HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="The address of this computer to listen at (127.0.0.1).")
]
OutputOption = Annotated[
    str | None, typer.Option("--limit-output", metavar="SIZE", help="What a job may write to one file, as 1G.")
]
WaitOption = Annotated[
    float,
    typer.Option("--board-wait", min=0, metavar="SECONDS", help="How long a board may be away when it is needed."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker", short_help="Work for those who sweep: builds, and the boards that are here.")(worker_command)


def worker_command(
    address: AddressArgument,
    board: BoardOption = None,
    jobs: JobsOption = None,
    no_build: NoBuildFlag = False,
    name: NameOption = None,
    host: HostOption = None,
    limit_seconds: SecondsOption = None,
    limit_memory: MemoryOption = None,
    limit_output: OutputOption = "4G",
    board_wait: WaitOption = 20.0,
    tls_ca: CaOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Offer this computer, and the boards at its ports, to the sweeps of a Dask scheduler.

    Whoever reaches the scheduler may run code here: see SECURITY.md.
    """
    from uaccel.runner.sweep.farm import WorkerCapacity, can_build, found_boards, stated_boards, work_at
    from uaccel.runner.sweep.pool import PoolLimits
    from uaccel.runner.sweep.scheduler import distributed, exposure, listening_at, tls_of
    from uaccel.runner.sweep.sweep import processes

    distributed()
    tls = tls_of(address, tls_ca, tls_cert, tls_key)
    place = listening_at(address, host)
    boards = found_boards() | stated_boards(board or [])
    builds = 0 if no_build or not can_build() else jobs or processes()
    memory = None if limit_memory is None else read_size(limit_memory, "--limit-memory")
    output = None if limit_output is None else read_size(limit_output, "--limit-output")
    offer = WorkerCapacity(
        name or f"{socket.gethostname()}-{os.getpid()}",
        builds,
        boards,
        PoolLimits(limit_seconds, memory, output),
        board_wait,
        place,
    )
    if exposed := exposure(address, place):
        say(exposed)

    def ready(own: str) -> None:
        report = {
            "scheduler": address,
            "worker": own,
            "name": offer.name,
            "resources": offer.resources,
            "boards": dict(offer.boards),
        }
        emit(report, as_json, lambda console: _show(console, report))

    work_at(address, offer, tls, ready)


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.output import show_lines

    offered = ", ".join(f"{name}={count}" for name, count in report["resources"].items())
    lines = [("Worker", report["name"]), ("Scheduler", report["scheduler"]), ("Offers", offered)]
    show_lines(console, [*lines, ("Ends", "with Ctrl-C")])
