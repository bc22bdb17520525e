"""A core's own cycles, of boards that tell them: measured, where others are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uaccel.board import Board, RtlRun
from uaccel.cycles import Mark, read_marks
from uaccel.running.estimated import FIRST_INFERENCE, readings_of_feeding
from uaccel.session.counting import Blocks
from uaccel.session.records import LayerTime, Waited

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
        found.append(replace(time, core_cycles=_between(marks, position), waited=_waited(marks, position)))
        position += 1 + outputs[time.layer]
    return found


def _cycles(board: Board, seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * board.timer.hz)


def _between(marks: Sequence[Mark], position: int) -> int | None:
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
