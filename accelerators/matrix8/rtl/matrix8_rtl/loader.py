"""Loads and fills: words from memory, or of one value, are turned so that each byte meets its lane."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array as Choice
from amaranth.hdl import Cat, Module, Mux, Signal, signed

from matrix8_rtl.bus import Addresses
from matrix8_rtl.memories import Memories, rotated
from matrix8_rtl.numbers import BUS, LANES, LOAD_COMMAND, NONE


class Loader:
    """``start`` for a cycle, with the command on ``command`` until ``done``."""

    def __init__(self, memories: Memories) -> None:
        self.module = m = Module()
        self.command = Signal(LOAD_COMMAND)
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(3)
        self._left = Signal(15)
        self.addresses = Addresses("ar")
        self.valid, self.ready = Signal(name="m_rvalid"), Signal(name="m_rready")
        self.data, self.response = Signal(64, name="m_rdata"), Signal(2, name="m_rresp")
        self.last = Signal(name="m_rlast")
        c, words = self.command, self.addresses
        m.submodules.addresses = words.module
        m.d.comb += [
            words.start.eq(self.start & ~c.fill & (c.bytes != 0)),
            words.first.eq(c.address),
            words.stride.eq(c.stride),
            words.rows.eq(c.rows),
            words.bytes.eq(c.bytes),
            self.done.eq(self.active & (self._left == 0)),
        ]
        self._rows(memories)

    @property
    def ports(self) -> list[Any]:
        return [*self.addresses.ports, self.valid, self.ready, self.data, self.response, self.last]

    def _rows(self, memories: Memories) -> None:
        """``at`` is the number in its row of the word's first byte, below 0 where the row begins inside the word."""
        m, c, left = self.module, self.command, self._left
        at, to, from_, value = Signal(signed(17)), Signal(15), Signal(3), Signal(64)
        goes, ends, following = Signal(), Signal(), Signal(3)
        m.d.comb += [
            self.ready.eq(self.active & ~c.fill),
            goes.eq(self.active & (left != 0) & (c.fill | self.valid)),
            ends.eq(at + LANES >= c.bytes),
            following.eq(from_ + c.stride[:3]),
            value.eq(Mux(c.fill, c.value.replicate(LANES), self.data)),
        ]
        first = Mux(c.fill, c.offset[:3], c.address[:3])
        with m.If(self.start):
            m.d.sync += [at.eq(0 - first), from_.eq(first)]
            m.d.sync += [to.eq(c.offset), left.eq(Mux(c.bytes == 0, 0, c.rows)), self.active.eq(1), self.error.eq(NONE)]
        with m.Elif(goes):
            m.d.sync += at.eq(at + LANES)
            with m.If(ends):
                m.d.sync += [left.eq(left - 1), to.eq(to + c.pitch), from_.eq(following), at.eq(0 - following)]
            with m.If(~c.fill & (self.response != 0)):
                m.d.sync += self.error.eq(BUS)
        with m.Elif(self.done):
            m.d.sync += self.active.eq(0)
        self._write(memories, goes, at, to, value)

    def _write(self, memories: Memories, goes: Any, at: Any, to: Any, value: Any) -> None:
        m, c = self.module, self.command
        base, turn, mask = Signal(signed(17)), Signal(3), Signal(LANES)
        m.d.comb += [base.eq(to + at), turn.eq(base[:3])]
        inside = [(at + i >= 0) & (at + i < c.bytes) for i in range(LANES)]
        m.d.comb += mask.eq(Cat(*inside))
        turned = Signal(LANES)
        back = Signal(3)
        m.d.comb += [back.eq(0 - turn), turned.eq(Cat(mask, mask).bit_select(back, LANES))]
        m.d.sync += [
            memories.memory.eq(c.memory),
            memories.word.eq(base[3:14]),
            memories.carries.eq(Choice([(1 << i) - 1 for i in range(LANES)])[turn]),
            memories.enable.eq(Mux(goes, turned, 0)),
            memories.bytes.eq(rotated(value, back)),
        ]
