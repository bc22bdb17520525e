"""Runs a row of a sweep, as a whole or in stages, and gives its result as plain data."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.errors import DeviceError, UaccelError, need
from uaccel.runner.request import RunRequest
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.util.cache import cache_of_user
from uaccel.util.form import INDEX, NUMBER, OBJECT, TEXT, Maybe, Value, complaint, optional
from uaccel.util.form import WHOLE as COUNT
from uaccel.util.reads import Reads, is_rows
from uaccel.util.text import CPU, named

# The result of one row, whichever process ran it.

if TYPE_CHECKING:
    from uaccel.runner.perform import FirmwareBytes, Performed, RemoteRun

RIGHT, RAN, WRONG, FAILED = "right", "ran", "wrong", "failed"
GOOD: Final = (RIGHT, RAN)
# The figures by which rows are compared: fields of the report, how many layers accelerators compute, how busy they are,
# how many bytes they move between memory and chip, and what their RTL takes of an FPGA.
FIGURES: Final = (
    *("latency.cycles", "latency.ms", "instructions", "cycles_estimated", "accelerator_cycles"),
    *("ram.arena", "ram.total", "flash.code", "flash.weights", "flash.total"),
    *("offloaded", "utilisation", "bytes_moved", "seconds"),
    *("area.lut", "area.ff", "area.bram", "area.dsp"),
)

# What is read of a result, whoever wrote it: a worker, or a file's author.
_REPORT: Final = optional(
    engines=[optional(name=TEXT, macs_per_cycle=Maybe(NUMBER))],
    layers=[optional(engine=TEXT, cycles=Maybe(NUMBER), macs=Maybe(NUMBER))],
    graph=Maybe(optional(layers=[optional(engine=TEXT, moved=Maybe(NUMBER))])),
    offloaded=Value("a list", lambda value: isinstance(value, list)),
    target=Maybe(OBJECT),
)
_RESULT: Final = {
    **dict.fromkeys(("digest", "error", "log", "worker", "label?"), TEXT),
    "status": Value("right, ran, wrong or failed", lambda value: value in (RIGHT, RAN, WRONG, FAILED)),
    "report": _REPORT,
    "exit_status": INDEX,
    "attempts": COUNT,
    "took": NUMBER,
    "reads?": Value("texts by name", is_rows),
}


@dataclass(frozen=True)
class RowResult:
    """Holds what a row gave. ``status``: right (verified), ran (nothing was verified), wrong, failed.

    ``error``: the line that tells why, with the exit status that a command would have. ``report`` is the JSON of
    ``uaccel run``. ``reads``: what was read on this computer for it (uaccel/util/reads.py)."""

    digest: str
    row: SweepRow
    status: str
    report: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    exit_status: int = 0
    log: str = ""
    attempts: int = 1
    took: float = 0.0  # Seconds, compiling and building included.
    worker: str = ""
    label: str = ""  # What a history calls the sweep.
    reads: Mapping[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """The figures that are known, by name."""
        found = {name: figure(self.report, name) for name in FIGURES}
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "title": self.row.title,
            "row": self.row.to_json(),
            **named(self, "status", "figures", "error", "exit_status", "log", "attempts"),
            "took": round(self.took, 3),
            "worker": self.worker,
            "label": self.label,
            "report": dict(self.report),
            "reads": dict(self.reads),
        }

    @classmethod
    def from_json(cls, data: Any) -> RowResult:
        """Reads a result; raises ValueError, KeyError or TypeError if that is none."""
        wrong = complaint(data, _RESULT)
        need(not wrong, wrong, ValueError)
        told = {entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}
        return cls(**told | {"row": SweepRow.from_json(data["row"])})


def work(item: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Runs a row, given as digest and data; all that may go wrong with it is part of the result."""
    from uaccel.runner.perform import perform

    digest, data = item
    row = SweepRow.from_json(data)

    def run() -> Performed:
        done = perform(row.request(), cache=cache_of_user())
        if "area" in row.options and row.accelerators:
            done.report["area"] = _area(row.accelerators, row.options["area"])
        return done

    return result_of(digest, row, run)


def work_here(item: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Does the same on this computer, and tells what was read for it: a later sweep looks whether that has changed."""
    with Reads() as reads:
        result = work(item)
    return result | {"reads": reads.rows}


def _area(accelerators: Sequence[str], part: str) -> dict[str, int]:
    """Returns what the RTL of all these accelerators takes of the FPGA together."""
    from uaccel.accelerator import load_accelerators
    from uaccel.build.rtl.synthesis import KINDS, SynthesisRequest, part_of, synthesise

    asked = [
        SynthesisRequest(one.name, one.folder, part, part_of(part), place=False)
        for one in load_accelerators(accelerators)
    ]
    taken = [synthesise(question, lambda _step: None).area for question in asked]
    return {kind: sum(one[kind] for one in taken) for kind in KINDS}


def result_of(digest: str, row: SweepRow, run: Callable[[], Performed]) -> dict[str, Any]:
    """Calls ``run`` and returns the result as JSON; an error of it is a result, too."""
    begun = time.monotonic()
    try:
        done = run()
    except UaccelError as error:
        result = RowResult(digest, row, FAILED, error=str(error), exit_status=error.exit_status)
    else:
        verified = done.wishes.verifies
        status = WRONG if done.complaint else RIGHT if verified else RAN
        result = RowResult(digest, row, status, done.report, done.complaint, 3 if done.complaint else 0)
    return result.to_json() | {"took": round(time.monotonic() - begun, 3)}


def figure(report: Mapping[str, Any], name: str) -> float | None:
    """Returns one figure of a report, by a path with dots; None where it is not known."""
    if not report:
        return None
    if name == "offloaded":
        return float(len(report.get("offloaded", ())))
    if name == "utilisation":
        return _utilisation(report)
    if name == "bytes_moved":
        return _bytes_moved(report)
    value: Any = report
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _utilisation(report: Mapping[str, Any]) -> float | None:
    """Returns the share of MACs that accelerators did, of those that they could have done in their cycles."""
    known = {engine.get("name"): engine.get("macs_per_cycle") for engine in report.get("engines", ())}
    done = room = 0.0
    for layer in report.get("layers", ()):
        peak = known.get(layer.get("engine"))
        if peak and layer.get("cycles"):
            room += peak * layer["cycles"]
        if peak:
            done += layer.get("macs") or 0
    return done / room if room else None


def _bytes_moved(report: Mapping[str, Any]) -> float | None:
    """Returns the bytes moved between memory and accelerators; None unless each of their layers tells them."""
    graph = report.get("graph") or {}
    moved = [layer.get("moved") for layer in graph.get("layers", ()) if layer.get("engine") != CPU]
    return float(sum(moved)) if moved and None not in moved else None


# Jobs of a worker's process: a row as a whole, or the stage of it that this computer can do.

# A row is done as a whole unless it needs a board at a line; then the other three follow one another.
WHOLE, BUILD, BOARD, JUDGE = "whole", "build", "board", "judge"


@dataclass(frozen=True)
class RowJob:
    """Holds what a process is asked to do. ``row`` has this computer's paths.

    ``before`` is what the stage before gave, or what was given besides the row; ``port``: where the board is."""

    kind: str
    digest: str
    row: Mapping[str, Any]
    before: Any = None
    port: str = ""


@dataclass(frozen=True)
class StageResult:
    """Holds what one stage hands to the next, and the seconds taken until then."""

    value: Any
    took: float


@dataclass(frozen=True)
class BoardFailed:
    """Says that the board or the line to it failed, so that another try may succeed."""

    error: str


def act(job: RowJob) -> Any:
    """Does a job and returns a result as JSON, a :class:`StageResult` or :class:`BoardFailed`.

    Only a failure of the device while a board runs is worth another try; all others are the row's result."""
    if job.kind == WHOLE:
        return work((job.digest, job.row))
    from uaccel.runner.perform import build_apart, judge_apart, run_apart

    row, begun = SweepRow.from_json(job.row), time.monotonic()
    before = job.before.took if job.before is not None else 0.0
    if job.kind == JUDGE:
        result = result_of(job.digest, row, lambda: judge_apart(job.before.value, _at_line(row), cache_of_user()))
        return result | {"took": round(before + result["took"], 3)}
    try:
        value: FirmwareBytes | RemoteRun
        if job.kind == BUILD:
            value = build_apart(_at_line(row), cache_of_user())
        else:
            value = run_apart(job.before.value, _at_line(row, job.port))
    except UaccelError as error:
        if job.kind == BOARD and isinstance(error, DeviceError):
            return BoardFailed(str(error))
        failed = RowResult(job.digest, row, FAILED, error=str(error), exit_status=error.exit_status)
        return failed.to_json() | {"took": round(before + time.monotonic() - begun, 3)}
    return StageResult(value, before + time.monotonic() - begun)


def _at_line(row: SweepRow, port: str = "auto") -> RunRequest:
    """Returns the row's run at a port; only the stage that runs the board needs the right one."""
    request = row.request()
    return replace(request, wishes=replace(request.wishes, port=port))


# The label of a sweep in a history: the commit of the folder where its matrix file lies.


def commit_of(folder: Path) -> str:
    """Returns the first ten digits of the commit; empty if the folder is in no repository, or there is no git."""
    command = ["git", "-C", str(folder), "rev-parse", "--short=10", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
