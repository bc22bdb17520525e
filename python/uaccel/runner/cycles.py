"""Cycles of a run, counted by a core or estimated."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from uaccel.board import Board, RtlRun
from uaccel.cycles import Estimator, Mark, core_of, estimator_for, hot_spots, read_marks
from uaccel.cycles.estimate import Timing
from uaccel.session.description import LayerTime, Waited
from uaccel.session.qemu import Blocks

# Estimated cycles beside the instructions that an emulated board counted.


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
def count_blocks(marks: int) -> Iterator[Blocks]:
    """A file for what the counting plugin tells of so many readings of its counter."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        yield Blocks(Path(folder) / "blocks.txt", marks)


FIRST_INFERENCE = 2  # Readings of the counter: before and after it.
WRITTEN_AT_ONCE = 508  # Bytes of an input that a session sends in one piece to firmware as it is built here.


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


# A core's own cycles, of boards that tell them: measured, where others are estimated.

_TOLD: Final = 1 + len(Waited._fields)


@dataclass(frozen=True)
class CoreCycles:
    """Of one inference; ``waited`` are those among them in which the core waited."""

    total: int | None = None
    waited: Waited | None = None

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {"cycles": self.total, "waited": self.waited.to_json() if self.waited else None}


def tells_cycles(board: Board) -> bool:
    """Whether the board's clock is its core's, and each of its ticks a cycle."""
    return isinstance(board.runs[0], RtlRun) and board.timer.kind == "mcycle"


def core_cycles(board: Board, seconds: float | None, blocks: Blocks) -> CoreCycles | None:
    """Of the first inference of a session."""
    if not tells_cycles(board):
        return None
    marks = read_marks(blocks.file)
    return CoreCycles(_cycles(board, seconds), _waited(marks, FIRST_INFERENCE - 1))


def with_core_cycles(
    board: Board, blocks: Blocks, times: Sequence[LayerTime], outputs: Sequence[int], fed: int = 0
) -> list[LayerTime]:
    """With what each layer of the first run of a session took; arguments as those of :func:`layer_cycles`."""
    if not tells_cycles(board):
        return list(times)
    marks, found, position = read_marks(blocks.file), [], readings_of_feeding(fed) + 1
    for time in times:
        found.append(replace(time, core_cycles=_counted_between(marks, position), waited=_waited(marks, position)))
        position += 1 + outputs[time.layer]
    return found


def _cycles(board: Board, seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * board.timer.hz)


def _counted_between(marks: Sequence[Mark], position: int) -> int | None:
    """The core's clock from the reading before ``position``: a layer's ticks would hold the readings themselves."""
    told = _differences(marks, position)
    return told[0] if told else None


def _waited(marks: Sequence[Mark], position: int) -> Waited | None:
    told = _differences(marks, position)
    return Waited(*told[1:]) if told else None


def _differences(marks: Sequence[Mark], position: int) -> list[int]:
    """Of all that stands behind the counts, from the reading before ``position``; empty where that is missing."""
    if position >= len(marks) or len(marks[position].told) != _TOLD:
        return []
    return [later - earlier for earlier, later in zip(marks[position - 1].told, marks[position].told, strict=True)]
