"""Measure the promising ways to compute each layer, several firmwares at once, and keep what was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.board import Board
from uaccel.cache import Cache
from uaccel.cpu_kernels import Choice, Estimated, Measured, Ranked, Records
from uaccel.cpu_kernels.costs import INSTRUCTIONS
from uaccel.cpu_kernels.selection import Selection, target_of
from uaccel.errors import VerificationError
from uaccel.lab.candidate import Candidate, Workers, workers
from uaccel.lab.round import Round, round_of
from uaccel.lower.program import Layer
from uaccel.pipeline import Compiled, Progress
from uaccel.running.packed import packed
from uaccel.running.taken import Taken, measured_before

CANDIDATES: Final = 2
"""Of each layer, the best by estimate."""
AS_ESTIMATED: Final = 0
AS_MEASURED: Final = -1

Compile = Callable[[Selection], Compiled]
"""The model with everything that the user said about it, by whatever picks among kernels."""


@dataclass(frozen=True)
class Search:
    """``candidates``: None measures all. ``minutes``: after so many no further firmware is measured but the one that
    is picked. ``jobs``: emulated boards at once."""

    candidates: int | None = CANDIDATES
    minutes: float | None = None
    jobs: int = 1
    port: str = ""
    favour: Favour = Favour.balanced


@dataclass(frozen=True)
class Tuned:
    """``layers``: those with a choice. ``before`` and ``after``: one inference, as picked without and with records.
    ``left_out``: sites and their kernels that there was no time for. So many firmwares were ``measured``, and the
    figures of so many ``kept`` from before."""

    records: Records
    layers: tuple[Layer, ...]
    before: Round
    after: Round
    left_out: tuple[tuple[str, str], ...] = ()
    measured: int = 0
    kept: int = 0


def tune(
    compile_with: Compile,
    board: Board,
    known: Records,
    progress: Progress,
    search: Search | None = None,
    cache: Cache | None = None,
) -> Tuned:
    """Measure what ``known`` does not tell yet, in its unit: by time at a line, else by cycles where they are known."""
    search = search or Search()
    with workers(board, search.port, search.jobs) as engine:
        return _Tuning(compile_with, board, known, progress, search, cache, engine).run()


@dataclass(frozen=True)
class _Row:
    """A layer of a compilation, and what was picked for it."""

    index: int
    name: str
    engine: str
    choice: Choice | None

    @property
    def same(self) -> tuple[object, ...]:
        """What two compilations agree in where they are the same; in whose words it was picked counts for nothing."""
        choice = self.choice
        picked = (choice.site, choice.options[choice.picked]) if choice is not None else ()
        return self.index, self.name, self.engine, picked


@dataclass
class _Tuning:
    compile_with: Compile
    board: Board
    known: Records
    progress: Progress
    search: Search
    cache: Cache | None
    engine: Workers
    rows: dict[int, tuple[_Row, ...]] = field(default_factory=dict)
    """Of the firmwares, by their rank."""
    taken: dict[int, Taken] = field(default_factory=dict)
    measured: int = 0
    kept: int = 0
    turns: int = 1

    def run(self) -> Tuned:
        target, favour = target_of(self.board), self.search.favour
        until = None if self.search.minutes is None else time.monotonic() + 60 * self.search.minutes
        estimated = Estimated.on(target, favour=favour)
        ranked = Ranked(estimated, most=self.search.candidates)
        first = self._compiled(AS_ESTIMATED, Selection(target, ranked, favour))
        missing = [choice for choice in _choices(first) if not _is_known(self.known, choice, ranked)]
        self.turns = max((len(ranked.worth(choice)) for choice in missing), default=1)
        selections = {n: Selection(target, replace(ranked, number=n), favour) for n in range(self.turns)}
        self._measure(selections, {AS_ESTIMATED: first}, until)
        self._measure({AS_ESTIMATED: selections[AS_ESTIMATED]}, {AS_ESTIMATED: first})  # where no time was left for it
        records = self._records()
        last = self._after(Selection(target, Measured(records, estimated, favour), favour))
        left = [(c.site, label) for c in missing for label in ranked.worth(c) if label not in _costs(records, c)]
        return Tuned(
            records,
            tuple(layer for layer in last.program.layers if layer.choice and len(layer.choice.options) > 1),
            self._round(AS_ESTIMATED),
            self._round(AS_MEASURED),
            tuple(dict.fromkeys(left)),
            self.measured,
            self.kept,
        )

    def _compiled(self, number: int, selection: Selection) -> Compiled:
        compiled = self.compile_with(selection)
        layers = compiled.program.layers
        self.rows[number] = tuple(_Row(one.index, one.name, one.engine, one.choice) for one in layers)
        return compiled

    def _measure(
        self, selections: Mapping[int, Selection], made: Mapping[int, Compiled], until: float | None = None
    ) -> None:
        """Those that are not measured yet. What is not ``made`` yet is compiled when somebody is free to build it."""
        for number, taken in self.engine.run(self._candidates(selections, made), until):
            self.taken[number] = taken
            self.measured += 1
            self._named(number)("measured")

    def _candidates(self, selections: Mapping[int, Selection], made: Mapping[int, Compiled]) -> Iterator[Candidate]:
        for number in [number for number in selections if number not in self.taken]:
            compiled = made[number] if number in made else self._compiled(number, selections[number])
            firmware = packed(compiled)
            known = measured_before(firmware, self.board, self.cache) if self.engine.exact else None
            if known is None:
                yield Candidate(number, firmware, self.board, self.search.port, self.cache, self._named(number))
            else:
                self.taken[number] = known
                self.kept += 1
                self._named(number)("kept from before")

    def _named(self, number: int) -> Progress:
        known = {AS_ESTIMATED: "as estimated", AS_MEASURED: "as measured"}
        what = known.get(number, f"{number} of {self.turns - 1}")
        return lambda step: self.progress(f"{what}: {step}")

    def _round(self, number: int) -> Round:
        indices = [row.index for row in self.rows[number]]
        return round_of(indices, self.taken[number], by_instructions=self.known.unit == INSTRUCTIONS)

    def _records(self) -> Records:
        """With what each firmware tells that those of better rank did not, in whatever order they were measured.

        What a kernel takes depends a little on its neighbours, as C compilers inline what one layer alone calls: in
        firmware of the better kernels these are more like those that will be picked.
        """
        records = self.known
        for number in sorted(self.taken):
            _require_alike(self.taken[AS_ESTIMATED], self.taken[number], f"candidates number {number + 1}")
            took, told = self._round(number), records
            for row in self.rows[number]:
                choice = row.choice
                if choice is not None and choice.options[choice.picked] not in _costs(told, choice):
                    records = took.record(records, choice, row.index)
            records = replace(records, unit=took.unit)
        return records

    def _after(self, chosen: Selection) -> Compiled:
        """Measured, unless the same was measured already."""
        compiled = self._compiled(AS_MEASURED, chosen)
        same = [number for number in sorted(self.taken) if self._same(number, AS_MEASURED)]
        if same:
            self.taken[AS_MEASURED] = self.taken[same[0]]
        else:
            self._measure({AS_MEASURED: chosen}, {AS_MEASURED: compiled})
        _require_alike(self.taken[AS_ESTIMATED], self.taken[AS_MEASURED], "the fastest kernels")
        return compiled

    def _same(self, one: int, other: int) -> bool:
        return [row.same for row in self.rows[one]] == [row.same for row in self.rows[other]]


def _choices(compiled: Compiled) -> list[Choice]:
    choices = (layer.choice for layer in compiled.program.layers)
    return [choice for choice in choices if choice is not None and len(choice.options) > 1]


def _costs(records: Records, choice: Choice) -> Mapping[str, int]:
    return records.sites.get(choice.site, {})


def _is_known(records: Records, choice: Choice, ranked: Ranked) -> bool:
    return _costs(records, choice).keys() >= set(ranked.worth(choice))


def _require_alike(one: Taken, other: Taken, what: str) -> None:
    """Kernels that disagree are a bug of ours, or of a vendor's; never something to choose from."""
    if one.outputs != other.outputs:
        raise VerificationError(
            f"with {what} the model gives other outputs than before: some kernel or lowering is wrong; "
            "'uaccel run --verify layers' finds it"
        )
