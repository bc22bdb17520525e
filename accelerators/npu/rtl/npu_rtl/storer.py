"""Stores: vectors of activations become beats, and rows of beats become bursts."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib.fifo import SyncFIFOBuffered

from npu_rtl.bus import LARGEST, PAGE, Bursts, Runs, page_of
from npu_rtl.memories import Memories
from npu_rtl.numbers import ADDRESS, BUS, ERROR, TRANSFER, Machine, words_of

WAITING = 4
"""Vectors between the memory and the bus."""


class Storer:
    """``start`` for a cycle, with the command on ``command`` until ``done``."""

    def __init__(self, machine: Machine, memories: Memories) -> None:
        self.module = m = Module()
        self.command = Signal(TRANSFER)
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(ERROR)
        self.valid, self.ready, self.last = Signal(), Signal(), Signal()
        self.data, self.strobes = Signal(8 * machine.bus), Signal(machine.bus)
        self.answered, self.response = Signal(), Signal(2)
        self._machine = machine
        words = words_of(self.command, 10)
        asked, read, sent = (Runs(f"store_{name}", self.command.there, words) for name in ("asked", "read", "sent"))
        self.bursts = Bursts("store", machine, asked)
        self._fifo = SyncFIFOBuffered(width=8 * machine.width, depth=WAITING)
        m.submodules += [self.bursts.module, read.module, sent.module, self._fifo]
        m.d.comb += [runs.start.eq(self.start) for runs in (asked, read, sent)]
        m.d.comb += self.bursts.allowed.eq(1)
        self._reads(memories, read)
        self._sends(sent)
        waits, failed = Signal(32), Signal()
        m.d.comb += [
            self.done.eq(self.active & ~asked.active & ~sent.active & (waits == 0)),
            self.error.eq(failed.replicate(ERROR) & BUS),
        ]
        m.d.sync += waits.eq(waits + self.bursts.asked - self.answered)
        with m.If(self.start):
            m.d.sync += [self.active.eq(1), failed.eq(0)]
        with m.Elif(self.done):
            m.d.sync += self.active.eq(0)
        with m.If(self.answered & (self.response != 0)):
            m.d.sync += failed.eq(1)

    def _reads(self, memories: Memories, runs: Runs) -> None:
        """From the chip, so that a run's first byte is where its first beat wants it."""
        m, machine = self.module, self._machine
        done, at = Signal(ADDRESS + 2), Signal(signed(ADDRESS + 3))
        shift = machine.bus.bit_length() - 1
        goes, came, room = Signal(), Signal(), Signal(range(WAITING + 1), init=WAITING)
        m.d.comb += [
            at.eq(done - runs.there[:shift]),
            memories.store_valid.eq(runs.active & (room != 0)),
            memories.store_at.eq(runs.here + at),
            goes.eq(memories.store_valid & memories.store_ready),
            runs.next.eq(goes & (at + machine.width >= runs.bytes)),
            self._fifo.w_data.eq(memories.stored),
            self._fifo.w_en.eq(came),
        ]
        m.d.sync += [came.eq(goes), room.eq(room - goes + (self._fifo.r_en & self._fifo.r_rdy))]
        with m.If(runs.start | runs.next):
            m.d.sync += done.eq(0)
        with m.Elif(goes):
            m.d.sync += done.eq(done + machine.width)

    def _sends(self, runs: Runs) -> None:
        m, machine, fifo = self.module, self._machine, self._fifo
        bus = machine.bus
        shift = bus.bit_length() - 1
        done, at = Signal(ADDRESS + 2), Signal(signed(ADDRESS + 3))
        goes, ends, beat, number = Signal(), Signal(), Signal(32), Signal(max(1, machine.lanes - shift))
        per_vector, filled = machine.width // bus, done[: LARGEST.bit_length() - 1] == LARGEST - 1
        inside: list[Any] = [(at + i >= 0) & (at + i < runs.bytes) for i in range(bus)]
        m.d.comb += [
            at.eq((done << shift) - runs.there[:shift]),
            ends.eq(at + bus >= runs.bytes),
            beat.eq((runs.there >> shift) + done),
            number.eq(done % per_vector),
            self.valid.eq(runs.active & fifo.r_rdy),
            goes.eq(self.valid & self.ready),
            runs.next.eq(goes & ends),
            fifo.r_en.eq(goes & (ends | (number == per_vector - 1))),
            self.data.eq(fifo.r_data.word_select(number, 8 * bus)),
            self.strobes.eq(Cat(*inside)),
            self.last.eq(ends | filled | (page_of(beat, machine) == PAGE // bus - 1)),
        ]
        with m.If(runs.start | runs.next):
            m.d.sync += done.eq(0)
        with m.Elif(goes):
            m.d.sync += done.eq(done + 1)
