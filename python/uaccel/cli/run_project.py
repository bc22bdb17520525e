"""Runs a project's firmware (``uaccel run DIR``), or a model through a template (``uaccel run MODEL --template T``)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.bench import hold_if_known, port_of_project
from uaccel.cli.output import REPORT, TRACE, ShownSteps, emit, progress, write_page_where, write_trace
from uaccel.cli.verdict import show_run
from uaccel.errors import VerificationError
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.request import RunRequest
from uaccel.session.monitor import recorded
from uaccel.util.files import require_writable, write_atomically

if TYPE_CHECKING:
    from uaccel.runner.compare import Verdict
    from uaccel.runner.project_run import ProjectRun


def require_places(wishes: ProjectRunOptions) -> None:
    """Raises an error for files that cannot be written, before the work that would fill them."""
    for path, option in ((wishes.outputs, "--outputs"), (wishes.trace, TRACE), (wishes.report, REPORT)):
        if path is not None:
            require_writable(path, option)


def write_outputs(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes outputs by name as an .npz file."""
    from uaccel.model import write_npz

    write_atomically(path, lambda stream: write_npz(stream, arrays), "--outputs")


def run_folder(folder: Path, wishes: ProjectRunOptions, as_json: bool, *, board: str | None) -> None:
    """Runs a project; ``board``, if the user named one, must be the project's."""
    require_places(wishes)
    with progress() as step:
        done = _run(folder, wishes, step, board)
        verified = _verified(done, wishes, step) if wishes.verifies else None
    _conclude(_report(done, wishes) | {"project": str(folder)}, verified, wishes, as_json)


def run_on_template(request: RunRequest, template: Path, project: Path, as_json: bool) -> None:
    """Compiles a model, and does all that a client of microTVM does: create, build, flash, run."""
    wishes = request.wishes
    with progress() as step:
        _make_project(request, template, project, step)
        done = _run(project, wishes, step, None)
        verified = _verified(done, wishes, step) if wishes.verifies else None
    _conclude(_report(done, wishes), verified, wishes, as_json)


def _verified(done: ProjectRun, wishes: ProjectRunOptions, step: ShownSteps) -> Verdict:
    from uaccel.runner.compiled import ArchiveSubject
    from uaccel.runner.verdict import judge_values, with_opinions

    step("execute the exact meaning and compare")
    with done.meaning() as (model, path):
        subject = ArchiveSubject(model, done.metadata)
        verdict = judge_values(
            subject,
            done.samples,
            done.outputs,
            done.computed,
            sequence=done.run.sequence,
            every_layer=wishes.every_layer,
            unread=done.unread,
        )
        report = verdict.report | {"seed": wishes.seed if wishes.more_samples else None, "outside": None}
        verdict = replace(verdict, report=report)
        return with_opinions(
            verdict, model, path, done.samples, done.outputs, exact=subject.exact, sequence=done.run.sequence
        )


def _conclude(report: dict[str, Any], verdict: Verdict | None, wishes: ProjectRunOptions, as_json: bool) -> None:
    if verdict is not None:
        report["verify"] = verdict.report
    write_page_where(wishes.report, report)
    emit(report, as_json, lambda console: show_run(console, report))
    if verdict is not None and verdict.complaint:
        raise VerificationError(verdict.complaint)


def _make_project(request: RunRequest, template: Path, project: Path, step: ShownSteps) -> None:
    """Makes the project. Its code may call the model with tensors of its own, so these lie apart unless asked for."""
    from uaccel.build.project import build_any, create_from_archive, flash_any
    from uaccel.runner.compiled import archive_of
    from uaccel.util.files import write_archive

    wishes = request.wishes
    compiled = replace(request, workspace_io=bool(request.workspace_io)).what().compiled(step)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        archive = Path(temporary) / "model.tar"
        write_archive(archive, archive_of(compiled))
        step("create the project")
        create_from_archive(archive, project, request.board, template=template, options=wishes.options)
    step("build the firmware")
    build_any(project, wishes.options, observe=False, verbose=False)
    step("flash")
    with hold_if_known(port_of_project(project, wishes.port)):
        flash_any(project, wishes.options, port=wishes.port, verbose=False)


def _run(folder: Path, wishes: ProjectRunOptions, step: ShownSteps, board: str | None) -> ProjectRun:
    from uaccel.runner.project_run import run_project

    with recorded(wishes.trace is not None) as jobs:
        done = run_project(folder, wishes, step, board=board)
    if wishes.trace is not None:
        from uaccel.report.trace import trace_of

        title, layers = f"{done.metadata.model} on {done.board}", done.metadata.at("uaccel", "layers")
        times = {time.layer: time for time in done.layers}
        write_trace(wishes.trace, trace_of(title, layers, times, done.run.accounts, jobs))
    if wishes.outputs is not None:
        write_outputs(wishes.outputs, _batches(done, wishes.repeat))
    return done


def _batches(done: ProjectRun, repeat: int) -> dict[str, Any]:
    from uaccel.report.run_json import batched

    per_sample = done.run.outputs[::repeat]
    return {tensor.name: batched([values[i] for values in per_sample]) for i, tensor in enumerate(done.model.outputs)}


def _report(done: ProjectRun, wishes: ProjectRunOptions) -> dict[str, Any]:
    from uaccel.report.run_json import (
        SCHEMA,
        cycles_report,
        fallback_report,
        flash_report,
        layer_reports,
        memory_report,
        offloaded_report,
        stood_in,
        tensors_report,
        with_code,
    )
    from uaccel.util.text import BOUNDED, BOUNDED_ONCE

    metadata, runs = done.metadata, len(done.run.outputs)
    layers = metadata.at("uaccel", "layers")
    times = {time.layer: time for time in done.layers}
    rows = layer_reports(layers, runs, times, done.run.accounts)
    main, bound = metadata.main, metadata.at("uaccel", "arena", "lower_bound")
    bounds = BOUNDED if metadata.at("uaccel", "arena").get("bounds") == BOUNDED else BOUNDED_ONCE
    arena, io = main["workspace_size_bytes"], main["io_size_bytes"]
    state = metadata.at("uaccel").get("state")
    lasting = state["bytes"] if state else None
    divided = metadata.at("uaccel").get("constant_pools") or []
    copied = sum(part["bytes"] for part in divided if part["copied"])
    stored = {part["name"]: part["bytes"] for part in divided}
    report = {
        "schema": SCHEMA,
        "model": metadata.at("uaccel", "model", "name"),
        "name": metadata.model,
        "board": done.board,
        "workspace_io": metadata.workspace_io,
        "favour": metadata.favour,
        "accelerators": [engine["name"] for engine in metadata.at("uaccel", "accelerators")],
        "inputs": metadata.at("uaccel", "inputs"),
        "outputs": tensors_report(_batches(done, wishes.repeat)),
        "layers": with_code(rows, done.footprint),
        "ram": memory_report(
            arena, bound, bounds, io, done.footprint, stack=done.run.stack, state=lasting, copied=copied
        ),
        "flash": flash_report(main["constants_size_bytes"], done.footprint, stored),
        "offloaded": offloaded_report(layers),
        "fallback": fallback_report(layers),
        "warnings": [*metadata.at("uaccel").get("warnings", []), *stood_in(rows, runs)],
        "runs": runs,
        "instructions": done.run.instructions,
        **cycles_report(done.cycles),
        "seconds": done.run.seconds if wishes.profile or done.real else None,
        "accelerator_cycles": done.run.cycles,
    }
    wishes.add_symbols(report, done.footprint)
    return report | ({"state": state["tensors"]} if state else {})
