"""What a command of the compute engine needs before its first value: parameters of each channel, of an addition, or a
table. They are read from the memory of weights and checked."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from npu_rtl.addition import ADDITION, wrong_addition, wrong_scale
from npu_rtl.memories import Memories
from npu_rtl.numbers import (
    ADDITION_WORDS,
    CHANNEL_WORDS,
    ERROR,
    FLOAT32,
    OK,
    ONCE,
    QUANTISATION,
    TABLE_BYTES,
    Machine,
    high,
    lanes_below,
)
from npu_rtl.table import Table


class Prepare:
    """``start`` for a cycle, with what is wanted: ``channels``, ``adds``, ``looks``. ``done`` for a cycle."""

    def __init__(self, machine: Machine, memories: Memories, words: Any) -> None:
        self.module = m = Module()
        self.start, self.channels, self.adds, self.looks = Signal(), Signal(), Signal(), Signal()
        self.addition_at, self.table_at = Signal(32), Signal(32)
        self.active, self.done, self.error = Signal(), Signal(), Signal(ERROR)
        self.at = Signal(32)
        """Of the row of a tile that is asked for."""
        self.addition, self.table = Signal(ADDITION), Table(machine)
        self._machine, self._memories, self._words = machine, memories, words
        m.submodules.table = self.table.module
        lanes = machine.lanes
        read = 8 * machine.tile
        states = Signal(3)
        """Channels, addition, table: what is still to be read."""
        part, blocks = Signal(4), Signal(17)
        bits = 32 * CHANNEL_WORDS * machine.width, 32 * ADDITION_WORDS, 8 * TABLE_BYTES
        reads = [-(-count // read) for count in bits]
        sizes = CHANNEL_WORDS * 4, 0, TABLE_BYTES // machine.width
        addresses = words[13], self.addition_at, self.table_at
        kept = Signal(read * max(reads[:2]))
        which: Any = Mux(states[0], 1, Mux(states[1], 2, states & 4))
        goes = states != 0
        with m.If(self.start):
            m.d.sync += [states.eq(Cat(self.channels, self.adds, self.looks)), self.active.eq(1), part.eq(0)]
            m.d.sync += [blocks.eq(high(words[10])), self.error.eq(OK)]
            m.d.sync += self.at.eq(
                Mux(self.channels, addresses[0], Mux(self.adds, addresses[1], addresses[2])) >> lanes
            )
        with m.Elif(goes):
            m.d.sync += [part.eq(part + 1), self.at.eq(self.at + machine.width)]
            for i, count in enumerate(reads):
                last = (which == 1 << i) & (part == count - 1)
                with m.If(last & (blocks > machine.width) & int(i == 0)):
                    m.d.sync += [part.eq(0), blocks.eq(blocks - machine.width)]
                    m.d.sync += self.at.eq(self.at + sizes[0] - (count - 1) * machine.width)
                with m.Elif(last):
                    m.d.sync += [part.eq(0), states.eq(states & ~which)]
                    m.d.sync += self.at.eq(Mux(self.adds & int(i == 0), addresses[1], addresses[2]) >> lanes)
        self._come(which, goes, part, blocks, reads, kept)

    def _come(self, which: Any, goes: Any, part: Any, left: Any, reads: Any, kept: Any) -> None:
        m, memories, machine = self.module, self._memories, self._machine
        came, number, channels = Signal(3), Signal(4), Signal(17)
        whole, block = Signal(len(kept)), Signal(16)
        size = 8 * machine.tile
        m.d.sync += [came.eq(Mux(goes, which, 0)), number.eq(part), channels.eq(left)]
        m.d.comb += whole.eq(kept)
        with m.Switch(number):
            for i in range(len(kept) // size):
                with m.Case(i):
                    m.d.comb += whole[i * size : (i + 1) * size].eq(memories.tile)
        m.d.comb += [self.table.comes.eq(came[2]), self.table.part.eq(number), self.table.tile.eq(memories.tile)]
        last = [came[i] & (number == count - 1) for i, count in enumerate(reads)]
        with m.If(came != 0):
            m.d.sync += kept.eq(whole)
        parameters = whole[: 32 * CHANNEL_WORDS * machine.width]
        m.d.comb += [memories.prepares.eq(last[0]), memories.prepared_at.eq(block), memories.prepared.eq(parameters)]
        with m.If(self.start):
            m.d.sync += block.eq(0)
        with m.Elif(last[0]):
            m.d.sync += block.eq(block + 1)
            wrong = self._wrong(parameters) & lanes_below(channels, machine.width)
            with m.If(wrong != 0):
                m.d.sync += self.error.eq(QUANTISATION)
        with m.If(last[1]):
            m.d.sync += self.addition.eq(whole[: 32 * ADDITION_WORDS])
        judges = Signal()
        m.d.sync += judges.eq(last[1])
        bad = wrong_addition(self.addition, self._words[0][ONCE])
        with m.If(judges & (bad != OK)):
            m.d.sync += self.error.eq(bad)
        ends = self.active & ~goes & (came == 0) & ~judges
        m.d.comb += self.done.eq(ends)
        with m.If(ends):
            m.d.sync += self.active.eq(0)

    def _wrong(self, parameters: Any) -> Any:
        width = self._machine.width
        wrong = []
        for lane in range(width):
            multiplier = parameters.word_select(width + lane, 32).as_signed()
            shift = parameters.word_select(2 * width + lane, 32).as_signed()
            single = self._words[0][FLOAT32] & ~multiplier[30]
            wrong.append(wrong_scale(multiplier, shift) | single)
        return Cat(*wrong)
