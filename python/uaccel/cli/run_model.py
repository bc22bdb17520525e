"""``uaccel run MODEL``: compile, build, run, compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uaccel.basics.files import write_atomically
from uaccel.cache import Cache
from uaccel.cli.output import emit, progress
from uaccel.cli.report_page import write_page_where
from uaccel.cli.run_trace import write_trace
from uaccel.cli.verdict import show_verified
from uaccel.errors import VerificationError
from uaccel.running.request import RunRequest

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.running.perform import Performed


def run_model(request: RunRequest, cache: Cache | None, as_json: bool) -> None:
    """What was asked for besides the report goes into files."""
    wishes = request.wishes
    with progress() as step:
        from uaccel.running.perform import perform

        ran = perform(request, step, cache)
        if wishes.outputs is not None:
            _write_outputs(ran)
        if wishes.trace is not None:
            write_trace(wishes.trace, ran.trace)
        write_page_where(wishes.report, ran.report)
    report = ran.report
    if not wishes.details:
        report.pop("trace", None)
    emit(report, as_json, lambda console: _show(console, report))
    if ran.complaint:
        raise VerificationError(ran.complaint)


def _write_outputs(ran: Performed) -> None:
    from uaccel.basics.npz import write_npz

    assert ran.request.wishes.outputs is not None
    arrays = ran.outputs
    write_atomically(ran.request.wishes.outputs, lambda stream: write_npz(stream, arrays), "--outputs")


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_layers, show_memory, show_outputs

    show_layers(console, report)
    show_memory(console, report)
    show_outputs(console, report["outputs"])
    show_verified(console, report)
