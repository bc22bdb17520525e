"""Assigns cycles to an inference and to its layers: estimated from executed blocks, or counted by a core of RTL.

Firmware reads an instruction counter at fixed points. At each reading the emulator's counting plugin, or the simulator
of a core, writes down which blocks were executed since the reading before. The order of readings is a contract. First
come two for each piece of a fed input, before and after it. Firmware without a hook then has one pair for an inference.
Firmware with a hook has, for each layer, one before it and one at each of its outputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeGuard

from uaccel.board import Board, RtlRun
from uaccel.cycles import CycleEstimator, Mark, core_of, estimator_for, hot_spots, read_marks
from uaccel.cycles.estimate import Timing
from uaccel.session.description import LayerTime, Waited
from uaccel.session.qemu import Blocks

# Estimated cycles, of boards that QEMU emulates.


@dataclass(frozen=True)
class CyclesEstimated:
    """Holds the estimate for one inference. ``source``: whose timings it uses; ``missing``: why there is none."""

    total: int | None
    core: str
    source: str | None = None
    missing: str | None = None
    waited: Waited | None = None  # Cycles among them, where the board has slow memory.

    def to_json(self) -> dict[str, Any]:
        """Returns its part of the report."""
        by = {"core": self.core, "source": self.source, "missing": self.missing}
        waited = {"waited": self.waited.to_json()} if self.waited else {}
        return {"cycles_estimated": self.total, "cycles_estimated_by": by, **waited}


@contextmanager
def count_blocks(marks: int, timing: Timing | None) -> Iterator[Blocks]:
    """Provides a temporary file for what the counting plugin writes at so many readings of the counter."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        yield Blocks(Path(folder) / "blocks.txt", marks, timing.slow if timing else ())


FIRST_INFERENCE = 2  # Readings: before and after it.
WRITTEN_AT_ONCE = 508  # Bytes of an input in one frame: the firmware's usual body of 512, less the offset of 4.


def readings_of_feeding(fed: int) -> int:
    """Counts the readings before and after each piece of an input of ``fed`` bytes, computed with as it comes."""
    return 2 * -(-fed // WRITTEN_AT_ONCE)


def readings_of_layers(outputs: Sequence[int]) -> int:
    """Counts the readings of one inference with a hook: before each layer, and at each of its outputs."""
    return sum(1 + count for count in outputs)


def inference_cycles(timing: Timing, elf: Path, blocks: Blocks, instructions: int) -> CyclesEstimated:
    """Estimates the cycles of the first inference of a session."""
    core = core_of(timing.core)
    estimator, missing = estimator_for(timing.core, elf, timing.objdump)
    if estimator is None:
        return CyclesEstimated(None, timing.core, core.source if core else None, missing)
    between = _in_pairs(read_marks(blocks.file), instructions)
    total = estimator.of(between) if between else None
    why = None if total is not None else "QEMU did not tell which instructions it executed"
    waited = _waited_for(timing, between) if between else None
    return CyclesEstimated(total, timing.core, estimator.core.source, why, waited)


def layer_cycles(
    timing: Timing, elf: Path, blocks: Blocks, times: Sequence[LayerTime], outputs: Sequence[int], fed: int = 0
) -> list[LayerTime]:
    """Adds to each layer of the first run its estimated cycles and its hot spots, as far as they are known.

    A layer lies between the reading before it and that at its first output, which is number ``position``. Work
    at further outputs is the hook's own. ``fed``: bytes of an input that the first layer computes with as they come;
    what that takes is added to it.
    """
    estimator, _ = estimator_for(timing.core, elf, timing.objdump)
    if estimator is None:
        return list(times)
    marks, feeding, found = read_marks(blocks.file), readings_of_feeding(fed), []
    position = feeding + 1
    for time in times:
        cycles = _between(estimator, marks, position, time.instructions)
        hot = hot_spots(estimator, marks[position]) if cycles is not None else ()
        waited = _waited_for(timing, [marks[position]]) if cycles is not None else None
        found.append(replace(time, cycles_estimated=cycles, waited=waited, hot=hot))
        position += 1 + outputs[time.layer]
    return _with_feeding(estimator, marks[1:feeding:2], found) if fed else found


def _between(estimator: CycleEstimator, marks: Sequence[Mark], position: int, instructions: int | None) -> int | None:
    """Estimates the cycles from the reading before ``position`` to it.

    Three counts must agree, else it gives None: the counter's, the sum over executed blocks, and what the firmware
    reported. If they do not, the readings are not those of this layer."""
    if position >= len(marks):
        return None
    counted = marks[position].count - marks[position - 1].count
    if not counted == marks[position].instructions == instructions:
        return None
    return estimator.of(marks[position : position + 1])


def _waited_for(timing: Timing, marks: Sequence[Mark]) -> Waited | None:
    """Returns what the CPU waited for memory, by the plugin's model of it; None where no memory is slow."""
    code, data = (sum(mark.waits[kind] for mark in marks) for kind in (0, 1))
    return Waited(code, data, 0) if timing.slow else None


def _in_pairs(marks: Sequence[Mark], instructions: int) -> list[Mark]:
    """Returns the readings that end the first pairs of readings, as many pairs as ``instructions`` fill.

    The pairs are the pieces of a fed input, whose number depends on how the session cut it, and the inference. There
    are none if no number of pairs has exactly so many instructions."""
    between: list[Mark] = []
    left = instructions
    for before, after in zip(marks[::2], marks[1::2], strict=False):
        if after.count - before.count != after.instructions:
            return []
        between.append(after)
        left -= after.instructions
        if left <= 0:
            return between if left == 0 else []
    return []


def _with_feeding(estimator: CycleEstimator, feeding: Sequence[Mark], times: Sequence[LayerTime]) -> list[LayerTime]:
    """Adds to the first layer what it took while its input came in."""
    cycles, first = estimator.of(feeding), times[0]
    if cycles is None or first.cycles_estimated is None or first.instructions is None:
        return list(times)
    instructions = first.instructions + sum(mark.instructions for mark in feeding)
    return [replace(first, instructions=instructions, cycles_estimated=first.cycles_estimated + cycles), *times[1:]]


# Cycles that a core counted itself, on simulated boards whose timer is the core's cycle counter.

_TOLD: Final = 1 + len(Waited._fields)  # Numbers behind the count of a reading: cycles, and what the core waited for.


@dataclass(frozen=True)
class CoreCycles:
    """Holds the core's cycles of one inference; ``waited``: those among them in which it waited, by reason."""

    total: int | None = None
    waited: Waited | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns its part of the report."""
        return {"cycles": self.total, "waited": self.waited.to_json() if self.waited else None}


def tells_cycles(board: Board | None) -> TypeGuard[Board]:
    """Says whether each tick of the board's timer is one cycle of its core."""
    return board is not None and isinstance(board.runs[0], RtlRun) and board.timer.kind == "mcycle"


def core_cycles(board: Board | None, seconds: float | None, blocks: Blocks) -> CoreCycles | None:
    """Returns the core's cycles of the first inference of a session; None where the board does not count them."""
    if not tells_cycles(board):
        return None
    marks = read_marks(blocks.file)
    return CoreCycles(None if seconds is None else round(seconds * board.timer.hz), _waited(marks, FIRST_INFERENCE - 1))


def with_core_cycles(
    board: Board | None, blocks: Blocks, times: Sequence[LayerTime], outputs: Sequence[int], fed: int = 0
) -> list[LayerTime]:
    """Adds to each layer of the first run what the core counted; arguments as those of :func:`layer_cycles`."""
    if not tells_cycles(board):
        return list(times)
    marks, found, position = read_marks(blocks.file), [], readings_of_feeding(fed) + 1
    for time in times:
        found.append(replace(time, core_cycles=_counted_between(marks, position), waited=_waited(marks, position)))
        position += 1 + outputs[time.layer]
    return found


def _counted_between(marks: Sequence[Mark], position: int) -> int | None:
    """Returns the core's cycles from the reading before ``position``; a layer's ticks would hold the readings too."""
    told = _differences(marks, position)
    return told[0] if told else None


def _waited(marks: Sequence[Mark], position: int) -> Waited | None:
    told = _differences(marks, position)
    return Waited(*told[1:]) if told else None


def _differences(marks: Sequence[Mark], position: int) -> list[int]:
    """Returns how much each number behind the count grew since the reading before ``position``; empty if missing."""
    if position >= len(marks) or len(marks[position].told) != _TOLD:
        return []
    return [later - earlier for earlier, later in zip(marks[position - 1].told, marks[position].told, strict=True)]
