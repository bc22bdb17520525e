"""Performs one run of a model from compilation to verdict, in one go or in three stages on different computers.

The command line, sweeps, tuning and workers all call it. What the board does is measured each time. What follows from
content alone comes from the cache where there is one: the compiled model, its firmware, and the verdict.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.build.board_json import target_of
from uaccel.build.project import Footprint
from uaccel.errors import InputError, ToolError
from uaccel.model import Array
from uaccel.report.latency import jobs_by_layer, latency, with_cpu_alone
from uaccel.report.run_json import (
    SCHEMA,
    cycles_report,
    flash_report,
    layer_reports,
    ram_with,
    stood_in,
    tensors_report,
    with_code,
)
from uaccel.report.trace import trace_of
from uaccel.runner.compare import Verdict, arrays_digest
from uaccel.runner.data_sets import DataSet, data_sets
from uaccel.runner.execute import Bench, BoardBench, FirmwareMaker, Looks, RunResult
from uaccel.runner.firmware import ArchiveLayers, Firmware
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.prepare import Prepared, prepare, require_offload
from uaccel.runner.request import MODEL, Quiet, RunRequest, Steps, devices_in_place
from uaccel.runner.runtimes import installed
from uaccel.session import monitor
from uaccel.util import incoming
from uaccel.util.cache import Cache, Key
from uaccel.util.reads import Reads, add_true, find_true
from uaccel.util.text import CPU
from uaccel.version import __version__

# Verdicts, kept in the cache by what was run, what went in and what came out.

if TYPE_CHECKING:
    from uaccel.runner.verify import WrongLayer

KIND: Final = "verdict"
VERDICT: Final = "verdict.json"


def cached_verdict(
    request: RunRequest,
    prepared: Prepared,
    measured: RunResult,
    step: Steps,
    cache: Cache | None,
    *,
    cuts: bool = True,
) -> Verdict:
    """Judges a run, or takes the verdict from the cache: the same bytes give the same verdict.

    Only verdicts without a complaint are kept: a fault is looked into each time, with ``cuts`` by running a wrong
    region in pieces. The seed is no part of the key, since the samples are; so it is added after the cache.
    """
    sets = sets_beside(request, prepared)
    key = _key(request, prepared, measured, sets) if cache is not None and prepared.key is not None else None
    entry = find_true(cache, key)
    seed = {"seed": request.wishes.told_seed}
    if entry is not None:
        report = entry.json(VERDICT)
        entry.close()
        return Verdict(report | seed)
    step("execute the exact meaning and compare")
    with Reads() as reads:
        verdict = _found(request, prepared, measured, step, cuts, sets)
    if not verdict.complaint:
        about = f"{prepared.firmware.name} for {request.board.name}"
        add_true(cache, key, {VERDICT: json.dumps(verdict.report).encode()}, about, reads.rows)
    return replace(verdict, report=verdict.report | seed)


def sets_beside(request: RunRequest, prepared: Prepared) -> list[DataSet]:
    """Returns the test data beside the model that this run verifies. Data of a model with a state tell no state."""
    if not request.beside or not request.wishes.more_samples or prepared.firmware.has_state:
        return []
    return data_sets(request.model, prepared.firmware.inputs, prepared.firmware.outputs)


def _found(
    request: RunRequest, prepared: Prepared, measured: RunResult, step: Steps, cuts: bool, sets: Sequence[DataSet]
) -> Verdict:
    from uaccel.runner.outside import written_outside
    from uaccel.runner.verdict import FAILED, CompiledSubject, bisect_region, verdict_on, with_data_sets

    wishes, compiled = request.wishes, prepared.compiled
    subject, every = CompiledSubject(compiled), wishes.every_layer

    def again(names: tuple[str, ...]) -> WrongLayer | None:
        return bisect_region(request.what(), names, measured.samples, step, port=wishes.port, flashes=wishes.flashes)

    verdict = verdict_on(subject, request.model, measured, every_layer=every, again=again if cuts else None)
    verdict = with_data_sets(verdict, subject, request.model, measured, sets)
    outside = ""
    if request.board.runs[0].kind == "host" and not request.at_line:
        step("run once more with all tensors apart")
        outside = written_outside(compiled, measured.samples)
    report = verdict.report | {"outside": outside or None}
    return replace(verdict, report=report, complaint=f"{FAILED}: {outside}" if outside else verdict.complaint)


def _key(request: RunRequest, prepared: Prepared, measured: RunResult, sets: Sequence[DataSet]) -> Key:
    assert prepared.key is not None
    return (
        Key(KIND)
        .add("model", [prepared.key.digest, sorted(prepared.reads.items())])
        .add("layers", request.wishes.every_layer)
        .add("sequence", measured.run.sequence)
        .add("unread", measured.unread)
        .add("runtimes", installed())
        .add("sets", [[one.name, arrays_digest([one.outputs or []])] for one in sets])
        .add("samples", arrays_digest(measured.samples))
        .add("outputs", arrays_digest(measured.outputs))
        .add(
            "computed", [[sorted(row), arrays_digest([[row[key] for key in sorted(row)]])] for row in measured.computed]
        )
    )


def _in_order(row: Mapping[tuple[int, int], Array]) -> list[Array]:
    return [row[key] for key in sorted(row)]


# One run on this computer, from model to verdict.

NO_STATE: Final = "--sequence is for models that keep a state between runs, and {} keeps none; leave it away"


@dataclass(frozen=True)
class Performed:
    """Holds a run that is done. ``report`` is the JSON of ``uaccel run``; ``complaint`` says what is wrong, if so."""

    prepared: Prepared
    wishes: ProjectRunOptions
    measured: RunResult
    report: dict[str, Any]
    complaint: str

    @property
    def outputs(self) -> dict[str, Array]:
        """The outputs of the user's own samples, by name."""
        return self.measured.named(self.prepared.firmware.outputs, self.wishes.repeat)


def perform(request: RunRequest, step: Steps | None = None, cache: Cache | None = None) -> Performed:
    """Compile, build, flash where a board is flashed, run, and verify if that is asked for.

    A project that the user keeps is always built in full; only then everything of it lies in its folder. Devices are
    in place only while the board runs and a wrong region may be run again.
    """
    step = step or Quiet()
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        prepared = prepared_to_run(request, step, cache)
        folder = request.project or Path(temporary) / "project"
        kept = None if request.project is not None else cache
        maker = FirmwareMaker(prepared.firmware, request.board, folder, step, kept)
        bench = bench_of(request, maker)
        engines = request.engines.load()[0] if request.devices.kind != MODEL else []
        offloaded = {fact["name"]: fact["index"] for fact in prepared.firmware.facts if fact["engine"] != CPU}
        with devices_in_place(request.devices, engines, step, offloaded):
            with monitor.recorded(bool(offloaded)) as first_jobs:
                sets = sets_beside(request, prepared)
                measured = measure(bench, request.wishes, step, first_jobs, sets)
            return finish(request, prepared, measured, step, cache)


def prepared_to_run(request: RunRequest, step: Steps, cache: Cache | None) -> Prepared:
    """Compiles the model, or takes it from the cache, and refuses what the request does not allow."""
    prepared = prepare(request, step, cache)
    if request.wishes.sequence and not prepared.firmware.has_state:
        raise InputError(NO_STATE.format(request.model.name))
    require_offload(request, prepared)
    return prepared


def finish(
    request: RunRequest,
    prepared: Prepared,
    measured: RunResult,
    step: Steps,
    cache: Cache | None,
    *,
    cuts: bool = True,
) -> Performed:
    """Judges what was measured and makes the report. Without ``cuts`` a wrong region is named, not searched."""
    verdict = cached_verdict(request, prepared, measured, step, cache, cuts=cuts) if request.wishes.verifies else None
    if cache is not None and cache.problem:
        step(cache.problem)
    place = Place(
        request.board.name,
        target_of(request.board),
        request.at_line,
        f"{prepared.told['command']} {request.words}".rstrip(),
    )
    return performed(prepared, request.wishes, measured, place, verdict)


def bench_of(request: RunRequest, maker: FirmwareMaker) -> BoardBench:
    """Puts the firmware that ``maker`` gives on the board of a request."""
    return BoardBench(maker, request.wishes.port, request.wishes.flashes)


def measure(
    bench: Bench,
    wishes: ProjectRunOptions,
    step: Steps,
    first_jobs: monitor.FirstJobs,
    sets: Sequence[DataSet] = (),
    *,
    alone: bool = False,
) -> RunResult:
    """Runs firmware on a bench, with all that is wished to be seen; no model is compiled here. ``first_jobs`` is of who
    records device models, from before anything starts them. ``sets`` are samples that come first. ``alone``: whether
    the archive alone will tell what layers should compute."""
    firmware, known, notes = bench.firmware, [one.inputs for one in sets], list[str]()
    read: Sequence[int] = ()
    if wishes.verifies:
        read = ArchiveLayers.read(firmware.metadata).to_read(every_layer=wishes.every_layer, alone=alone)
    looks = Looks(wishes.more(firmware.inputs, known), wishes.profiles, read, wishes.sequence)
    # Wrong ones are refused before anything is built.
    samples = wishes.samples(firmware.inputs, known, firmware.rows, notes.append)
    with bench.ready():
        measured = bench.measure(samples, looks, step.count, step.log)
    taken = sum(account.cycles for account in measured.run.accounts.values())
    return replace(measured, jobs=first_jobs(taken), notes=tuple(notes))


@dataclass(frozen=True)
class Place:
    """Says where firmware ran, for reports: the board's name, what pages show of it, and what a user types for that.

    ``board`` and ``target`` are None where only a project's server knows them."""

    board: str | None
    target: Mapping[str, Any] | None
    at_line: bool
    command: str


def performed(
    prepared: Prepared,
    wishes: ProjectRunOptions,
    measured: RunResult,
    place: Place,
    verdict: Verdict | None,
) -> Performed:
    """Makes the report of a run."""
    taken, told, facts = measured.footprint, prepared.told["report"], prepared.firmware.facts
    runs = len(measured.run.outputs)
    times, accounts = {time.layer: time for time in measured.layers}, measured.run.accounts
    jobs = jobs_by_layer(facts, accounts, measured.jobs)
    rows = layer_reports(facts, runs, times, accounts, jobs)
    timed = wishes.profile or wishes.detailed or place.at_line  # emulated: seconds would make equal runs differ
    report: dict[str, Any] = told | {
        "board": place.board,
        "warnings": told["warnings"] + stood_in(rows, runs),
        "outputs": tensors_report(measured.named(prepared.firmware.outputs, wishes.repeat)),
        "runs": runs,
        "instructions": measured.run.instructions,
        **cycles_report(measured.cycles),
        **(measured.core.to_json() if measured.core is not None else {}),
        "accelerator_cycles": measured.run.cycles,
        "layers": with_code(rows, taken),
        "ram": ram_with(told["ram"], taken, stack=measured.run.stack),
        "flash": flash_report(told["flash"]["weights"], taken, told["flash"].get("pools")),
        "seconds": measured.run.seconds if timed else None,
    }
    if measured.notes:
        report["inputs_made"] = list(measured.notes)
    if measured.firmware:
        report["artefacts"] = {"archive": prepared.firmware.archive, "firmware": measured.firmware}
    wishes.add_symbols(report, taken)
    hz = (place.target or {}).get("hz")
    # Seconds that emulating a board or a device takes do not tell what the model takes.
    emulated = place.target is None or place.target["emulated"] or prepared.firmware.offloads
    took = latency(report, facts, times, accounts, jobs, hz, measured=place.at_line or not emulated)
    report["latency"] = with_cpu_alone(took, prepared.told["structure"].get("graph") or {})
    report |= _structure(prepared, place)
    if wishes.detailed or wishes.trace is not None:
        trace = trace_of(f"{prepared.firmware.name} on {place.board}", facts, times, jobs)
        report |= {"trace": trace}
    if wishes.detailed:
        names = {layer["index"]: layer["name"] for layer in facts}
        hot = {names[time.layer]: [spot.to_json() for spot in time.hot] for time in measured.layers}
        report |= {"sources": prepared.told["sources"], "hot": hot}
    if verdict is not None:
        report["verify"] = verdict.report
    return Performed(prepared, wishes, measured, report, verdict.complaint if verdict is not None else "")


def _structure(prepared: Prepared, place: Place) -> Mapping[str, Any]:
    """Returns what pages show besides, with the command that repeats this run; archives of older versions lack it."""
    told: dict[str, Any] = {"schema": SCHEMA, "uaccel": __version__, **prepared.told["structure"]}
    if "source" in told:
        told["source"] = told["source"] | {"command": place.command}
    return told | ({} if place.target is None else {"target": place.target})


# The same run in three stages: built where compilers are, run where the board is, judged where TVM is.
#
# Plain data goes from one stage to the next, so that each may be in another process or on another computer.


@dataclass(frozen=True)
class FirmwareBytes:
    """Holds firmware as bytes by whether it has a hook after every layer. Only boards that may be flashed for it have
    such firmware, too."""

    firmware: Mapping[str, Any]
    forms: Mapping[bool, bytes]
    footprint: Footprint


RemoteRun = tuple[str, RunResult]  # The digest of an archive, and what the board did with its firmware.


def build_apart(request: RunRequest, cache: Cache | None) -> FirmwareBytes:
    """Compile the model and build its firmware. The board need not be here."""
    step = Quiet()
    prepared = prepared_to_run(request, step, cache)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        maker = FirmwareMaker(prepared.firmware, request.board, Path(temporary) / "project", step, cache)
        with closing(maker):
            flashes = request.wishes.flashes and request.board.flash is not None
            wanted = (False, True) if flashes else (False,)
            forms = {observe: incoming.read_bytes(maker.firmware(observe=observe)) for observe in wanted}
    assert maker.footprint is not None  # it made the plain one
    return FirmwareBytes(prepared.firmware.to_json(), forms, maker.footprint)


def run_apart(built: FirmwareBytes, request: RunRequest) -> RemoteRun:
    """Flash the firmware and run it. Neither a compiler nor TVM is needed."""
    firmware = Firmware.from_json(built.firmware, dict)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        maker = FirmwareMaker(firmware, request.board, Path(temporary), Quiet(), None)
        maker.bring(built.forms, built.footprint)
        bench = bench_of(request, maker)
        with monitor.recorded(firmware.offloads) as first_jobs:
            return firmware.archive, measure(bench, request.wishes, Quiet(), first_jobs)


def judge_apart(ran: RemoteRun, request: RunRequest, cache: Cache | None) -> Performed:
    """Compile the model again, or take it from the cache, and give verdict and report.

    The archives must be equal: another compilation would judge other firmware than the one that ran."""
    prepared = prepared_to_run(request, Quiet(), cache)
    archive, measured = ran
    if prepared.firmware.archive != archive:
        raise ToolError(
            f"{request.model.name} was compiled twice, to different C: {archive[:12]} and "
            f"{prepared.firmware.archive[:12]}; install the same uaccel and the same packages on all workers"
        )
    return finish(request, prepared, measured, Quiet(), cache, cuts=False)
