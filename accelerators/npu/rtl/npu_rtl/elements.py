"""Commands that take elements one by one: the addresses of ADD, LOOKUP and PACK."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from npu_rtl.memories import Memories
from npu_rtl.numbers import ADD, ADDRESS, LOOKUP, PACK, TURNED, Machine, high, lanes_below, low


class Elements:
    """``start`` for a cycle; ``active`` until all is read. ``came`` tells that a part's ``first`` operand and
    ``second`` are there, for ``at`` and ``mask``."""

    def __init__(self, machine: Machine, memories: Memories, words: Any) -> None:
        self.module = m = Module()
        self.start, self.stop, self.active = Signal(), Signal(), Signal()
        self.reads, self.read_at = Signal(2), [Signal(ADDRESS), Signal(ADDRESS)]
        self.came, self.at, self.mask = Signal(), Signal(ADDRESS), Signal(machine.width)
        self.first, self.second = Signal(8 * machine.width), Signal(8 * machine.width)
        self._machine, self._memories, self._words = machine, memories, words
        self._opcode = opcode = words[0][:8]
        adds, packs = opcode == ADD, opcode == PACK
        turned = words[0][TURNED]
        rows = Mux(adds, words[8], Mux(packs, Mux(turned, low(words[3]), high(words[3])), words[6]))
        count = Mux(adds, words[7], Mux(packs, Mux(turned, high(words[3]), low(words[3])), words[5]))
        part = Mux(opcode == LOOKUP, machine.ports, machine.width)
        source, other, to = Signal(ADDRESS), Signal(ADDRESS), Signal(ADDRESS)
        offset, left = Signal(ADDRESS), Signal(32)
        takes, last = Signal(), Signal()
        m.d.comb += [
            self.reads.eq(Cat(self.active, self.active & adds)),
            *(self.read_at[0].eq(source + offset), self.read_at[1].eq(other + offset)),
            takes.eq(self.active & memories.read_ready),
            last.eq(count - offset <= part),
        ]
        with m.If(self.start):
            m.d.sync += [source.eq(words[1]), other.eq(words[3]), to.eq(Mux(adds, words[5], words[3]))]
            m.d.sync += [offset.eq(0), left.eq(rows), self.active.eq(1)]
        with m.Elif(takes & ~last):
            m.d.sync += offset.eq(offset + part)
        with m.Elif(takes):
            m.d.sync += [offset.eq(0), source.eq(source + words[2]), other.eq(other + words[4])]
            m.d.sync += [to.eq(to + Mux(adds, words[6], words[4])), left.eq(left - 1), self.active.eq(left != 1)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
        m.d.sync += [self.came.eq(takes), self.at.eq(to + offset)]
        m.d.sync += self.mask.eq(lanes_below(count - offset, machine.width) & lanes_below(part, machine.width))
        m.d.comb += [self.first.eq(memories.activations[0]), self.second.eq(memories.activations[1])]
        self._pack(takes, last, packs)

    def _pack(self, takes: Any, last: Any, packs: Any) -> None:
        """A run goes to a column of a tile, or turned to a byte of each column."""
        m, words, memories, machine = self.module, self._words, self._memories, self._machine
        width, lanes = machine.width, machine.lanes
        turned = words[0][TURNED]
        steps = (low(words[3]) + (width - 1)) >> lanes
        row, begin, number, lane = Signal(ADDRESS), Signal(ADDRESS), Signal(lanes), Signal(lanes)
        over = number == width - 1
        beyond = Mux(turned, width, (steps << lanes) - (width - 1))
        following = begin + Mux(over, beyond, Mux(turned, 0, 1))
        with m.If(self.start):
            m.d.sync += [row.eq(words[4] >> lanes), begin.eq(words[4] >> lanes), number.eq(0)]
        with m.Elif(takes & ~last):
            m.d.sync += row.eq(row + Mux(turned, steps << lanes, width))
        with m.Elif(takes):
            m.d.sync += [row.eq(following), begin.eq(following), number.eq(number + 1)]
        m.d.sync += [memories.pack_row.eq(row), lane.eq(number)]
        found = memories.activations[0]
        for column in range(width):
            byte = found.word_select(column, 8)
            straight = found if column == 0 else 0
            m.d.comb += memories.packed.word_select(column, 8 * width).eq(Mux(turned, byte.replicate(width), straight))
            mask = Mux(turned, Mux(self.mask[column], 1 << lane, 0), self.mask if column == 0 else 0)
            m.d.comb += memories.pack_mask.word_select(column, width).eq(Mux(self.came & packs, mask, 0))
