"""Tokens alone keep every command behind those it must wait for; times come out as on a machine that knows no more."""

from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uaccel.accelerator.machine import BusySpan
from uaccel.accelerator.streams.commands import Synchronised, Synchroniser, with_tokens
from uaccel.accelerator.streams.machine import Access
from uaccel.accelerator.streams.timeline import timeline
from uaccel.streams import ENGINES, Command, Dma, Machine, Memory, Tokens

MACHINE = Machine(
    Memory(64), Memory(64), Memory(64), Dma(8, 0), Dma(8, 0), Dma(4, 7), queue=3, transfer_size=4, sync_size=4
)


@st.composite
def commands(draw: st.DrawFn) -> list[Command]:
    made = []
    for number in range(draw(st.integers(1, 30))):
        accesses = []
        for _ in range(draw(st.integers(0, 3))):
            begin = draw(st.integers(0, 12))
            end = begin + draw(st.integers(1, 5))
            accesses.append(Access(draw(st.sampled_from(["a", "b"])), begin, end, draw(st.booleans())))
        engine = draw(st.sampled_from(ENGINES))
        cycles, size = draw(st.integers(1, 20)), 4 * draw(st.integers(1, 5))
        made.append(Command("x", engine, {}, tuple(accesses), cycles, size, "layer", str(number)))
    return made


def synchronised(made: list[Command]) -> Synchronised:
    relays = Synchroniser(lambda command: replace(command, kind="sync", engine="compute", accesses=(), cycles=1))
    return with_tokens([one for command in made for one in relays.take(command)])


def played(stream: Synchronised) -> list[BusySpan]:
    """As the machine does it: queues, and tokens that only count."""
    queues: dict[str, deque[tuple[int, int]]] = {engine: deque() for engine in ENGINES}
    tokens: dict[tuple[str, str], deque[int]] = {}
    free, starts = dict.fromkeys(ENGINES, 0), {engine: [0] * MACHINE.queue for engine in ENGINES}
    given_to = dict.fromkeys(ENGINES, 0)
    spans: dict[int, BusySpan] = {}
    fetched, following = MACHINE.fetch.start_up, 0
    while len(spans) < len(stream.commands):
        while following < len(stream.commands):
            command = stream.commands[following]
            if len(queues[command.engine]) == MACHINE.queue:
                break
            room = starts[command.engine][given_to[command.engine]]
            given_to[command.engine] += 1
            fetched = max(fetched + -(-command.size // MACHINE.fetch.bytes_per_cycle), room)
            queues[command.engine].append((following, fetched))
            following += 1
        ready = []
        for order, engine in enumerate(ENGINES):
            if queues[engine]:
                number, since = queues[engine][0]
                waits = [tokens.setdefault(pair, deque()) for pair in neighbours(engine, stream.tokens[number], True)]
                if all(waits):
                    ready.append((max([since, free[engine], *(wait[0] for wait in waits)]), order, engine, waits))
        assert ready, "deadlock"
        begin, _, engine, waits = min(ready, key=lambda some: some[:2])
        number, _ = queues[engine].popleft()
        for wait in waits:
            wait.popleft()
        starts[engine].append(begin)
        free[engine] = begin + stream.commands[number].cycles
        spans[number] = BusySpan(begin, free[engine])
        for pair in neighbours(engine, stream.tokens[number], False):
            tokens.setdefault(pair, deque()).append(free[engine])
    return [spans[number] for number in range(len(stream.commands))]


def neighbours(engine: str, tokens: Tokens, waits: bool) -> list[tuple[str, str]]:
    """The pairs (giver, taker) of the tokens that a command waits for or pushes."""
    at, pairs = ENGINES.index(engine), []
    flags = (tokens.wait_previous, tokens.wait_next) if waits else (tokens.push_previous, tokens.push_next)
    for flag, other in zip(flags, (at - 1, at + 1), strict=True):
        if flag:
            assert 0 <= other < len(ENGINES), f"{engine} has no such neighbour"
            pairs.append((ENGINES[other], engine) if waits else (engine, ENGINES[other]))
    return pairs


@pytest.mark.slow
@settings(max_examples=200)
@given(commands())
def test_conflicting_commands_keep_their_order(made: list[Command]) -> None:
    stream = synchronised(made)
    spans = played(stream)
    for late, second in enumerate(stream.commands):
        for early, first in enumerate(stream.commands[:late]):
            if any(conflict(a, b) for a in first.accesses for b in second.accesses):
                assert spans[early].end <= spans[late].begin, (early, late)


@pytest.mark.slow
@settings(max_examples=200)
@given(commands())
def test_the_timeline_is_what_the_machine_does(made: list[Command]) -> None:
    stream = synchronised(made)
    predicted = timeline(MACHINE, stream)
    spans = played(stream)
    assert list(predicted.spans) == spans
    assert predicted.total == max(span.end for span in spans)
    assert predicted.busy == {
        engine: sum(command.cycles for command in stream.commands if command.engine == engine) for engine in ENGINES
    }


def test_commands_that_share_nothing_wait_for_nothing() -> None:
    made = [
        Command("x", engine, {}, (Access(engine, 0, 4, True),), 10, 4, "layer", "") for engine in (*ENGINES, *ENGINES)
    ]
    assert set(synchronised(made).tokens) == {Tokens()}


@pytest.mark.parametrize(
    ("earlier", "later", "waits"),
    [
        (Access("a", 0, 4, True), Access("a", 3, 8, False), True),
        (Access("a", 4, 8, True), Access("a", 0, 5, False), True),
        (Access("a", 0, 4, False), Access("a", 3, 8, True), True),
        (Access("a", 0, 4, True), Access("a", 4, 8, True), False),
        (Access("a", 4, 8, True), Access("a", 0, 4, True), False),
        (Access("a", 0, 4, False), Access("a", 0, 4, False), False),
        (Access("a", 0, 4, True), Access("b", 0, 4, True), False),
    ],
)
def test_who_waits(earlier: Access, later: Access, waits: bool) -> None:
    """For bytes that both touch, if one of the two writes."""
    made = [
        Command("x", engine, {}, (access,), 10, 4, "layer", "")
        for engine, access in (("load", earlier), ("compute", later))
    ]
    assert synchronised(made).waits == ((), (0,) if waits else ())


def test_a_load_learns_of_a_store_from_a_computation_that_waited_for_it() -> None:
    """And where there is none, one that does nothing is put in."""
    shared = (Access("a", 0, 4, True),)
    store, load = (Command("x", engine, {}, shared, 10, 4, "layer", "") for engine in ("store", "load"))
    between = Command("x", "compute", {}, shared, 10, 4, "layer", "")
    assert [command.kind for command in synchronised([store, load]).commands] == ["x", "sync", "x"]
    assert [command.kind for command in synchronised([store, between, load]).commands] == ["x", "x", "x"]


def conflict(one: Access, other: Access) -> bool:
    overlap = one.memory == other.memory and one.begin < other.end and other.begin < one.end
    return overlap and (one.writes or other.writes)
