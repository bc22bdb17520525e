"""Offers uaccel to Python programs: compile a model, run it on a board, prove what it computed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uaccel.board import Board
from uaccel.build.project import add_board
from uaccel.errors import VerificationError
from uaccel.pipeline import Compiled
from uaccel.runner.compare import Verdict
from uaccel.runner.compiled import archive_of, run_compiled
from uaccel.runner.execute import Looks
from uaccel.runner.firmware import tensor_types
from uaccel.runner.job import Job
from uaccel.runner.perform import perform
from uaccel.runner.request import Quiet
from uaccel.runner.samples import SAMPLES, samples_from
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.verdict import CompiledSubject, bisect_region, verdict_on
from uaccel.util import text
from uaccel.util.cache import cache_of_user

Inputs = Mapping[str, Any] | str | Path


@dataclass(frozen=True)
class Run:
    """Holds what a run gave. ``outputs`` by name, of several samples along the first axis; ``instructions`` and
    ``accelerator_cycles`` of the first, ``seconds`` of the fastest inference, ``stack`` in bytes. What the board cannot
    measure is None. ``verdict`` is what ``uaccel run --verify --json`` has under ``verify``; None where nothing was
    asked. A notebook shows outputs, figures and verdict as a table."""

    compiled: Compiled
    outputs: dict[str, NDArray[Any]]
    instructions: int | None
    accelerator_cycles: int
    seconds: float | None
    stack: int
    verdict: dict[str, Any] | None = None

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{values.dtype} {'x'.join(map(str, values.shape))}", _first(values))
            for name, values in self.outputs.items()
        ]
        figures = [
            (self.instructions, "{:,} instructions"),
            (self.accelerator_cycles or None, "{:,} cycles of accelerators"),
            (self.seconds, "{:.3g} seconds"),
            (self.stack, "{:,} bytes of stack"),
        ]
        below = [", ".join(text.format(value) for value, text in figures if value is not None)]
        if self.verdict is not None:
            below.append("verified: " + ", ".join(f"{name} {self.verdict[name]}" for name in ("bit_exact", "samples")))
        return text.table(("Output", "Type", "Values"), rows, below)


def _first(values: NDArray[Any]) -> str:
    """The first of its numbers."""
    shown = [f"{value:.4g}" if values.dtype.kind == "f" else str(value) for value in values.reshape(-1)[:8]]
    return ", ".join([*shown, "..."] if values.size > len(shown) else shown)


def compile(
    model: str | Path,
    board: str | Path | Board = "host",
    accelerators: Sequence[str | Path] = (),
    *,
    output: str | Path | None = None,
    **options: Any,
) -> Compiled:
    """Compile a model file for a board, by its name or the path of its file. ``accelerators`` by names or folders, the
    preferred one first. With ``output`` the archive of ``uaccel compile -o`` is written there. A notebook shows the
    layers as a table. ``options`` are those of
    :meth:`uaccel.runner.job.Job.of`: ``name``, ``objective``, ``favour`` (``balanced``, ``speed``, ``size``, ``ram``),
    ``records``, ``input_shapes``, ``wishes`` and so on."""
    job = Job.of(model, board, accelerators, **options)
    compiled = job.compiled()
    if output is not None:
        from uaccel.util.files import write_archive

        files = archive_of(compiled)
        for unfit in add_board(files, job.board):
            warnings.warn(unfit, stacklevel=2)
        write_archive(Path(output), files, folder=str(output).endswith("/"))
    return compiled


def run(
    model: str | Path,
    board: str | Path | Board = "host",
    accelerators: Sequence[str | Path] = (),
    *,
    inputs: Inputs | None = None,
    port: str = "",
    flashes: bool = True,
    **options: Any,
) -> Run:
    """Compile, build, flash where the board is flashed, and run. ``inputs``: arrays by name, or the path of an ``.npz``
    file; left away they are the ramp. ``port``: of a board at a line. ``options`` as for :func:`compile`."""
    return _run(Job.of(model, board, accelerators, **options), inputs, port, flashes)[0]


def verify(
    model: str | Path,
    board: str | Path | Board = "host",
    accelerators: Sequence[str | Path] = (),
    *,
    inputs: Inputs | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    port: str = "",
    flashes: bool = True,
    **options: Any,
) -> Run:
    """The same as :func:`run`, and every output held to the model's exact meaning; without ``inputs`` for so many
    ``samples``. :class:`~uaccel.errors.VerificationError` says where a bit is wrong."""
    done, verdict = _run(Job.of(model, board, accelerators, **options), inputs, port, flashes, samples, seed)
    if verdict is not None and verdict.complaint:
        raise VerificationError(verdict.complaint)
    return done


def measure(
    model: str | Path, board: str | Path = "host", accelerators: Sequence[str | Path] = (), **options: Any
) -> dict[str, Any]:
    """One run as plain data: what ``uaccel run --json`` writes, verified. ``options`` are those of the command, with
    underscores: ``favour="size"``, ``samples=3``, ``verify="layers"`` (or ``"outputs"``, ``"no"``). ``verify`` in the
    result says whether every bit is right; what cannot be run raises as the command ends.

    What was compiled, built and judged before is taken from the cache; ``cache=False`` uses none."""
    kept = cache_of_user() if options.pop("cache", True) else None
    said = {name.replace("_", "-"): str(value) if isinstance(value, Path) else value for name, value in options.items()}
    row = SweepRow(str(model), str(board), tuple(map(str, accelerators)), said)
    return perform(row.request(), cache=kept).report


def _run(
    job: Job, inputs: Inputs | None, port: str, flashes: bool, samples: int = 0, seed: int = 0
) -> tuple[Run, Verdict | None]:
    compiled = job.compiled()
    own, more = samples_from(inputs, tensor_types(compiled.model.signature.inputs), max(1, samples), seed)
    subject = CompiledSubject(compiled) if samples else None
    looks = Looks(more, read=subject.stated.to_read(every_layer=False) if subject else ())
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        measured = run_compiled(
            compiled, job.board, own, Path(folder) / "project", Quiet(), looks=looks, port=port, flashes=flashes
        )
    again = partial(bisect_region, job, samples=measured.samples, progress=Quiet(), port=port, flashes=flashes)
    verdict = verdict_on(subject, job.model, measured, again=again) if subject else None
    outputs = measured.named(tensor_types(compiled.model.signature.outputs))
    taken, told = measured.run, None if verdict is None else verdict.report
    return Run(compiled, outputs, taken.instructions, taken.cycles, taken.seconds, taken.stack, told), verdict
