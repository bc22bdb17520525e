"""``uaccel run MODEL``: compile, build, run, compare."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.basics.favour import Favour
from uaccel.basics.files import write_atomically
from uaccel.board import Board
from uaccel.cli.engine_options import EngineOptions
from uaccel.cli.output import Steps, emit, progress
from uaccel.cli.report_page import write_page_where
from uaccel.cli.run_project import Wishes
from uaccel.cli.run_trace import recorded, write_trace
from uaccel.cli.verdict import opinion, show_verified
from uaccel.errors import InputError, VerificationError

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.memory import Pool
    from uaccel.pipeline import Compiled
    from uaccel.running.execute import Measured
    from uaccel.running.job import Job
    from uaccel.running.verdict import Verdict
    from uaccel.session import timeline

NO_STATE = "--sequence is for models that keep a state between runs, and {} keeps none; leave it away"


@dataclass(frozen=True)
class ModelJob:
    """What the command line asks for. ``project``: a folder that keeps the firmware.

    ``workspace_io``: None where nothing was said; the firmware is ours then, and takes as little RAM as can be.
    """

    model: Path
    board: Board
    board_file: str
    name: str
    project: Path | None
    wishes: Wishes
    engines: EngineOptions
    workspace_io: bool | None = None
    records: Path | None = None
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    favour: Favour = Favour.balanced
    pools: tuple[Pool, ...] = ()
    ram: int | None = None
    feed: bool = False

    @property
    def io_in_workspace(self) -> bool:
        """As it was said; else where the firmware is ours, and not one that was flashed already."""
        line = self.wishes.port or self.board.runs[0].kind == "serial"
        ours = not line or (self.wishes.flashes and self.board.flash is not None)
        return ours if self.workspace_io is None else self.workspace_io

    def what(self) -> Job:
        """What to compile."""
        from uaccel.emit.options import EmitOptions
        from uaccel.running.job import Job

        options = EmitOptions(self.pools, self.io_in_workspace, ram=self.ram, feed=self.feed)
        words = self.board_file
        given = (*self.engines.arguments(), self.records, self.input_shapes, self.favour)
        return Job(self.model, self.board, words, self.name, options, *given)

    def command(self) -> str:
        """The line to type for the same run, with its proof."""
        job = self.what()
        words = [replace(job, options=replace(job.options, workspace_io=False)).command("run"), *self.wishes.words]
        return " ".join(words + (["--no-workspace-io"] if self.workspace_io is False else []))


@dataclass(frozen=True)
class Ran:
    """A job that is done; ``complaint`` is what the verdict says is wrong, in words."""

    compiled: Compiled
    measured: Measured
    report: dict[str, Any]
    complaint: str


def run_model(job: ModelJob, as_json: bool) -> None:
    with progress() as step:
        ran = perform(job, step)
        write_page_where(job.wishes.report, ran.report)
    emit(ran.report, as_json, lambda console: _show(console, ran.report))
    if ran.complaint:
        raise VerificationError(ran.complaint)


def perform(job: ModelJob, step: Steps) -> Ran:
    """All that the job asks for but showing it."""
    wishes = job.wishes
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        folder = job.project or Path(temporary) / "project"
        compiled = job.what().compiled(step)
        if wishes.sequence and not compiled.model.state:
            raise InputError(NO_STATE.format(job.model.name))
        job.engines.require_offload(compiled)
        with recorded(wishes.trace is not None or wishes.details) as jobs:
            measured = _run(compiled, job, folder, step)
        verdict = _verify(job, compiled, measured, step) if wishes.verify else None
        if wishes.outputs is not None:
            _write_outputs(wishes.outputs, compiled, measured, wishes.repeat)
        if wishes.trace is not None:
            write_trace(wishes.trace, _trace(compiled, measured, jobs))
    real = wishes.port or job.board.runs[0].kind == "serial"
    seconds = (
        measured.run.seconds if wishes.profile or wishes.details or real else None
    )  # else two runs would not be alike
    report = _report(compiled, measured, wishes.repeat) | {"seconds": seconds}
    wishes.add_symbols(report, measured.footprint)
    report |= _details(job, compiled, measured, jobs)
    if verdict is not None:
        report["verify"] = verdict.report
    return Ran(compiled, measured, report, verdict.complaint if verdict is not None else "")


def _details(job: ModelJob, compiled: Compiled, measured: Measured, jobs: list[timeline.Job]) -> dict[str, Any]:
    """What pages show besides; the C of layers and the trace only where details are wanted."""
    from uaccel.telling.structure import sources_report, structure

    told = structure(compiled, job.board, job.model, job.command())
    if not job.wishes.details:
        return told
    return told | {"sources": sources_report(compiled), "trace": _trace(compiled, measured, jobs)}


def _trace(compiled: Compiled, measured: Measured, jobs: list[timeline.Job]) -> dict[str, Any]:
    from uaccel.telling.report import facts_of
    from uaccel.telling.trace import trace_of

    title, times = f"{compiled.program.name} on {compiled.board}", {time.layer: time for time in measured.layers}
    return trace_of(title, facts_of(compiled.program), times, measured.run.accounts, jobs)


def _verify(job: ModelJob, compiled: Compiled, measured: Measured, step: Steps) -> Verdict:
    from uaccel.running.inside import first_wrong_when_cut
    from uaccel.running.second_opinion import second_opinion
    from uaccel.running.verdict import judge

    step("execute the exact meaning and compare")
    wishes = job.wishes
    verdict = judge(
        compiled,
        measured,
        every_layer=wishes.every_layer,
        again=lambda cuts: first_wrong_when_cut(
            job.what(), cuts, measured.samples, step, port=wishes.port, flashes=wishes.flashes
        ),
    )
    imported = replace(compiled.model, module=compiled.stages["import"])
    report = verdict.report | {"seed": wishes.seed if wishes.more_samples else None}
    report |= opinion(second_opinion(imported, job.model, measured.samples, measured.outputs))
    return replace(verdict, report=report)


def _run(compiled: Compiled, job: ModelJob, folder: Path, step: Steps) -> Measured:
    from uaccel.running.execute import Looks
    from uaccel.running.firmware import tensor_types
    from uaccel.running.packed import run_compiled
    from uaccel.running.verdict import layers_to_read

    wishes = job.wishes
    types = tensor_types(compiled.model.signature.inputs)
    return run_compiled(
        compiled,
        job.board,
        wishes.samples(types),
        folder,
        step,
        looks=Looks(
            wishes.more(types),
            wishes.profile or wishes.details or wishes.trace is not None,
            layers_to_read(compiled, every_layer=wishes.every_layer) if wishes.verify else (),
            wishes.sequence,
        ),
        port=wishes.port,
        flashes=wishes.flashes,
        count=step.count,
        on_log=step.log,
    )


def _batches(compiled: Compiled, measured: Measured, repeat: int) -> dict[str, Any]:
    from uaccel.telling.figures import batched

    per_sample = measured.run.outputs[::repeat]
    names = [spec.name for spec in compiled.model.signature.outputs]
    return {name: batched([values[i] for values in per_sample]) for i, name in enumerate(names)}


def _write_outputs(path: Path, compiled: Compiled, measured: Measured, repeat: int) -> None:
    from uaccel.basics.npz import write_npz

    arrays = _batches(compiled, measured, repeat)
    write_atomically(path, lambda stream: write_npz(stream, arrays), "--outputs")


def _report(compiled: Compiled, measured: Measured, repeat: int) -> dict[str, Any]:
    from uaccel.telling.figures import cycles_report, flash_report, layer_reports, stood_in, tensors_report, with_code
    from uaccel.telling.report import compile_report, facts_of, ram_report

    runs, taken = len(measured.run.outputs), measured.footprint
    times, accounts = {time.layer: time for time in measured.layers}, measured.run.accounts
    rows = layer_reports(facts_of(compiled.program), runs, times, accounts)
    told = compile_report(compiled)
    return told | {
        "warnings": told["warnings"] + stood_in(rows, runs),
        "outputs": tensors_report(_batches(compiled, measured, repeat)),
        "runs": runs,
        "instructions": measured.run.instructions,
        **cycles_report(measured.cycles),
        "accelerator_cycles": measured.run.cycles,
        "layers": with_code(rows, taken),
        "ram": ram_report(compiled, taken, stack=measured.run.stack),
        "flash": flash_report(compiled.generated.weight_bytes, taken),
    }


def _show(console: Console, report: dict[str, Any]) -> None:
    from uaccel.cli.tables import show_layers, show_memory, show_outputs

    show_layers(console, report)
    show_memory(console, report)
    show_outputs(console, report["outputs"])
    show_verified(console, report)
