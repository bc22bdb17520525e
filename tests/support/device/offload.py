"""Models on the example accelerators: compiled, built and run on a board, with everything that is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.device.boards import board_with_tools
from support.oracle.oracle import Array
from uaccel.accelerator import load_accelerator
from uaccel.board import Board, load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.pipeline import Compiled, compile_model
from uaccel.report.compile_json import facts_of
from uaccel.report.run_json import layer_reports
from uaccel.runner.compiled import archive_of, pack_compiled
from uaccel.runner.execute import connect
from uaccel.session.description import Account
from uaccel.session.session import Result
from uaccel.util.text import CPU

INTEGER = ("nuc_fpga", "conveyor", "matrix8", "npu", "npu_small")
"""Those whose arithmetic is exact."""


@dataclass(frozen=True)
class Offloaded:
    """A model for a board, and its firmware."""

    compiled: Compiled
    board: Board
    firmware: Path

    @property
    def claimed(self) -> set[str]:
        """The layers that ``uaccel explain`` says are offloaded."""
        return {row.layer for row in self.compiled.partitioned.decisions if row.engine != CPU}


@dataclass(frozen=True)
class Counted:
    """A session with several inferences."""

    results: list[Result]
    accounts: dict[int, Account]

    @property
    def numbers(self) -> list[tuple[int | None, int, int]]:
        """What must be the same whenever the same inputs come."""
        return [(result.instructions, result.calls, result.cycles) for result in self.results]


def offload(model: Path, accelerators: Sequence[str], board: str, folder: Path) -> Offloaded:
    """``folder`` becomes the project. Skipped where a tool is missing that the board needs."""
    target = load_board(board) if board == "host" else board_with_tools(board)
    compiled = compile_model(model, board=board, accelerators=[load_accelerator(name) for name in accelerators])
    create_project(archive_of(compiled), target, folder)
    return Offloaded(compiled, target, firmware_of(build_project(folder)))


def run(offloaded: Offloaded, samples: Sequence[Sequence[Array]]) -> Counted:
    """One inference for each sample, in a session of their own."""
    names = [spec.name for spec in offloaded.compiled.model.signature.inputs]
    with connect(offloaded.board, offloaded.firmware, pack_compiled(offloaded.compiled).identity, "") as session:
        feeds = (dict(zip(names, values, strict=True)) for values in samples)
        return Counted(list(session.stream(feeds)), session.accounts())


def called(offloaded: Offloaded, counted: Counted) -> set[str]:
    """The operators of the model whose accelerator was called, as its driver says. A large one may take several calls,
    of which the first has its name."""
    facts = facts_of(offloaded.compiled.program)
    rows = layer_reports(facts, len(counted.results), {}, counted.accounts, {})
    named: dict[int, str] = {}
    for row in rows:
        if row["engine"] != CPU and row["calls"]:
            named.setdefault(row["operator"], row["name"])
    return set(named.values())
