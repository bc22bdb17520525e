"""Commands from memory, word by word, and whether one is whole."""

from __future__ import annotations

from amaranth.hdl import Array as Choice
from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from npu_rtl.bus import Bursts, Runs
from npu_rtl.numbers import BUS, COMMAND, ERROR, LONGEST, OK, STREAM, WORDS, Machine

WORD = 4
"""Bytes."""
BEATS, BURST = 16, 8
"""That wait for the commands they belong to; that are asked for at once, so that loads soon have the bus again."""


class Fetch:
    """``start`` for a cycle. ``valid`` tells that ``words`` are a command, or that there is an ``error`` instead;
    ``take`` goes on to the next one. ``stop`` forgets all that comes, until it is not ``active``."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self.start, self.stop, self.take = Signal(), Signal(), Signal()
        self.at, self.bytes = Signal(32), Signal(32)
        self.valid, self.active, self.ended = Signal(), Signal(), Signal()
        self.words = [Signal(32, name=f"word{i}") for i in range(LONGEST)]
        self.error = Signal(ERROR)
        self.beat, self.ready, self.data, self.response = Signal(), Signal(), Signal(8 * machine.bus), Signal(2)
        held = Signal(32, name="fetch_bytes")
        """The register may change before all is asked for."""
        with m.If(self.start):
            m.d.sync += held.eq(self.bytes)
        words = [C(0), C(0), C(0), C(0), held, C(0x10001, 32), *[C(0)] * 4]
        asked = Runs("fetch", self.at, words)
        self.bursts = Bursts("fetch", machine, asked, BURST)
        self._fifo = SyncFIFOBuffered(width=8 * machine.bus + 1, depth=BEATS)
        m.submodules += [self.bursts.module, self._fifo]
        self._machine = machine
        self._waits, self._room = Signal(8), Signal(8, init=BEATS)
        pops = self._fifo.r_en & self._fifo.r_rdy
        m.d.comb += [
            asked.start.eq(self.start),
            self.bursts.allowed.eq(self._room >= BURST),
            self.ready.eq(1),
            self._fifo.w_en.eq(self.beat),
            self._fifo.w_data[: 8 * machine.bus].eq(self.data),
            self._fifo.w_data[-1].eq(self.response != 0),
        ]
        beats = Mux(self.bursts.asked, self.bursts.beats, 0)
        m.d.sync += [self._waits.eq(self._waits + beats - self.beat), self._room.eq(self._room - beats + pops)]
        self._assemble()
        with m.If(self.stop):
            m.d.comb += self._fifo.r_en.eq(1)
        m.d.comb += self.active.eq(asked.active | (self._waits != 0) | (self.stop & (self._room != BEATS)))

    def _assemble(self) -> None:
        """A word in each cycle, until the command is whole."""
        m, machine, fifo = self.module, self._machine, self._fifo
        left, count, length = Signal(30), Signal(range(LONGEST + 1)), Signal(range(LONGEST + 1))
        word, goes, ends, failed = Signal(32), Signal(), Signal(), Signal()
        number = Signal(3)
        """Of the word in its beat, or of the beat in its word."""
        opcode = Mux(count == 0, word[:8], self.words[0][:8])
        there = fifo.r_rdy & ~self.valid & (left != 0) & ~self.stop
        if machine.bus >= WORD:
            m.d.comb += [
                *(word.eq(fifo.r_data.word_select(number, 8 * WORD)), failed.eq(fifo.r_data[-1]), goes.eq(there)),
                *(ends.eq(number == machine.bus // WORD - 1), fifo.r_en.eq(goes & (ends | (left == 1)))),
            ]
        else:
            kept, bad = Signal(32), Signal()
            m.d.comb += [
                *(word.eq(Cat(kept, fifo.r_data[:-1]) >> 8 * machine.bus), failed.eq(fifo.r_data[-1] | bad)),
                *(ends.eq(number == WORD // machine.bus - 1), goes.eq(there & ends), fifo.r_en.eq(there)),
            ]
            with m.If(there):
                m.d.sync += [kept.eq(word), bad.eq(failed & ~ends), number.eq(Mux(ends, 0, number + 1))]
        m.d.comb += [
            length.eq(Mux(opcode < len(WORDS), Choice(WORDS)[opcode[:4]], 0)),
            self.ended.eq((left == 0) & (count == 0) & ~self.valid),
        ]
        with m.If(self.start):
            m.d.sync += [left.eq(self.bytes[2:]), number.eq(self.at[2:3] if machine.bus > WORD else 0)]
            m.d.sync += [count.eq(0), self.valid.eq(0), self.error.eq(OK)]
        with m.Elif(goes):
            m.d.sync += [left.eq(left - 1), count.eq(count + 1), number.eq(Mux(ends, 0, number + 1))]
            for i, kept in enumerate(self.words):
                with m.If(count == i):
                    m.d.sync += kept.eq(word)
                with m.Elif(count == 0):
                    m.d.sync += kept.eq(0)
            wrong = Mux(failed, BUS, Mux(length == 0, COMMAND, Mux(length > left + count, STREAM, OK)))
            m.d.sync += [self.error.eq(wrong), self.valid.eq((wrong != OK) | (count + 1 == length))]
        with m.If(self.take | self.stop):
            m.d.sync += [self.valid.eq(0), count.eq(0)]
        with m.If(self.stop):
            m.d.sync += left.eq(0)
