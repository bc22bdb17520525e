"""Measure every way to compute each layer, on its board, and keep what was measured."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.basics.favour import Favour
from uaccel.bench import find_port, flash, hold_if_known
from uaccel.board import Board
from uaccel.cpu_kernels import Choice, Measured, Records, Turn
from uaccel.cpu_kernels.costs import CYCLES, INSTRUCTIONS
from uaccel.cpu_kernels.selection import Selection, target_of
from uaccel.errors import DeviceError, VerificationError
from uaccel.lower.program import Layer
from uaccel.pipeline import Compiled, Progress
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.running.execute import Looks, connect
from uaccel.running.firmware import tensor_types
from uaccel.running.packed import archive_of, identity, run_compiled
from uaccel.session.inputs import ramp
from uaccel.session.profile import layer_times
from uaccel.session.records import LayerTime

NANOSECONDS: Final = "nanoseconds"

Compile = Callable[[Selection], Compiled]
"""The model with everything that the user said about it, by whatever picks among kernels."""


@dataclass(frozen=True)
class Round:
    """One firmware, measured: what each layer took, by index, and all of them together."""

    costs: Mapping[int, int]
    total: int
    unit: str
    outputs: list[NDArray[Any]]
    instructions: Mapping[int, int] = field(default_factory=dict)
    """Beside the costs, where those count cycles."""

    def record(self, records: Records, choice: Choice, number: int, layer: int) -> Records:
        """With what the option of this number took in this layer."""
        label = choice.options[number]
        counted = {label: self.instructions[layer]} if layer in self.instructions else None
        return records.with_site(choice.site, {label: self.costs[layer]}, counted)


@dataclass(frozen=True)
class Tuned:
    """``layers``: those with a choice. ``before`` and ``after``: one inference, as picked without and with records."""

    records: Records
    layers: tuple[Layer, ...]
    before: Round
    after: Round


def tune(
    compile_with: Compile,
    board: Board,
    known: Records,
    progress: Progress,
    port: str = "",
    favour: Favour = Favour.balanced,
) -> Tuned:
    """Measure what ``known`` does not tell yet, in its unit: by time at a line, else by cycles where they are known."""
    target = target_of(board)
    measure = partial(_measured, by_instructions=known.unit == INSTRUCTIONS)
    first = compile_with(Selection.on(target, favour))
    before = measure(first, board, port, _named(progress, "as estimated"))
    records = _with_the_others(known, first, before)
    missing = [choice for choice in _choices(first) if not _is_known(choice, records)]
    turns = max((len(choice.options) for choice in missing), default=0)
    for number in range(turns):
        compiled = compile_with(Selection(target, Turn(number), favour))
        took = measure(compiled, board, port, _named(progress, f"{number + 1} of {turns}"))
        _require_alike(before, took, f"candidates number {number + 1}")
        records = _with_round(records, compiled, took)
    tuned = compile_with(Selection(target, Measured(records, favour=favour), favour))
    after = measure(tuned, board, port, _named(progress, "as measured"))
    _require_alike(before, after, "the fastest kernels")
    layers = tuple(layer for layer in tuned.program.layers if layer.choice and len(layer.choice.options) > 1)
    return Tuned(records, layers, before, after)


def _named(progress: Progress, what: str) -> Progress:
    return lambda step: progress(f"{what}: {step}")


def _choices(compiled: Compiled) -> list[Choice]:
    choices = (layer.choice for layer in compiled.program.layers)
    return [choice for choice in choices if choice is not None and len(choice.options) > 1]


def _is_known(choice: Choice, records: Records) -> bool:
    return records.sites.get(choice.site, {}).keys() >= set(choice.options)


def _with_the_others(records: Records, compiled: Compiled, took: Round) -> Records:
    """Layers without a choice are measured once, for comparing with what was estimated."""
    for layer in compiled.program.layers:
        choice = layer.choice
        if choice is not None and len(choice.options) == 1 and not _is_known(choice, records):
            records = took.record(records, choice, 0, layer.index)
    return replace(records, unit=took.unit)


def _with_round(records: Records, compiled: Compiled, took: Round) -> Records:
    for layer in compiled.program.layers:
        choice = layer.choice
        if choice is not None and len(choice.options) > 1:
            records = took.record(records, choice, choice.picked, layer.index)
    return replace(records, unit=took.unit)


def _require_alike(one: Round, other: Round, what: str) -> None:
    """Kernels that disagree are a bug of ours, or of a vendor's; never something to choose from."""
    if not all(np.array_equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True)):
        raise VerificationError(
            f"with {what} the model gives other outputs than before: some kernel or lowering is wrong; "
            "'uaccel run --verify layers' finds it"
        )


def _measured(compiled: Compiled, board: Board, port: str, progress: Progress, *, by_instructions: bool) -> Round:
    with tempfile.TemporaryDirectory(prefix="uaccel-tune-") as temporary:
        folder = Path(temporary) / "project"
        if port or board.runs[0].kind == "serial":
            line = find_port(board, port)
            with hold_if_known(line):
                return _on_a_real_board(compiled, board, line, folder, progress)
        sample = [ramp(tensor) for tensor in tensor_types(compiled.model.signature.inputs)]
        measured = run_compiled(compiled, board, [sample], folder, progress, looks=Looks(profile=True))
        cycles = {index: account.cycles for index, account in measured.run.accounts.items()}
        return _round(compiled, measured.layers, cycles, list(measured.run.outputs[0]), by_instructions)


def _on_a_real_board(compiled: Compiled, board: Board, port: str, folder: Path, progress: Progress) -> Round:
    """Flash it for each round."""
    progress("build the firmware")
    create_project(archive_of(compiled), board, folder)
    firmware = firmware_of(build_project(folder, observe=True))
    progress("flash")
    flash(board, firmware, port)
    progress("measure")
    types = tensor_types(compiled.model.signature.inputs)
    sample = [ramp(tensor) for tensor in types]
    with connect(board, firmware, identity(compiled), port) as session:
        times = layer_times(session, sample)
        outputs = session.run({tensor.name: value for tensor, value in zip(types, sample, strict=True)})
    return _round(compiled, times, {}, list(outputs.values()), by_instructions=True)


def _round(
    compiled: Compiled,
    times: Sequence[LayerTime],
    cycles: Mapping[int, int],
    outputs: list[NDArray[Any]],
    by_instructions: bool,
) -> Round:
    """In estimated cycles, or instructions where the board counts those alone, else in time; and what accelerators
    took."""
    counted = all(time.instructions is not None for time in times)
    estimated = not by_instructions and all(time.cycles_estimated is not None for time in times)

    def together(of: Callable[[LayerTime], int]) -> dict[int, int]:
        took = {time.layer: of(time) for time in times}
        return {n: took.get(n, 0) + cycles.get(n, 0) for n in (layer.index for layer in compiled.program.layers)}

    instructions = together(lambda time: time.instructions or 0) if counted else {}
    if estimated:
        costs = together(lambda time: time.cycles_estimated or 0)
        return Round(costs, sum(costs.values()), CYCLES, outputs, instructions)
    costs = instructions or together(_nanoseconds)
    return Round(costs, sum(costs.values()), INSTRUCTIONS if counted else NANOSECONDS, outputs)


def _nanoseconds(time: LayerTime) -> int:
    if time.seconds is None:
        raise DeviceError(f"the board tells neither instructions nor time of layer {time.name}: nothing to tune by")
    return round(time.seconds * 1e9)
