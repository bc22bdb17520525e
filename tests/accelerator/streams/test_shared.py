"""A bus that is shared: what the planner jumps over, cycle by cycle as rules on paper say it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from uaccel.accelerator.machine import BusySpan
from uaccel.accelerator.streams.bursts import Reads
from uaccel.accelerator.streams.commands import Synchronised
from uaccel.accelerator.streams.machine import Code
from uaccel.accelerator.streams.timeline import timeline
from uaccel.errors import InternalError
from uaccel.streams import ENGINES, Bus, Command, Dma, Machine, Memory, Outside, Results, Tokens, Unpacker

ANSWERING = 3
MANY = 40
"""Bursts, where each of two loads is a few."""
BUSES = (
    Bus(8, 4, Outside(4, 0), Outside(20, 7)),
    Bus(2, 1, Outside(0, 0), Outside(3, 3)),
    Bus(4, 16, Outside(3, 0), Outside(3, 0), under_way=3, fetched=2, room=5, held=1, gathered=2),
    Bus(2, 8, Outside(3, 0), Outside(6, 2), gathered=4),
    Bus(4, 2, Outside(20, 0), Outside(2, 0), gathered=2),
)


def machine(bus: Bus, start_up: int = 3) -> Machine:
    dma, memory = Dma(bus.word, start_up), Memory(64)
    return Machine(memory, memory, memory, dma, dma, dma, queue=2, transfer_size=12, sync_size=4, bus=bus)


def checked(bus: Bus) -> Machine:
    """Commands are checked for half as many cycles as they have bytes."""
    return replace(machine(bus), checking=lambda command: command.size // 2, answering=ANSWERING)


@st.composite
def streams(draw: st.DrawFn) -> Synchronised:
    commands, waits = [], []
    for number in range(draw(st.integers(1, 12))):
        engine = draw(st.sampled_from(ENGINES))
        names = ("place", "offset", "memory", "run", "runs", "planes", "stride_run", "stride_plane")
        most = (2, 90, 1, 150, 3, 2, 40, 90)
        fields = {name: draw(st.integers(name in names[3:6], value)) for name, value in zip(names, most, strict=True)}
        done = ("x", engine, fields, (), draw(st.integers(1, 60)), 4 * draw(st.integers(1, 7)), "layer", str(number))
        commands.append(Command(*done, results=draw(results()) if engine == "compute" else None))
        before = [other for other in range(number) if commands[other].engine != engine]
        waits.append(tuple(sorted(draw(st.sets(st.sampled_from(before), max_size=2))) if before else ()))
    return Synchronised(tuple(commands), (Tokens(),) * len(commands), tuple(waits))


@st.composite
def results(draw: st.DrawFn) -> Results:
    count, step = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    period = count * step + draw(st.integers(0, 3))
    return Results(draw(st.integers(0, 1)), draw(st.integers(1, 9)), period, count, step, draw(st.integers(0, 2)))


@dataclass
class Asked:
    """A burst, from when on it was asked for: words that are left, when the next one is offered, and when a load for
    the same memory has to wait."""

    user: str
    memory: int
    word: int
    left: int
    since: int
    offered: int = -1
    blocked: frozenset[int] = frozenset()
    ends: bool = False


@dataclass
class Ticks:
    """A cycle at a time, as the machine's registers see it."""

    machine: Machine
    bus: Bus
    stream: Synchronised
    begun: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=lambda: {engine: [] for engine in ENGINES})
    runs: list[tuple[int, int]] = field(default_factory=list)
    loads_since: int = 0
    under_way: int = 0
    vector: int = 0
    whole_vectors: list[frozenset[int]] = field(default_factory=list)
    coming: list[Asked] = field(default_factory=list)
    last: int = -1
    given: dict[int, tuple[int, int]] = field(default_factory=dict)
    fifo: list[int] = field(default_factory=list)
    fetched: int = 0
    room: int = 0
    steps: int = 0
    open_since: int = 0
    whole: bool = False
    following: int = 0
    judged: int = -1
    completed: frozenset[int] | None = None
    full: bool = False

    def working(self, engine: str) -> int | None:
        return next((n for n in self.begun if n not in self.ended and self.stream.commands[n].engine == engine), None)

    def end(self, now: int) -> None:
        for engine in ENGINES:
            number = self.working(engine)
            if number is not None and self.ends.get(engine) == now:
                self.ended[number] = now

    def dispatch(self, now: int) -> bool:
        if self.following == len(self.stream.commands):
            return False
        command = self.stream.commands[self.following]
        if self.judged < 0:
            if not self.whole:
                return False
            self.judged, self.open_since = now + command.size // 2, now + 1
            self.whole, self.steps = False, 0
            return True
        if now < self.judged or len(self.waiting[command.engine]) == self.machine.queue:
            return False
        self.waiting[command.engine].append(self.following)
        self.following += 1
        self.judged = -1
        return True

    def start(self, now: int) -> bool:
        for engine in ENGINES:
            if self.waiting[engine] and self.working(engine) is None:
                number = self.waiting[engine][0]
                if all(other in self.ended for other in self.stream.waits[number]):
                    self.waiting[engine].pop(0)
                    self.begun[number] = now
                    self.begin(engine, self.stream.commands[number], now)
                    return True
        return False

    def begin(self, engine: str, command: Command, now: int) -> None:
        if engine == "compute":
            self.ends[engine] = now + command.cycles
            return
        runs, since = list(self.bus.runs(command.fields)), now + self.machine.load.start_up
        if engine == "load":
            self.runs, self.loads_since, self.ends[engine] = runs, since, -1
        else:
            words = sum(count for _, count in runs) * (1 + self.bus.ram.further)
            self.ends[engine] = since + self.bus.ram.first + words + ANSWERING

    def ask(self, now: int) -> None:
        """One burst: for fetching where there is room, else for a load of which few words are missing."""
        all_words = -(-sum(command.size for command in self.stream.commands) // self.bus.word)
        if now >= 3 and self.fetched < all_words and self.bus.room - self.room >= self.bus.fetched:
            words = min(self.bus.fetched, all_words - self.fetched)
            self.add(Asked("fetch", 1, 10**9 + self.fetched, words, now))
            self.fetched += words
            self.room += words
        elif self.runs and now >= self.loads_since and self.under_way < self.bus.under_way:
            number = self.working("load")
            assert number is not None
            fields, (word, left) = self.stream.commands[number].fields, self.runs.pop(0)
            words = min(left, self.bus.burst)
            self.under_way += words
            self.runs = [(word + words, left - words)] * (left > words) + self.runs
            burst = Asked("load", int(fields["place"] == 0), word, words, now, ends=words == left)
            burst.blocked = self.blocked(fields["memory"])
            self.add(burst)

    def add(self, asked: Asked) -> None:
        self.coming.append(asked)
        if len(self.coming) == 1:
            self.at_the_front(asked.since)

    def blocked(self, memory: int) -> frozenset[int]:
        """When results are written of what computes now."""
        number = self.working("compute")
        found = None if number is None else self.stream.commands[number].results
        if found is None or found.memory != memory:
            return frozenset()
        ends = self.ends["compute"] - found.behind
        span = (found.groups - 1) * found.period + (found.members - 1) * found.step
        each = (g * found.period + c * found.step for g in range(found.groups) for c in range(found.members))
        return frozenset(ends - span + since for since in each)

    def at_the_front(self, now: int) -> None:
        """When its first word is offered, where others stand before it no more."""
        burst = self.coming[0]
        memory = self.bus.constants if burst.memory else self.bus.ram
        if memory.further == 0:
            burst.offered = max(burst.since + memory.first, self.last + 1)
            return
        behind, gave = self.given.get(burst.memory, (-1, -(10**6)))
        wait = memory.further if behind == burst.word else memory.first
        burst.offered = max(max(now, self.last) + wait, gave + wait + 1)

    def word(self, now: int) -> None:
        if not self.coming or now < self.coming[0].offered:
            return
        burst = self.coming[0]
        memory = self.bus.constants if burst.memory else self.bus.ram
        if self.given.get(burst.memory, (0, -1))[1] != burst.offered or self.given[burst.memory][0] != burst.word + 1:
            self.given[burst.memory] = (burst.word + 1, burst.offered)
        if burst.user == "load" and self.full:
            return
        self.last = now
        if burst.user == "load":
            self.under_way -= 1
            self.vector += 1
            if self.vector == self.bus.gathered or (burst.left == 1 and burst.ends):
                self.vector = 0
                self.completed = burst.blocked
        else:
            self.fifo.append(now + self.bus.held)
        burst.word += 1
        burst.left -= 1
        burst.offered = max(burst.offered + 1 + memory.further, now + 1)
        if not burst.left:
            self.coming.pop(0)
            if self.coming:
                self.at_the_front(self.coming[0].since)

    def write(self, now: int) -> None:
        """The vector that waits, or one that was whole before this cycle; two that are leave no room for words."""
        self.completed = None
        if self.whole_vectors and now not in self.whole_vectors[0]:
            self.whole_vectors.pop(0)
            if not (self.whole_vectors or self.under_way or self.runs):
                self.ends["load"] = now + 1
        self.full = len(self.whole_vectors) == 2

    def put_together(self, now: int) -> None:
        """A step of the command that comes next; words of the bus hold one or several of them."""
        if self.whole or now < self.open_since or not self.fifo or self.fifo[0] > now:
            return
        commands, step = self.stream.commands, min(4, self.bus.word)
        number = self.following + (self.judged >= 0)
        if number == len(commands):
            return
        self.steps += 1
        size = self.steps * step
        done = sum(command.size for command in commands[:number]) + size
        self.whole = size == commands[number].size
        if done % self.bus.word == 0 or (self.whole and number + 1 == len(commands)):
            self.fifo.pop(0)
            self.popped = True

    def play(self) -> list[BusySpan]:
        for now in range(200_000):
            self.end(now)
            while self.dispatch(now) or self.start(now):
                pass
            if len(self.ended) == len(self.stream.commands):
                return [BusySpan(self.begun[number], self.ended[number]) for number in range(len(self.ended))]
            self.popped = False
            self.write(now)
            self.ask(now)
            self.word(now)
            self.whole_vectors += [] if self.completed is None else [self.completed]
            self.put_together(now)
            self.room -= self.popped
        raise AssertionError("it takes for ever")


FIELDS = dict.fromkeys(("place", "memory", "runs", "planes"), 1) | dict.fromkeys(
    ("offset", "stride_run", "stride_plane"), 0
)
KEPT_WAITING = Synchronised(
    (
        Command("x", "compute", {}, (), 90, 4, "layer", "0", results=Results(1, 60, behind=2)),
        Command("x", "load", FIELDS | {"run": 150}, (), 0, 4, "layer", "1"),
    ),
    (Tokens(),) * 2,
    ((), ()),
)
"""Results of many cycles, while words for the same memory come: only two vectors have room."""

ALIKE = FIELDS | {"offset": 3, "run": 5, "runs": 30, "planes": 2, "stride_run": 16, "stride_plane": 500}
PASSED_OVER = Synchronised(
    (
        Command("x", "load", ALIKE, (), 0, 12, "layer", "0"),
        *(Command("x", "compute", {}, (), 40, 28, "layer", str(number)) for number in range(1, 5)),
        Command("x", "load", ALIKE | {"place": 0, "stride_run": 8}, (), 0, 12, "layer", "5"),
        Command("x", "store", ALIKE, (), 0, 12, "layer", "6"),
    ),
    (Tokens(),) * 7,
    ((), (), (), (), (), (), (0,)),
)
"""Many short runs, which the planner passes over while nothing else happens."""


@pytest.mark.parametrize("bus", BUSES)
@settings(max_examples=60, deadline=None)
@example(stream=KEPT_WAITING)
@example(stream=PASSED_OVER)
@given(stream=streams())
def test_the_planner_sees_what_passes_cycle_by_cycle(bus: Bus, stream: Synchronised) -> None:
    try:
        predicted = timeline(checked(bus), stream)
    except InternalError:
        return  # a queue is full of what waits for a command behind it
    spans = Ticks(checked(bus), bus, stream).play()
    assert list(predicted.spans) == spans
    assert predicted.total == max(span.end for span in spans)
    assert sum(predicted.busy.values()) == sum(span.end - span.begin for span in spans)


@pytest.mark.parametrize(
    ("run", "ends", "long", "end"),
    [
        (8, (2,), {}, 60),  # both bytes in cycle 58, in the memory behind 59
        (8, (50,), {}, 84),  # two a cycle from 58 on
        (8, (33,), {}, 76),  # the 33rd is another block's
        (8, (2,), {0: 3}, 63),  # ones go alone before it
        (8, (4,), {1: 1}, 63),  # the second byte waits, and the third goes with it
        (8, (35,), {31: 1}, 79),  # ones go alone before the 32nd, which the next block's first does not go with
        (16, (60, 62), {}, 90),  # the second word comes at 65: two blocks take 16 and 15 cycles
        (24, (60, 62, 64), {}, 92),  # the third one is offered at 73, and taken at 89: the 61st byte has gone
        (24, (60, 66, 68), {}, 93),  # at 89, too: the second word's others may still wait
        (32, (60, 62, 64, 66), {}, 94),  # the next one at 91, with the 63rd
    ],
)
def test_unpacking_may_take_longer_than_the_bus(
    run: int, ends: tuple[int, ...], long: dict[int, int], end: int
) -> None:
    """Of 12 bytes that are fetched the last four come at 3 + 20 + 8, and are a command 3 cycles later. The load asks at
    37 and has its word at 57."""
    with_unpacker = replace(machine(BUSES[0]), unpacker=Unpacker(2, 2))
    names = ("place", "offset", "memory", "runs", "planes", "stride_run", "stride_plane")
    fields = dict(zip(names, (0, 0, 1, 1, 1, 0, 0), strict=True)) | {"run": run}
    code = Code(run, ends, max(b - a for a, b in zip((0, *ends), ends, strict=False)), long)
    load = Command("load", "load", fields, (), 0, 12, "layer", "", 0, code)
    assert timeline(with_unpacker, Synchronised((load,), (Tokens(),), ((),))).spans == (BusySpan(34, end),)


def test_a_memory_waits_no_less_for_a_first_word() -> None:
    with pytest.raises(ValueError, match=r"^a memory waits 1 cycles for a first word and 2 for a further one; wanted "):
        Outside(1, 2)


def test_a_slow_memory_is_what_a_layer_is_planned_for() -> None:
    """Constants take as long as the flash does, alone on the bus; what comes of RAM as long as the bus does."""
    bus = BUSES[0]
    assert machine(bus).constants.cycles(64) == 3 + 20 - 7 + 64
    assert machine(bus).load.cycles(64) == 3 + 8


def test_a_load_that_nothing_keeps_waiting_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks have hundreds of thousands of words, and a planner plays many plans."""
    ask, asked = Reads.ask, itertools.count()
    monkeypatch.setattr(Reads, "ask", lambda *given: ask(*given) if next(asked) < MANY else pytest.fail("word by word"))
    names = ("place", "offset", "memory", "runs", "planes", "stride_run", "stride_plane")
    fields = dict(zip(names, (0, 0, 1, 1, 1, 0, 0), strict=True)) | {"run": 100_000}
    loads = tuple(Command("load", "load", fields, (), 0, 12, "layer", str(number)) for number in range(2))
    for bus in BUSES[:1] + BUSES[3:]:
        timeline(checked(bus), Synchronised(loads, (Tokens(),) * 2, ((), ())))
