"""Into a wrong region: the model with its regions cut, compiled, run, and judged again."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from uaccel.model import Array
from uaccel.pipeline import Progress
from uaccel.running.execute import Looks
from uaccel.running.job import Job
from uaccel.running.layers import WrongLayer
from uaccel.running.packed import run_compiled
from uaccel.running.verify import first_wrong_layer


def first_wrong_when_cut(
    job: Job, cuts: tuple[str, ...], samples: list[list[Array]], progress: Progress, *, port: str, flashes: bool
) -> WrongLayer | None:
    """The first wrong layer where regions end after these layers."""
    progress("cut the wrong region in two and run again")
    compiled = replace(job, wishes=replace(job.wishes, cuts=cuts)).compiled(progress)
    looks = Looks(samples[1:], read=range(len(compiled.program.layers)))
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        project = Path(folder) / "project"
        measured = run_compiled(
            compiled, job.board, samples[:1], project, progress, looks=looks, port=port, flashes=flashes
        )
    return first_wrong_layer(compiled, samples, measured.computed)
