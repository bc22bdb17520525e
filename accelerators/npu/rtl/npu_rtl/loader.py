"""Loads: beats from memory become vectors, which go to the memories on chip as the run's address there wants them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed

from npu_rtl.bus import LARGEST, Bursts, Runs
from npu_rtl.gather import Gather
from npu_rtl.memories import Memories
from npu_rtl.numbers import ADDRESS, BUS, CODED, ERROR, TRANSFER, Machine, words_of
from npu_rtl.unpacker import Unpacker

AHEAD = 8
"""Beats that are under way when the next burst is asked for: enough for a memory that takes its time, and few, so that
a command is soon fetched between them."""


class Loader:
    """``start`` for a cycle, with the command on ``command`` until ``done``. Without a load it is ``ready``, too."""

    def __init__(self, machine: Machine, memories: Memories) -> None:
        self.module = m = Module()
        self.command = Signal(TRANSFER)
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(ERROR)
        self.valid, self.ready, self.last = Signal(), Signal(), Signal()
        self.data, self.response = Signal(8 * machine.bus), Signal(2)
        words = words_of(self.command, 10)
        asked, runs = (Runs(name, self.command.there, words) for name in ("load_asked", "load_runs"))
        self.bursts = Bursts("load", machine, asked)
        m.submodules += [self.bursts.module, runs.module]
        waits = Signal(range(AHEAD + LARGEST + 1))
        goes, ends = Signal(), Signal()
        m.d.comb += [
            asked.start.eq(self.start),
            runs.start.eq(self.start),
            self.bursts.allowed.eq(waits < AHEAD),
            goes.eq(self.valid & self.ready),
            runs.next.eq(goes & ends),
        ]
        failed = Signal()
        m.d.comb += self.error.eq(((goes & (self.response != 0)) | failed).replicate(ERROR) & BUS)
        m.d.sync += waits.eq(waits + Mux(self.bursts.asked, self.bursts.beats, 0) - goes)
        with m.If(self.start):
            m.d.sync += [self.active.eq(1), failed.eq(0)]
        with m.Elif(goes):
            m.d.sync += failed.eq(failed | (self.response != 0))
        with m.If(self.done):
            m.d.sync += self.active.eq(0)
        self._write(machine, memories, runs, words, goes, ends)

    def _write(self, machine: Machine, memories: Memories, runs: Runs, words: Any, goes: Any, ends: Any) -> None:
        """``at`` is the number in its run of the beat's first byte, below 0 where the run begins inside the beat."""
        m, bus = self.module, machine.bus
        done, at = Signal(ADDRESS + 2), Signal(signed(ADDRESS + 3))
        shift = bus.bit_length() - 1
        m.d.comb += [at.eq(done - runs.there[:shift]), ends.eq(at + bus >= runs.bytes)]
        with m.If(runs.start | runs.next):
            m.d.sync += done.eq(0)
        with m.Elif(goes):
            m.d.sync += done.eq(done + bus)
        inside = Cat(*((at + i >= 0) & (at + i < runs.bytes) for i in range(bus)))
        coded = words[0][CODED] if machine.unpack else C(0)
        m.d.comb += memories.load_weights.eq(words[1][8])
        gathered = Gather(machine)
        m.submodules.gather = gathered.module
        m.d.comb += [
            *(gathered.goes.eq(goes & ~coded), gathered.ends.eq(ends), gathered.at.eq(runs.here + at)),
            *(gathered.data.eq(self.data), gathered.inside.eq(inside)),
            gathered.taken.eq(gathered.valid & memories.load_ready),
        ]
        whole = Signal()
        with m.If(runs.start):
            m.d.sync += whole.eq(0)
        with m.Elif(runs.next & runs.last):
            m.d.sync += whole.eq(1)
        with m.If(~coded):
            m.d.comb += [
                memories.load_valid.eq(gathered.valid),
                memories.load_at.eq(gathered.vector_at),
                memories.load_mask.eq(gathered.mask),
                memories.load_data.eq(gathered.vector),
                self.ready.eq(~runs.active | gathered.ready),
                self.done.eq(self.active & whole & gathered.empties),
            ]
        if machine.unpack:
            first = Mux(done == 0, runs.there[:shift], 0)
            with m.If(coded):
                self._unpack(machine, memories, words, (goes, ends, inside, first, runs.bytes - at))

    def _unpack(self, machine: Machine, memories: Memories, words: Any, beat: tuple[Any, ...]) -> None:
        """``beat``: whether it goes, is the last one, which bytes are in it, from which on, and up to which."""
        goes, ends, inside, first, behind = beat
        m, unpacker = self.module, Unpacker(machine)
        m.submodules.unpacker = unpacker.module
        bits = Cat(*(inside[i].replicate(8) for i in range(machine.bus)))
        m.d.comb += [
            *(unpacker.start.eq(self.start), unpacker.count.eq(words[8])),
            *(unpacker.beat.eq(goes), unpacker.last.eq(ends), unpacker.taken.eq(unpacker.valid & memories.load_ready)),
            unpacker.data.eq((self.data & bits) >> (first << 3)),
            unpacker.bits.eq((Mux(ends, behind, machine.bus) - first) << 3),
            memories.load_valid.eq(unpacker.valid),
            memories.load_at.eq(words[3] + unpacker.at),
            memories.load_mask.eq(unpacker.mask),
            memories.load_data.eq(unpacker.bytes),
            self.ready.eq(~unpacker.active | unpacker.ready),
            self.done.eq(unpacker.done),
        ]
