"""One run from model to verdict: what the command line, sweeps, tuning and workers of a lab all call.

Measured is what the board does, each time. What follows from content alone is kept where there is a cache: the compiled
model, its firmware, and the verdict on these outputs for these inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.basics.words import CPU
from uaccel.cache import Cache
from uaccel.errors import InputError
from uaccel.model import Array
from uaccel.running.devices import MODEL, devices_in_place
from uaccel.running.execute import Looks, Measured, run_on_board
from uaccel.running.judged import judged
from uaccel.running.making import Maker, Source
from uaccel.running.prepare import Prepared, prepare, require_offload
from uaccel.running.request import RunRequest
from uaccel.running.steps import Quiet, Steps
from uaccel.session import timeline
from uaccel.telling.figures import (
    batched,
    cycles_report,
    flash_report,
    layer_reports,
    ram_with,
    stood_in,
    tensors_report,
    with_code,
)
from uaccel.telling.trace import trace_of

if TYPE_CHECKING:
    from uaccel.pipeline import Compiled

NO_STATE: Final = "--sequence is for models that keep a state between runs, and {} keeps none; leave it away"


@dataclass(frozen=True)
class Performed:
    """A run that is done. ``report`` is the JSON of ``uaccel run``; ``complaint`` says in words what its verdict holds
    for wrong."""

    request: RunRequest
    prepared: Prepared
    measured: Measured
    report: dict[str, Any]
    complaint: str

    @property
    def compiled(self) -> Compiled:
        """Made anew where the cache had what a run needs of it."""
        return self.prepared.compiled

    @property
    def outputs(self) -> dict[str, Array]:
        """By name, of the user's own samples."""
        return _batches(self.prepared, self.measured, self.request.wishes.repeat)

    @property
    def trace(self) -> dict[str, Any]:
        """For Perfetto."""
        found: dict[str, Any] = self.report["trace"]
        return found


def perform(request: RunRequest, step: Steps | None = None, cache: Cache | None = None) -> Performed:
    """Compile, build, flash where a board is flashed, run, and where it is wished verify."""
    wishes, step = request.wishes, step or Quiet()
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        prepared = prepared_to_run(request, step, cache)
        folder = request.project or Path(temporary) / "project"
        kept = None if request.project is not None else cache
        maker = Maker(prepared.firmware, request.board, folder, step, kept)
        engines = request.engines.load()[0] if request.devices.kind != MODEL else []
        with devices_in_place(request.devices, engines, step, _offloaded(prepared)):
            with timeline.recorded(wishes.trace is not None or wishes.details) as jobs:
                measured = measure(prepared, request, maker, step)
            return finish(request, prepared, measured, step, cache, jobs)


def _offloaded(prepared: Prepared) -> dict[str, int]:
    """The layers that accelerators compute, and their numbers."""
    return {fact["name"]: fact["index"] for fact in prepared.told["facts"] if fact["engine"] != CPU}


def prepared_to_run(request: RunRequest, step: Steps, cache: Cache | None) -> Prepared:
    """Compiled, and such as it was wished."""
    prepared = prepare(request, step, cache)
    if request.wishes.sequence and not prepared.told["state"]:
        raise InputError(NO_STATE.format(request.model.name))
    require_offload(request, prepared)
    return prepared


def finish(
    request: RunRequest,
    prepared: Prepared,
    measured: Measured,
    step: Steps,
    cache: Cache | None,
    jobs: list[timeline.Job] | None = None,
    *,
    cuts: bool = True,
) -> Performed:
    """What was measured, judged and told. Without ``cuts`` a wrong region is named, not looked into on the board."""
    verdict = judged(request, prepared, measured, step, cache, cuts=cuts) if request.wishes.verify else None
    if cache is not None and cache.problem:
        step(cache.problem)
    report = _report(request, prepared, measured, jobs or [])
    if verdict is not None:
        report["verify"] = verdict.report
    return Performed(request, prepared, measured, report, verdict.complaint if verdict is not None else "")


def measure(prepared: Prepared, request: RunRequest, maker: Source, step: Steps) -> Measured:
    """On the board, by firmware from ``maker``: nothing is compiled here."""
    wishes, types = request.wishes, prepared.firmware.inputs
    reads = prepared.told["reads"]["layers" if wishes.every_layer else "outputs"]
    return run_on_board(
        prepared.firmware,
        request.board,
        wishes.samples(types),
        maker,
        step,
        looks=Looks(
            wishes.more(types),
            wishes.profile or wishes.details or wishes.trace is not None,
            reads if wishes.verify else (),
            wishes.sequence,
        ),
        port=wishes.port,
        flashes=wishes.flashes,
        count=step.count,
        on_log=step.log,
    )


def _report(request: RunRequest, prepared: Prepared, measured: Measured, jobs: list[timeline.Job]) -> dict[str, Any]:
    wishes, taken, told = request.wishes, measured.footprint, prepared.told["report"]
    runs = len(measured.run.outputs)
    times, accounts = {time.layer: time for time in measured.layers}, measured.run.accounts
    rows = layer_reports(prepared.told["facts"], runs, times, accounts)
    timed = wishes.profile or wishes.details or request.at_line  # else two runs would not be alike
    report: dict[str, Any] = told | {
        "warnings": told["warnings"] + stood_in(rows, runs),
        "outputs": tensors_report(_batches(prepared, measured, wishes.repeat)),
        "runs": runs,
        "instructions": measured.run.instructions,
        **cycles_report(measured.cycles),
        **(measured.core.to_json() if measured.core is not None else {}),
        "accelerator_cycles": measured.run.cycles,
        "layers": with_code(rows, taken),
        "ram": ram_with(told["ram"], taken, stack=measured.run.stack),
        "flash": flash_report(told["flash"]["weights"], taken, told["flash"].get("pools")),
        "seconds": measured.run.seconds if timed else None,
        "artefacts": {"archive": prepared.firmware.archive, "firmware": measured.firmware},
    }
    wishes.add_symbols(report, taken)
    report |= _structure(request, prepared)
    if wishes.details or wishes.trace is not None:
        title = f"{prepared.firmware.name} on {request.board.name}"
        trace = trace_of(title, prepared.told["facts"], times, accounts, jobs)
        report |= {"trace": trace}
    if wishes.details:
        names = {layer["index"]: layer["name"] for layer in prepared.told["facts"]}
        hot = {names[time.layer]: [spot.to_json() for spot in time.hot] for time in measured.layers}
        report |= {"sources": prepared.told["sources"], "hot": hot}
    return report


def _structure(request: RunRequest, prepared: Prepared) -> Mapping[str, Any]:
    """What pages show besides, with the line that repeats this run."""
    structure = prepared.told["structure"]
    command = f"{structure['source']['command']} {request.words}".rstrip()
    return {**structure, "source": structure["source"] | {"command": command}}


def _batches(prepared: Prepared, measured: Measured, repeat: int) -> dict[str, Array]:
    per_sample = measured.run.outputs[::repeat]
    names = [tensor.name for tensor in prepared.firmware.outputs]
    return {name: batched([values[i] for values in per_sample]) for i, name in enumerate(names)}
