"""A bus that is shared: what the planner jumps over, cycle by cycle as rules on paper say it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.errors import InternalError
from uaccel.machines.timeline import Span
from uaccel.streams import ENGINES, Bus, Command, Dma, Machine, Memory, Outside, Tokens, Unpacker
from uaccel.streams.timeline import timeline
from uaccel.streams.tokens import Synchronised

CHANNELS = (("fetch", "load"), ("store",))
USERS = ("fetch", "load", "store")
ANSWERING = 3
BUSES = (Bus(8, 4, Outside(4, 0), Outside(20, 7)), Bus(2, 1, Outside(0, 0), Outside(3, 3)))


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
        names = ("place", "offset", "run", "runs", "planes", "stride_run", "stride_plane")
        most = (2, 90, 150, 3, 2, 40, 90)
        fields = {name: draw(st.integers(name in names[2:5], value)) for name, value in zip(names, most, strict=True)}
        size = 4 * draw(st.integers(1, 7))
        commands.append(Command("x", engine, fields, (), draw(st.integers(1, 60)), size, "layer", str(number)))
        before = [other for other in range(number) if commands[other].engine != engine]
        waits.append(tuple(sorted(draw(st.sets(st.sampled_from(before), max_size=2))) if before else ()))
    return Synchronised(tuple(commands), (Tokens(),) * len(commands), tuple(waits))


@dataclass
class Ticks:
    """A cycle at a time. ``bursts`` of each user: memory, first word and number of words, from when on."""

    bus: Bus
    start_up: int
    stream: Synchronised
    begun: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=lambda: {engine: [] for engine in ENGINES})
    bursts: dict[str, list[tuple[int, int, int]]] = field(default_factory=lambda: {user: [] for user in USERS})
    asks: dict[str, int] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)
    owners: list[str] = field(default_factory=lambda: ["", ""])
    busy_until: list[int] = field(default_factory=lambda: [0, 0])
    moved: dict[str, bool] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)
    fetched: int = 0
    asked: int = 0
    whole: int = 0
    judged: int = -1
    following: int = 0

    def cut(self, memory: int, base: int, begin: int, size: int) -> list[tuple[int, int, int]]:
        words = sorted({byte // self.bus.word for byte in range(begin, begin + size)})
        groups = [words[at : at + self.bus.burst] for at in range(0, len(words), self.bus.burst)]
        return [(memory, base + group[0], len(group)) for group in groups]

    def transfer(self, fields: Any) -> list[tuple[int, int, int]]:
        found = []
        for plane in range(fields["planes"]):
            for run in range(fields["runs"]):
                at = fields["offset"] + plane * fields["stride_plane"] + run * fields["stride_run"]
                found += self.cut(int(fields["place"] == 0), 1000 * fields["place"], at, fields["run"])
        return found

    def working(self, engine: str) -> int | None:
        return next((n for n in self.begun if n not in self.ended and self.stream.commands[n].engine == engine), None)

    def end(self, now: int) -> None:
        for engine in ENGINES:
            number = self.working(engine)
            if number is not None and (
                now == self.begun[number] + self.stream.commands[number].cycles
                if engine == "compute"
                else not self.bursts[engine]
                and engine not in self.owners
                and now == self.released[engine] + (ANSWERING if engine == "store" else 0)
            ):
                self.ended[number] = now

    def ask(self, now: int) -> None:
        """For the words of the next command that have not come; it takes a cycle for each of its own at least."""
        size = self.stream.commands[self.asked].size
        before = -(-self.fetched // self.bus.word) * self.bus.word
        self.fetched += size
        self.bursts["fetch"] = self.cut(1, 10**6, before, max(0, self.fetched - before))
        self.asks["fetch"] = now
        self.moved["fetch"] = before > 0
        self.whole = now + size // 4 + (0 if before else self.bus.constants.first)
        self.asked += 1

    def fetch(self, now: int) -> bool:
        commands = self.stream.commands
        if self.following == len(commands):
            return False
        command = commands[self.following]
        if self.judged < 0:
            if self.asked == self.following:
                self.ask(now)
            if self.bursts["fetch"] or "fetch" in self.owners or now < self.whole:
                return False
            self.judged = now + command.size // 2
            if self.asked < len(commands):
                self.ask(now)
            return True
        if now < self.judged or len(self.waiting[command.engine]) == 2:
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
                    if engine != "compute":
                        self.bursts[engine] = self.transfer(self.stream.commands[number].fields)
                        self.asks[engine] = now + self.start_up
                        self.moved[engine] = False
                    return True
        return False

    def grant(self, now: int, channel: int) -> None:
        asking = [user for user in CHANNELS[channel] if self.bursts[user] and self.asks[user] <= now]
        if self.owners[channel] or not asking:
            return
        self.owners[channel] = user = asking[0]
        memory, first, words = self.bursts[user].pop(0)
        waits = self.bus.constants if memory else self.bus.ram
        wait = waits.further if self.behind.get(memory) == first else waits.first
        if waits.further == 0:
            wait = 0 if self.moved[user] else max(0, self.asks[user] + waits.first - now)
        self.moved[user] = True
        self.behind[memory] = first + words
        self.busy_until[channel] = now + 1 + wait + (words - 1) * (1 + waits.further)

    def release(self, now: int) -> None:
        for channel, user in enumerate(self.owners):
            if user and now == self.busy_until[channel]:
                self.owners[channel] = ""
                self.released[user] = now

    def play(self) -> list[Span]:
        for now in range(self.start_up, 200_000):
            self.release(now)
            self.end(now)
            while self.fetch(now) or self.start(now):
                pass
            if len(self.ended) == len(self.stream.commands):
                return [Span(self.begun[number], self.ended[number]) for number in range(len(self.ended))]
            for channel in range(len(CHANNELS)):
                self.grant(now, channel)
        raise AssertionError("it takes for ever")


@pytest.mark.parametrize("bus", BUSES)
@settings(max_examples=30, deadline=None)
@given(stream=streams())
def test_the_planner_sees_what_passes_cycle_by_cycle(bus: Bus, stream: Synchronised) -> None:
    try:
        predicted = timeline(checked(bus), stream)
    except InternalError:
        return  # a queue is full of what waits for a command behind it
    spans = Ticks(bus, 3, stream).play()
    assert list(predicted.spans) == spans
    assert predicted.total == max(span.end for span in spans)
    assert sum(predicted.busy.values()) == sum(span.end - span.begin for span in spans)


def test_unpacking_may_take_longer_than_the_bus() -> None:
    """Fetching: 3 + 20 + 1 + 8. The load asks at 35 and has its word at 56. Its first bytes come 2 cycles later: of two
    the last ones, too, and of 50 the last ones after 25 cycles from 55 on."""
    with_unpacker = replace(machine(BUSES[0]), unpacker=Unpacker(2, 2))
    for size, end in ((2, 58), (50, 82)):
        names = ("place", "offset", "runs", "planes", "stride_run", "stride_plane")
        fields = dict(zip(names, (0, 0, 1, 1, 0, 0), strict=True)) | {"run": 8, "coded": 1, "pitch_run": size}
        load = Command("load", "load", fields, (), 0, 12, "layer", "")
        assert timeline(with_unpacker, Synchronised((load,), (Tokens(),), ((),))).spans == (Span(32, end),)


def test_a_memory_waits_no_less_for_a_first_word() -> None:
    with pytest.raises(ValueError, match=r"^a memory waits 1 cycles for a first word and 2 for a further one; wanted "):
        Outside(1, 2)


def test_a_slow_memory_is_what_a_layer_is_planned_for() -> None:
    """Constants take as long as the flash does, alone on the bus; what comes of RAM as long as the bus does."""
    bus = BUSES[0]
    assert machine(bus).constants.cycles(64) == 3 + 20 - 7 + 64
    assert machine(bus).load.cycles(64) == 3 + 8
