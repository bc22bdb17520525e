"""Tunes a model: measures the promising kernels of each layer on the board, and records what they take.

A layer's cost hardly depends on which kernels the others have, and hooks tell the cost of each layer apart. So one
firmware measures one candidate of every layer at once. Firmware number n has the kernel of rank n at each site, by
estimate; where fewer are worth measuring it has the best. So there are as many
firmwares as the layer with the most candidates has of them, and one more with the kernels that won.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from uaccel.board import Board
from uaccel.errors import DeviceError, InternalError, UaccelError, VerificationError
from uaccel.kernels import Choice, Estimated, RankedSelector, Records, RecordsSelector
from uaccel.kernels.choice import CYCLES, INSTRUCTIONS, Selection, target_of
from uaccel.lower.program import Layer
from uaccel.pipeline import Compiled, Progress
from uaccel.runner.compiled import pack_compiled
from uaccel.runner.firmware import Firmware
from uaccel.runner.layer_costs import LayerCosts, Spent, emulated, measure, measured_before
from uaccel.runner.sweep.pool import WorkerPool
from uaccel.util.cache import Cache
from uaccel.util.favour import Favour

# Who measures firmwares: this process one after the other, or several processes at once.

_BY_STATUS: Final[dict[int, type[UaccelError]]] = {
    kind.exit_status: kind for kind in (VerificationError, DeviceError, InternalError)
}


@dataclass(frozen=True)
class Candidate:
    """Holds a firmware to measure. ``number`` is the caller's; ``progress`` is told what this process does."""

    number: int
    firmware: Firmware
    board: Board
    port: str
    cache: Cache | None
    progress: Progress


# Yields the costs of candidates by number as they come. The next candidate is asked for when there is time for it; what
# is not measured by so many seconds of the monotonic clock is left out.
Measure = Callable[[Iterator[Candidate], "float | None"], Iterator[tuple[int, LayerCosts]]]


@contextmanager
def workers(board: Board, port: str, jobs: int) -> Iterator[Measure]:
    """Gives what measures: several processes for an emulated board, else this one.

    A real board has one user at a time, and times of this computer are worth nothing beside other work."""
    if jobs < 2 or not emulated(board, port):
        yield _one_by_one
        return
    with WorkerPool(_work, jobs) as pool:
        yield partial(_at_once, pool)


def _one_by_one(candidates: Iterator[Candidate], until: float | None) -> Iterator[tuple[int, LayerCosts]]:
    while until is None or time.monotonic() < until:
        one = next(candidates, None)
        if one is None:
            return
        yield one.number, measure(one.firmware, one.board, one.progress, one.port, one.cache)


def _at_once(
    pool: WorkerPool, candidates: Iterator[Candidate], until: float | None
) -> Iterator[tuple[int, LayerCosts]]:
    for outcome in pool.run(map(_item, candidates), until):
        if outcome.failure:
            raise UaccelError(f"measuring failed: {outcome.failure}; {_last_line(outcome.log)}")
        if "error" in outcome.result:
            told = outcome.result
            raise _BY_STATUS.get(told["exit_status"], UaccelError)(told["error"])
        yield outcome.item[0], LayerCosts.from_json(outcome.result["taken"])


def _item(one: Candidate) -> tuple[Any, ...]:
    """Returns a candidate as plain data for another process."""
    one.progress("build and measure")
    return one.number, one.firmware.to_json(), dict(one.firmware.files()), one.board, one.port, one.cache


def _work(item: tuple[Any, ...]) -> dict[str, Any]:
    """Measures a candidate in a process of its own, which compiles no models; errors are returned as data."""
    _, data, files, board, port, cache = item
    firmware = Firmware.from_json(data, lambda: files)
    try:
        return {"taken": measure(firmware, board, lambda _step: None, port, cache).to_json()}
    except UaccelError as error:
        return {"error": str(error), "exit_status": error.exit_status}


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return f"its last words: {lines[-1]}" if lines else "it said nothing; try it with --jobs 1"


# The costs of one firmware, in the unit of the records.

NANOSECONDS: Final = "nanoseconds"
OWN_CYCLES: Final = "cycles"  # As the core counts them.


@dataclass(frozen=True)
class Round:
    """Holds what each layer took, by index, in one unit."""

    costs: Mapping[int, int]
    unit: str
    instructions: Mapping[int, int] = field(default_factory=dict)  # Known in addition if the costs are cycles.

    @property
    def total(self) -> int:
        return sum(self.costs.values())

    def record(self, records: Records, choice: Choice, layer: int) -> Records:
        """Returns the records with what the picked option took in this layer."""
        label = choice.options[choice.picked]
        counted = {label: self.instructions[layer]} if layer in self.instructions else None
        return records.with_site(choice.site, {label: self.costs[layer]}, counted)


def round_of(indices: Sequence[int], taken: LayerCosts, *, by_instructions: bool) -> Round:
    """Returns the costs of these layers, in the best unit that is known for all of them.

    That is the core's own cycles, else estimated ones, else instructions, else time. Cycles of accelerators are added,
    one as an instruction or nanosecond, unless the core's own count includes them. ``by_instructions``: the
    records count instructions. Layers that the firmware does not tell of, such as views, take nothing."""
    spent = {one.layer: one for one in taken.layers}
    nothing = Spent(-1, "", 0, 0, 0)
    layers = {index: spent.get(index, nothing) for index in indices}
    counted = {n: one.instructions + one.device for n, one in layers.items() if one.instructions is not None}
    cycles = {n: one.cycles + (0 if one.own else one.device) for n, one in layers.items() if one.cycles is not None}
    if len(counted) < len(layers):
        return Round({n: _nanoseconds(one) + one.device for n, one in layers.items()}, NANOSECONDS)
    if by_instructions or len(cycles) < len(layers):
        return Round(counted, INSTRUCTIONS)
    return Round(cycles, OWN_CYCLES if any(one.own for one in layers.values()) else CYCLES, counted)


def _nanoseconds(spent: Spent) -> int:
    if spent.nanoseconds is None:
        raise DeviceError(f"the board tells neither instructions nor time of layer {spent.name}: nothing to tune by")
    return spent.nanoseconds


# The search: which firmwares are measured, and the records that come of it.

CANDIDATES: Final = 2  # How many kernels of each layer are measured: the best by estimate.
# Numbers of firmwares: that of the first ranks, and that of the records, which comes after all ranks.
AS_ESTIMATED: Final = 0
AS_MEASURED: Final = -1

# Compiles the model as the user described it, with kernels picked by a selection.
Compile = Callable[[Selection], Compiled]


@dataclass(frozen=True)
class TuneSearch:
    """Limits a search. ``candidates``: kernels of a layer, None for all. ``jobs``: emulated boards at once.

    ``minutes``: after so many no further firmware is measured, but those as estimated and as picked."""

    candidates: int | None = CANDIDATES
    minutes: float | None = None
    jobs: int = 1
    port: str = ""
    favour: Favour = Favour.balanced


@dataclass(frozen=True)
class Tuned:
    """Holds what tuning gave. ``layers``: those with a choice.

    ``before`` and ``after``: one inference, as picked without and with records. ``left_out``: sites and kernels that
    there was no time for. ``measured`` firmwares were run; the figures of ``kept`` ones were in the cache."""

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
    search: TuneSearch | None = None,
    cache: Cache | None = None,
) -> Tuned:
    """Measure what ``known`` does not tell yet, in its unit: time at a line, else cycles where they are known."""
    search = search or TuneSearch()
    with workers(board, search.port, search.jobs) as measuring:
        return _Tuning(compile_with, board, known, progress, search, cache, measuring).run()


@dataclass(frozen=True)
class _Row:
    """Names a layer of a compilation, and what was picked for it."""

    index: int
    name: str
    engine: str
    choice: Choice | None

    @property
    def same(self) -> tuple[object, ...]:
        """What must be equal for two compilations to be the same; the words of the choice do not count."""
        choice = self.choice
        picked = (choice.site, choice.options[choice.picked]) if choice is not None else ()
        return self.index, self.name, self.engine, picked


@dataclass
class _Tuning:
    """Runs one search. ``taken`` has the costs of firmwares by number; the records are made of it at the end.

    All firmwares must give the same outputs, as kernels differ in speed only: else one is wrong, and nothing is
    recorded."""

    compile_with: Compile
    board: Board
    known: Records
    progress: Progress
    search: TuneSearch
    cache: Cache | None
    measuring: Measure
    rows: dict[int, tuple[_Row, ...]] = field(default_factory=dict)  # The layers of each firmware, by number.
    taken: dict[int, LayerCosts] = field(default_factory=dict)
    measured: int = 0
    kept: int = 0
    turns: int = 1

    def run(self) -> Tuned:
        target, favour = target_of(self.board), self.search.favour
        until = None if self.search.minutes is None else time.monotonic() + 60 * self.search.minutes
        estimated = Estimated.on(target, favour=favour)
        ranked = RankedSelector(estimated, most=self.search.candidates)
        first = self._compiled(AS_ESTIMATED, Selection(target, ranked, favour))
        missing = [choice for choice in _choices(first) if not _is_known(self.known, choice, ranked)]
        self.turns = max((len(ranked.worth(choice)) for choice in missing), default=1)
        selections = {n: Selection(target, replace(ranked, number=n), favour) for n in range(self.turns)}
        self._measure(selections, {AS_ESTIMATED: first}, until)
        self._measure({AS_ESTIMATED: selections[AS_ESTIMATED]}, {AS_ESTIMATED: first})  # where no time was left for it
        records = self._records()
        last = self._after(Selection(target, RecordsSelector(records, estimated, favour), favour))
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
        """Measures firmwares that are not measured yet; what is not ``made`` is compiled when a worker is free."""
        for number, taken in self.measuring(self._candidates(selections, made), until):
            self.taken[number] = taken
            self.measured += 1
            self._named(number)("measured")

    def _candidates(self, selections: Mapping[int, Selection], made: Mapping[int, Compiled]) -> Iterator[Candidate]:
        for number in [number for number in selections if number not in self.taken]:
            compiled = made[number] if number in made else self._compiled(number, selections[number])
            firmware = pack_compiled(compiled)
            kept = self.cache if emulated(self.board, self.search.port) else None
            known = measured_before(firmware, self.board, kept)
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
        """Adds to the known records what each firmware measured, in order of rank; the first figure of a kernel stays.

        A kernel may run in several firmwares, as where fewer are worth measuring than there are ranks. Its cost depends
        a little on its neighbours: a C compiler inlines what only one layer calls. In firmware of better ranks the
        neighbours are more like those that will be picked. The result does not depend on the order of measuring.
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
        """Compiles with the records, and measures that unless a firmware with the same kernels was measured."""
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


def _is_known(records: Records, choice: Choice, ranked: RankedSelector) -> bool:
    return _costs(records, choice).keys() >= set(ranked.worth(choice))


def _require_alike(one: LayerCosts, other: LayerCosts, what: str) -> None:
    """Raises an error if outputs differ: kernels that disagree are a bug of ours or a vendor's, not a choice."""
    if one.outputs != other.outputs:
        raise VerificationError(
            f"with {what} the model gives other outputs than before: some kernel or lowering is wrong; "
            "'uaccel run --verify layers' finds it"
        )
