"""Describes a compilation as one object, and lists what less RAM costs in time and flash."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.accelerator import Accelerator, load_accelerators, planning_for
from uaccel.board import Board, load_board
from uaccel.build.linker_script import constant_rooms, workspace_memories
from uaccel.codegen.generate import generate, io_bytes
from uaccel.codegen.options import EmitOptions, regenerate_command
from uaccel.kernels.choice import Selection, selection_for
from uaccel.lower.placement import Placement, place
from uaccel.lower.program import Program
from uaccel.lower.rows.layer import apply
from uaccel.lower.rows.search import ChainPlan, RowSearch, frontier, require_feedable
from uaccel.partition import Wishes
from uaccel.pipeline import Compiled, Progress, compile_model
from uaccel.runner.options import CompileOptions, EngineRequest
from uaccel.util.favour import Favour, favour_of
from uaccel.util.option import words_of

# What to compile: a model, a board, and who computes what.


@dataclass(frozen=True)
class Job(CompileOptions):
    """Holds all that a compilation depends on, and says which command does the same.

    ``board_word`` is what a user calls the board: its name, or the name of a file of theirs. ``accelerators`` and
    ``wishes`` are what ``engines`` asks for, loaded.
    """

    model: Path
    board: Board
    board_word: str = ""
    options: EmitOptions = field(default_factory=EmitOptions)
    accelerators: Sequence[Accelerator] = ()
    wishes: Wishes = field(default_factory=Wishes)
    engines: EngineRequest = field(default_factory=EngineRequest)

    @classmethod
    def of(
        cls,
        model: str | Path,
        board: str | Path | Board = "host",
        accelerators: Sequence[str | Path] = (),
        *,
        objective: str = "latency",
        options: EmitOptions | None = None,
        wishes: Wishes | None = None,
        cpu_fallback: bool = False,
        records: str | Path | None = None,
        favour: str = "balanced",
        **more: Any,
    ) -> Job:
        """Makes a job of names and paths, as on the command line; ``more`` are the fields of CompileOptions."""
        target = board if isinstance(board, Board) else load_board(str(board))
        wishes, names = wishes or Wishes(), tuple(map(str, accelerators))
        said: dict[str, Any] = {
            "accelerators": names,
            "choose": wishes.choose if wishes.choose != Wishes().choose else None,
            "pins": tuple(map("=".join, wishes.pins)),
            "forbidden": tuple(map("=".join, wishes.forbidden)),
            "fallback": "cpu" if cpu_fallback else "none",
            "objective": objective,
            "records": None if records is None else Path(records),
        }
        return cls(
            Path(model),
            target,
            "" if isinstance(board, Board) else Path(board).name,
            options or EmitOptions(),
            planning_for(objective, load_accelerators(list(names))),
            wishes,
            EngineRequest(**said),
            favour=favour_of(favour),
            **more,
        )

    def compiled(
        self,
        progress: Progress = lambda _step: None,
        selection: Selection | None = None,
        *,
        again: Callable[[str], str] | None = None,
    ) -> Compiled:
        """Compiles the model; a ``selection`` picks kernels in place of the records. ``again`` gives the command that
        generated files name, in place of ``uaccel compile``, for the model's name in C."""
        return compile_model(
            self.model,
            board=self.board.name,
            selection=selection or selection_for(self.board, self.engines.records, self.favour),
            name=self.name,
            options=self.options,
            accelerators=self.accelerators,
            wishes=self.wishes,
            cpu_fallback=self.engines.fallback == "cpu",
            command=again or self._again,
            input_shapes=self.input_shapes,
            state=self.state,
            state_from=self.state_from,
            memories=workspace_memories(self.board),
            rooms=constant_rooms(self.board),
            progress=progress,
        )

    def command(self, verb: str = "compile") -> str:
        """Returns the command line for the same, with files by their paths."""
        words = ["uaccel", verb, str(self.model), "--board", self.board_word or self.board.name]
        return shlex.join([*words, *(["--name", self.name] if self.name else []), *self._words])

    def _again(self, name: str) -> str:
        """Returns the command that, run beside the model file, gives the same bytes; ``name`` is the one in C."""
        return regenerate_command(self.model.name, self.board_word or self.board.name, name, self._words)

    @property
    def _words(self) -> list[str]:
        return [*self.options.words, *words_of(self, self.engines)]


# The trade of RAM against time: the Pareto front of the ways to compute chains of layers some rows at a time.


def frontier_report(job: Job, step: Callable[[str], None] = lambda _step: None) -> dict[str, Any]:
    """Reports the ways to run a model, from the most RAM to the least; their costs are estimates.

    Each way that the search offers is lowered and placed, which tells its RAM; those that are no gain then are left
    out."""
    feed = job.options.feed
    options = replace(job.options, feed=False, ram=None, whole_layers=True)
    whole = replace(job, options=options, favour=Favour.balanced).compiled(step)
    step("compare rows")
    search = RowSearch(whole.program, whole.selection, workspace_io=job.options.workspace_io, feed=feed)
    if feed:
        require_feedable(search)
    placed = [_placed(whole, search, cut, feed=feed) for cut in frontier(search)]
    return {
        "model": whole.model.name,
        "board": whole.board,
        "unit": search.parts.costs.estimated.unit,
        "feed": feed,
        "points": [_point(whole, search, one) for one in _best(placed)],
    }


@dataclass(frozen=True)
class _Placed:
    """Holds a way that the search offers, lowered and placed, and the RAM that it takes."""

    cut: ChainPlan
    program: Program
    placement: Placement
    options: EmitOptions
    ram: int

    @property
    def key(self) -> tuple[int, int]:
        return self.ram, round(self.cut.cost)


def _placed(whole: Compiled, search: RowSearch, cut: ChainPlan, *, feed: bool) -> _Placed:
    program = apply(search.program, cut.groups, search.parts, feed=feed)
    options = replace(whole.options, feed=feed)
    placement = place(program, workspace_io=options.workspace_io)
    ram = placement.arena + placement.state + io_bytes(program, options)
    return _Placed(cut, program, placement, options, ram)


def _point(whole: Compiled, search: RowSearch, placed: _Placed) -> dict[str, Any]:
    program, cost = placed.program, placed.cut.cost
    made = generate(program, placed.placement, placed.options, whole.board)
    functions = sum(
        len(layer.streaming.functions) if layer.streaming else not layer.is_view for layer in program.layers
    )
    return {
        "ram": placed.ram,
        "estimate": round(cost),
        "slower": round(cost / max(1.0, search.whole.cost) - 1, 4),
        "constants": made.weight_bytes,
        "functions": functions,
        "by_rows": [layer.name for layer in program.layers if layer.streaming is not None],
    }


def _best(points: Sequence[_Placed]) -> list[_Placed]:
    """Keeps the Pareto front: points for which no other has as little RAM, is as fast, and better in one of both."""
    return [
        point
        for point in points
        if not any(
            all(theirs <= own for theirs, own in zip(other.key, point.key, strict=True)) and other.key != point.key
            for other in points
        )
    ]
