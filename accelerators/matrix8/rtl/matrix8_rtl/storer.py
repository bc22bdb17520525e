"""Stores: eight sums a cycle through the way out, and rows of bytes to memory."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from matrix8_rtl.bus import BORDER, Addresses, words_of
from matrix8_rtl.memories import Memories
from matrix8_rtl.numbers import ARGUMENT, BUS, LANES, NONE, STORE_COMMAND
from matrix8_rtl.output import STAGES, Output

WAITING: Final = 16
"""Words between the way out and the bus."""


class Storer:
    """``start`` for a cycle, with the command on ``command`` until ``done``."""

    def __init__(self, memories: Memories) -> None:
        self.module = Module()
        self.command = Signal(STORE_COMMAND)
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(3)
        self.addresses = Addresses("aw")
        self.valid, self.ready = Signal(name="m_wvalid"), Signal(name="m_wready")
        self.data, self.strobes = Signal(64, name="m_wdata"), Signal(LANES, name="m_wstrb")
        self.last = Signal(name="m_wlast")
        self.answered, self.listens = Signal(name="m_bvalid"), Signal(name="m_bready")
        self.response = Signal(2, name="m_bresp")
        self._memories = memories
        self._blocks, self._block, self._left = Signal(10), Signal(10), Signal(10)
        self._entry = Signal(8)
        self._channels = Signal(13)
        self._looks, self._judges, self._issues, self._writes, self._valid = (Signal() for _ in range(5))
        self._room = Signal(range(WAITING + 1), init=WAITING)
        self._fifo = SyncFIFOBuffered(width=8 * LANES, depth=WAITING)
        self._look()
        self._way_out()
        self._rows()
        self._answers()

    @property
    def ports(self) -> list[Any]:
        data = [self.valid, self.ready, self.data, self.strobes, self.last]
        return [*self.addresses.ports, *data, self.answered, self.listens, self.response]

    def _look(self) -> None:
        """First at each channel's shift and multiplier: nothing is written where one means nothing. Then block after
        block, pixel after pixel."""
        m, c, memories = self.module, self.command, self._memories
        last, looked, judged, goes = Signal(), Signal(), Signal(), Signal()
        sum_at, judged_left, bad = Signal(9), Signal(13), Signal()
        m.d.comb += [
            self._blocks.eq((c.channels + LANES - 1) >> 3),
            last.eq(self._block + 1 == self._blocks),
            goes.eq(self._looks | (self._issues & (self._room != 0))),
            memories.stored_at.eq(sum_at),
            *(at.eq(self._entry + i) for i, at in enumerate(memories.parameters_at)),
            bad.eq(looked & self._means_nothing(judged_left)),
        ]
        m.d.comb += self._judges.eq(self._looks | looked | judged)
        m.d.sync += [looked.eq(self._looks), judged.eq(looked), judged_left.eq(self._channels)]
        m.d.sync += self._valid.eq(self._issues & goes)
        with m.If(self.start):
            m.d.sync += [self._looks.eq(1), self.active.eq(1), self.error.eq(NONE), sum_at.eq(c.accumulators)]
            m.d.sync += [self._left.eq(c.pixels), self._block.eq(0), self._entry.eq(c.parameters)]
            m.d.sync += self._channels.eq(c.channels)
        with m.Elif(goes):
            m.d.sync += [self._block.eq(Mux(last, 0, self._block + 1)), self._channels.eq(self._channels - LANES)]
            m.d.sync += self._entry.eq(Mux(last, c.parameters, self._entry + 3))
            with m.If(self._issues):
                m.d.sync += [sum_at.eq(sum_at + 1), self._left.eq(self._left - last)]
                m.d.sync += self._issues.eq(~last | (self._left != 1))
            with m.Elif(last):
                m.d.sync += self._looks.eq(0)
        with m.If(bad):
            m.d.sync += self.error.eq(ARGUMENT)
        with m.If(judged & ~looked & ~self._looks):
            m.d.sync += [self._issues.eq(self.error == NONE), self._writes.eq(self.error == NONE)]
            m.d.comb += self.addresses.start.eq(self.error == NONE)

    def _means_nothing(self, left: Any) -> Any:
        """Of the channels of the block that there are: whether a shift or a multiplier cannot be used."""
        _, multipliers, shifts = self._memories.parameters
        wrong = []
        for lane in range(LANES):
            shift = shifts.word_select(lane, 32).as_signed()
            multiplier = multipliers.word_select(lane, 32).as_signed()
            small = self.command.single & (multiplier < 1 << 30)
            wrong.append((left > lane) & ((shift < -31) | (shift > 30) | small))
        return Cat(*wrong).any()

    def _way_out(self) -> None:
        m, memories, fifo = self.module, self._memories, self._fifo
        m.submodules.fifo = fifo
        found = (memories.stored, *memories.parameters)
        bytes_ = []
        for lane in range(LANES):
            output = Output(lane, self.command)
            m.submodules[f"output{lane}"] = output.module
            inputs = (output.accumulator, output.bias, output.multiplier, output.shift)
            m.d.comb += [wire.eq(value.word_select(lane, 32)) for wire, value in zip(inputs, found, strict=True)]
            bytes_.append(output.byte)
        ready = self._valid
        for number in range(STAGES):
            stage = Signal(name=f"valid{number}")
            m.d.sync += stage.eq(ready)
            ready = stage
        m.d.comb += [fifo.w_data.eq(Cat(*bytes_)), fifo.w_en.eq(ready)]
        goes = self._issues & (self._room != 0)
        m.d.sync += self._room.eq(self._room - goes + (fifo.r_en & fifo.r_rdy))

    def _rows(self) -> None:
        """Words of the bus: what is left of the last eight bytes, and the first of the next ones."""
        m, c, fifo = self.module, self.command, self._fifo
        at, row, left = Signal(32), Signal(32), Signal(10)
        words, chunks, kept = Signal(13), Signal(10), Signal(8 * LANES)
        following, first, ends, needs, goes = Signal(32), Signal(), Signal(), Signal(), Signal()
        m.submodules.addresses = self.addresses.module
        turn, skipped = row[:3], Signal(4)
        done = Signal(14)  # bytes of the row before this word's first one, and those that lie before the row
        m.d.comb += [
            self.addresses.first.eq(c.address),
            self.addresses.stride.eq(c.stride),
            self.addresses.rows.eq(c.pixels),
            self.addresses.bytes.eq(c.channels),
            following.eq(row + c.stride),
            skipped.eq(LANES - turn),
            ends.eq(words == 1),
            needs.eq(chunks != 0),
            self.valid.eq(self._writes & (~needs | fifo.r_rdy)),
            goes.eq(self.valid & self.ready),
            fifo.r_en.eq(self._writes & needs & self.ready),
            self.last.eq(ends | (at[3:11] == BORDER - 1)),
            self.data.eq(Cat(kept, fifo.r_data).bit_select(skipped << 3, 64)),
        ]
        for i in range(LANES):
            inside = (~first | (i >= turn)) & (done + i < c.channels + turn)
            m.d.comb += self.strobes[i].eq(inside)

        def begin(address: Any) -> None:
            m.d.sync += [row.eq(address), at.eq(address), words.eq(words_of(address, c.channels))]
            m.d.sync += [chunks.eq(self._blocks), first.eq(1), done.eq(0)]

        with m.If(self.start):
            begin(c.address)
            m.d.sync += left.eq(c.pixels)
        with m.Elif(goes):
            m.d.sync += [at.eq(at + LANES), words.eq(words - 1), chunks.eq(chunks - needs), kept.eq(fifo.r_data)]
            m.d.sync += [first.eq(0), done.eq(done + LANES)]
            with m.If(ends):
                begin(following)
                m.d.sync += left.eq(left - 1)
                with m.If(left == 1):
                    m.d.sync += self._writes.eq(0)

    def _answers(self) -> None:
        """Whether all bursts came to their end."""
        m, waits = self.module, Signal(16)
        rests = ~self._judges & ~self._writes & ~self.addresses.active & (waits == 0)
        m.d.comb += [self.listens.eq(1), self.done.eq(self.active & rests)]
        m.d.sync += waits.eq(waits + self.addresses.asked - self.answered)
        with m.If(self.answered & (self.response != 0)):
            m.d.sync += self.error.eq(BUS)
        with m.If(self.done):
            m.d.sync += self.active.eq(0)
