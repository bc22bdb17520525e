"""A queue for each engine, the tokens between them, and which command starts."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory

from npu_rtl.numbers import COMMANDS, ENGINES, Machine

KEPT: Final = 4096
"""Tokens of a FIFO."""
NOWHERE: Final = 4
NEIGHBOURS: Final = ((NOWHERE, 1, NOWHERE, 0), (0, 3, 1, 2), (2, NOWHERE, 3, NOWHERE))
"""Of each engine the FIFO that it waits for before and behind it, and that it pushes to."""


class Queues:
    """``put`` for a cycle, where the engine's queue is not ``full``. An engine ``starts`` with its command of
    ``commands`` and is ``active`` until it says that it is ``done``. ``stop`` forgets what has not started."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self.put, self.engine, self.stop, self.begin = Signal(), Signal(2), Signal(), Signal()
        self.given = [Signal(layout, name=f"given{i}") for i, layout in enumerate(COMMANDS)]
        self.commands = [Signal(layout, name=f"command{i}") for i, layout in enumerate(COMMANDS)]
        self.full, self.starts, self.active = Signal(ENGINES), Signal(ENGINES), Signal(ENGINES)
        self.done, self.overflows = Signal(ENGINES), Signal(ENGINES)
        self.works = Signal(ENGINES)
        """Active, or taking its command."""
        self.empty, self.rests = Signal(), Signal()
        """``rests``: nothing works, and nothing can start."""
        self.oldest = Signal(32)
        self._tokens = [Signal(range(KEPT + 1), name=f"tokens{i}") for i in range(NOWHERE)]
        self._takes = [[C(0)] for _ in range(NOWHERE)]
        self._pushes = [[C(0)] for _ in range(NOWHERE)]
        self._there, self._free = Signal(ENGINES), Signal(ENGINES)
        self._heads = [self._queue(machine.queue, i) for i in range(ENGINES)]
        m.d.comb += [self.empty.eq(self._there == 0), self.rests.eq((self._free | self.active | self.starts) == 0)]
        found: Any = C(0xFFFFFFFF, 32)
        for there, head in zip(self._there, self._heads, strict=True):
            found = Mux(there & (head.index < found), head.index, found)
        m.d.comb += self.oldest.eq(found)
        for tokens, takes, pushes in zip(self._tokens, self._takes, self._pushes, strict=True):
            m.d.sync += tokens.eq(Mux(self.begin, 0, tokens + sum(pushes[1:], C(0)) - sum(takes[1:], C(0))))

    def _queue(self, depth: int, engine: int) -> Any:
        m = self.module
        first, last = Signal(range(depth), name=f"first{engine}"), Signal(range(depth), name=f"last{engine}")
        count = Signal(range(depth + 1), name=f"count{engine}")
        layout = COMMANDS[engine]
        puts = Signal(name=f"puts{engine}")
        memory = Memory(shape=layout, depth=depth, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.submodules[f"queue{engine}"] = memory
        m.d.comb += [
            puts.eq(self.put & (self.engine == engine)),
            write.addr.eq(last),
            write.data.eq(self.given[engine]),
            write.en.eq(puts),
            read.addr.eq(first),
            self._there[engine].eq(count != 0),
            self.full[engine].eq(count == depth),
        ]
        goes = Signal(name=f"goes{engine}")
        m.d.comb += self.works[engine].eq(self.active[engine] | goes)
        m.d.comb += [goes.eq(self._free[engine] & ~self.stop), self._free[engine].eq(self._can(engine, read.data))]
        m.d.sync += [count.eq(count + puts - goes), self.starts[engine].eq(goes)]
        with m.If(puts):
            m.d.sync += last.eq(Mux(last == depth - 1, 0, last + 1))
        with m.If(goes):
            m.d.sync += [first.eq(Mux(first == depth - 1, 0, first + 1)), self.commands[engine].eq(read.data)]
            m.d.sync += self.active[engine].eq(1)
        with m.If(self.done[engine]):
            m.d.sync += self.active[engine].eq(0)
        with m.If(self.stop):
            m.d.sync += [count.eq(0), first.eq(0), last.eq(0)]
        self._exchange(engine, goes, read.data)
        return read.data

    def _can(self, engine: int, head: Any) -> Any:
        free = self._there[engine] & ~self.active[engine]
        for bit, fifo in zip((8, 9), NEIGHBOURS[engine][:2], strict=True):
            if fifo != NOWHERE:
                free = free & (~head.words[bit] | (self._tokens[fifo] != 0))
        return free

    def _exchange(self, engine: int, goes: Any, head: Any) -> None:
        """A command takes its tokens when it starts, and gives some when it ends."""
        overflows = []
        words = self.commands[engine].words
        for bit, fifo in enumerate(NEIGHBOURS[engine], 8):
            if fifo == NOWHERE:
                continue
            if bit < 10:
                self._takes[fifo].append(goes & head.words[bit])
            else:
                full = self._tokens[fifo] == KEPT
                self._pushes[fifo].append(self.done[engine] & words[bit] & ~full)
                overflows.append(self.done[engine] & words[bit] & full)
        self.module.d.comb += self.overflows[engine].eq(Cat(*overflows).any())
