"""A queue for each engine. A command waits for all before it that touch one of its banks, in whichever queue."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.memory import Memory

from matrix8_rtl.numbers import BANKS, BYTES, COMMANDS, ENGINES

DEPTH: Final = 4
"""Commands of an engine."""
SLOTS: Final = ENGINES * DEPTH


class Queues:
    """``put`` for a cycle, where the engine's queue is not ``full``. An engine ``starts`` with the command at its head,
    until it says that it is ``done``; one that is to be dropped ends at once."""

    def __init__(self) -> None:
        self.module = m = Module()
        self.put, self.engine, self.banks = Signal(), Signal(2), Signal(len(BYTES) * BANKS)
        self.commands = [Signal(layout, name=f"put{i}") for i, layout in enumerate(COMMANDS)]
        self.full, self.empty = Signal(ENGINES), Signal()
        self.heads = [Signal(layout, name=f"head{i}") for i, layout in enumerate(COMMANDS)]
        self.drops, self.starts, self.active = Signal(ENGINES), Signal(ENGINES), Signal(ENGINES)
        self.done, self.ends = Signal(ENGINES), Signal(ENGINES)
        """``ends``: a command leaves its queue."""
        self._there = Signal(SLOTS)
        self._ended = Signal(SLOTS)
        self._banks = [Signal(len(self.banks), name=f"banks{i}") for i in range(SLOTS)]
        self._after = [Signal(SLOTS, name=f"after{i}") for i in range(SLOTS)]
        m.d.comb += self.empty.eq(self._there == 0)
        for engine in range(ENGINES):
            self._queue(engine)

    def _queue(self, engine: int) -> None:
        m = self.module
        first, last = Signal(range(DEPTH), name=f"first{engine}"), Signal(range(DEPTH), name=f"last{engine}")
        places = range(DEPTH * engine, DEPTH * (engine + 1))
        there = self._there[places.start : places.stop]
        puts = self.put & (self.engine == engine)
        memory = Memory(shape=COMMANDS[engine], depth=DEPTH, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.submodules[f"queue{engine}"] = memory
        m.d.comb += [
            write.addr.eq(last),
            write.data.eq(self.commands[engine]),
            write.en.eq(puts),
            read.addr.eq(first),
            self.heads[engine].eq(read.data),
            self.full[engine].eq(there.all()),
        ]
        free = Signal(name=f"free{engine}")
        drops = free & self.drops[engine]
        m.d.comb += [
            self.starts[engine].eq(free & ~self.drops[engine]),
            self.ends[engine].eq(self.done[engine] | drops),
        ]
        with m.If(self.ends[engine]):
            m.d.sync += [self.active[engine].eq(0), first.eq(first + 1)]
        with m.Elif(self.starts[engine]):
            m.d.sync += self.active[engine].eq(1)
        with m.If(puts):
            m.d.sync += last.eq(last + 1)
        for i, place in enumerate(places):
            here = first == i
            with m.If(here & self._there[place] & (self._after[place] == 0)):
                m.d.comb += free.eq(~self.active[engine])
            m.d.comb += self._ended[place].eq(here & self.ends[engine])
            self._slot(place, puts & (last == i))

    def _slot(self, place: int, puts: Any) -> None:
        """Of what is under way, all that shares a bank comes first."""
        m = self.module
        shares = [there & ~ended & ((banks & self.banks) != 0) for there, ended, banks in self._others()]
        with m.If(puts):
            m.d.sync += [
                self._there[place].eq(1),
                self._banks[place].eq(self.banks),
                self._after[place].eq(Cat(*shares)),
            ]
        with m.Else():
            m.d.sync += self._after[place].eq(self._after[place] & ~self._ended)
            with m.If(self._ended[place]):
                m.d.sync += self._there[place].eq(0)

    def _others(self) -> list[tuple[Any, Any, Any]]:
        return list(zip(self._there, self._ended, self._banks, strict=True))
