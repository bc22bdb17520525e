"""Estimated cycles beside the instructions that an emulated board counted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uaccel.cycles import Estimator, Mark, core_of, estimator_for, hot_spots, read_marks
from uaccel.cycles.timing import Timing
from uaccel.session.counting import Blocks
from uaccel.session.records import LayerTime


@dataclass(frozen=True)
class CyclesEstimated:
    """Of one inference; ``missing`` says in words why there is no estimate, ``source`` whose timings it is by."""

    total: int | None
    core: str
    source: str | None = None
    missing: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        by = {"core": self.core, "source": self.source, "missing": self.missing}
        return {"cycles_estimated": self.total, "cycles_estimated_by": by}


@contextmanager
def watched(marks: int) -> Iterator[Blocks]:
    """A file for what the counting plugin tells of so many readings of its counter."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        yield Blocks(Path(folder) / "blocks.txt", marks)


FIRST_INFERENCE = 2
"""Readings of the counter: before and after it."""
WRITTEN_AT_ONCE = 508
"""Bytes of an input that a session sends in one piece to firmware as it is built here."""


def readings_of_feeding(fed: int) -> int:
    """Before and after each piece of an input of so many bytes that the firmware computes with as it comes."""
    return 2 * -(-fed // WRITTEN_AT_ONCE)


def readings_of_layers(outputs: Sequence[int]) -> int:
    """Of firmware that shows its layers, with so many outputs each: before a layer, and at each of its outputs."""
    return sum(1 + count for count in outputs)


def inference_cycles(timing: Timing, elf: Path, blocks: Blocks, instructions: int) -> CyclesEstimated:
    """Of the first inference of a session."""
    core = core_of(timing.core)
    estimator, missing = estimator_for(timing.core, elf, timing.objdump, timing.slow)
    if estimator is None:
        return CyclesEstimated(None, timing.core, core.source if core else None, missing)
    total = _in_pairs(estimator, read_marks(blocks.file), instructions)
    why = None if total is not None else "QEMU did not tell which instructions it executed"
    return CyclesEstimated(total, timing.core, estimator.core.source, why)


def layer_cycles(
    timing: Timing, elf: Path, blocks: Blocks, times: Sequence[LayerTime], outputs: Sequence[int], fed: int = 0
) -> list[LayerTime]:
    """With what each layer of the first run of a session is estimated to take, and where, as far as that is known.

    ``fed``: bytes of the input that the first layer computes with as they come; what that takes is added to it.
    """
    estimator, _ = estimator_for(timing.core, elf, timing.objdump, timing.slow)
    if estimator is None:
        return list(times)
    marks, feeding, found = read_marks(blocks.file), readings_of_feeding(fed), []
    position = feeding + 1
    for time in times:
        cycles = _between(estimator, marks, position, time.instructions)
        hot = hot_spots(estimator, marks[position]) if cycles is not None else ()
        found.append(replace(time, cycles_estimated=cycles, hot=hot))
        position += 1 + outputs[time.layer]
    return _with_feeding(estimator, marks[1:feeding:2], found) if fed else found


def _between(estimator: Estimator, marks: Sequence[Mark], position: int, instructions: int | None) -> int | None:
    """From the reading before ``position``; None where so many instructions are not what was executed there."""
    if position >= len(marks):
        return None
    counted = marks[position].count - marks[position - 1].count
    if not counted == marks[position].instructions == instructions:
        return None
    return estimator.of(marks[position : position + 1])


def _in_pairs(estimator: Estimator, marks: Sequence[Mark], instructions: int) -> int | None:
    """Of the least number of pairs of readings, from the first on, between which so many instructions were counted: the
    pieces of an input that is fed, and the inference; None where no number of them gives that."""
    between: list[Mark] = []
    left = instructions
    for before, after in zip(marks[::2], marks[1::2], strict=False):
        if after.count - before.count != after.instructions:
            return None
        between.append(after)
        left -= after.instructions
        if left <= 0:
            return estimator.of(between) if left == 0 else None
    return None


def _with_feeding(estimator: Estimator, feeding: Sequence[Mark], times: Sequence[LayerTime]) -> list[LayerTime]:
    """The first layer with what it took while its input came."""
    cycles, first = estimator.of(feeding), times[0]
    if cycles is None or first.cycles_estimated is None or first.instructions is None:
        return list(times)
    instructions = first.instructions + sum(mark.instructions for mark in feeding)
    return [replace(first, instructions=instructions, cycles_estimated=first.cycles_estimated + cycles), *times[1:]]
