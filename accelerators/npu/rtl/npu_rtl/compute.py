"""The compute engine: one command at a time, from what it needs first to its last result."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.fifo import SyncFIFOBuffered

from npu_rtl import addition, output
from npu_rtl.addition import Adder
from npu_rtl.array import CONTROL, STAGES, SUMS_AT, Array
from npu_rtl.elements import Elements
from npu_rtl.feeder import Feeder
from npu_rtl.memories import Memories
from npu_rtl.numbers import (
    ADD,
    ADDRESS,
    AVERAGE,
    COMPUTE,
    CONTINUE,
    CONVOLVE,
    DEPTHWISE,
    ERROR,
    FINISH,
    FLOAT32,
    KEEP,
    LONGEST,
    LOOKUP,
    OK,
    ONCE,
    PACK,
    POOL,
    RESIDUAL,
    SHAPE,
    SHARED,
    SYNC,
    Machine,
    delayed,
    high,
    low,
    octet,
    words_of,
)
from npu_rtl.places import Places
from npu_rtl.pool import DIGITS, Pool
from npu_rtl.prepare import Prepare
from npu_rtl.sliding import Sliding
from npu_rtl.windows import Steps

RESIDUALS = 16
"""Vectors that wait for the sums they are added to."""


class Compute:
    """``start`` for a cycle, with the command on ``command`` until ``done``."""

    def __init__(self, machine: Machine, memories: Memories) -> None:
        self.module = m = Module()
        self.command = Signal(COMPUTE)
        self.start, self.done, self.error = Signal(), Signal(), Signal(ERROR)
        self._machine, self._memories = machine, memories
        self._words = words = words_of(self.command, LONGEST)
        opcode = words[0][:8]
        self._windowed = (opcode == CONVOLVE) | (opcode == DEPTHWISE) | (opcode == POOL)
        self._keeps = (opcode == CONVOLVE) & words[0][KEEP]
        self._adds = ((opcode == CONVOLVE) | (opcode == DEPTHWISE)) & words[0][RESIDUAL]
        self._pools = opcode == POOL
        self._dense = opcode == CONVOLVE
        self._steps, self._array = Steps(words, machine), Array(machine)
        self._feeder = Feeder(machine, memories, words, self._steps)
        self._sliding = Sliding(machine, memories, words, self._steps)
        self._pool, self._elements = Pool(machine, self._sliding.vectors), Elements(machine, memories, words)
        self._prepare = Prepare(machine, memories, words)
        slide = ~self._dense
        self._out = Places("out", machine, words, (words[8], words[9], low(words[10])), slide)
        self._residual = Places("residual", machine, words, (words[17], words[18], low(words[19])), slide)
        parts: tuple[Any, ...] = (
            self._steps,
            self._feeder,
            self._sliding,
            self._array,
            self._pool,
            self._elements,
            self._prepare,
        )
        parts += (self._out, self._residual)
        m.submodules += [part.module for part in parts]
        self._works, self._stop = Signal(), Signal()
        self._flying, self._lands = Signal(16), Signal()
        self._issues, self._first, self._last = Signal(), Signal(), Signal()
        self._control()
        self._residuals()
        self._sequence()
        self._sums()
        self._results()

    def _control(self) -> None:
        m, prepare, opcode = self.module, self._prepare, self._words[0][:8]
        weighted = (opcode == CONVOLVE) | (opcode == DEPTHWISE)
        m.d.comb += [
            prepare.start.eq(self.start & (opcode != SYNC)),
            prepare.channels.eq(weighted & ~self._keeps),
            prepare.adds.eq(self._adds | (opcode == ADD)),
            prepare.looks.eq(opcode == LOOKUP),
            prepare.addition_at.eq(Mux(opcode == ADD, self._words[9], self._words[20])),
            prepare.table_at.eq(self._words[7]),
            self._steps.start.eq(self.start & self._windowed),
            self._feeder.start.eq(self.start & self._dense),
            self._sliding.start.eq(self.start & self._windowed & ~self._dense),
            self._sliding.allowed.eq(self._works),
            self._out.start.eq(self.start & self._windowed),
            self._residual.start.eq(self.start & self._adds),
        ]
        goes = prepare.done & (prepare.error == OK)
        m.d.comb += self._elements.start.eq(goes & ~self._windowed)
        failed = prepare.done & (prepare.error != OK)
        empty = self._pool.done & self._pool.empty & self._works
        rests = ~self._elements.active & ~(self._windowed & self._out.active) & (self._flying == 0)
        ends = self._works & rests & ~self._elements.came
        stops: tuple[Any, ...] = (self._steps, self._feeder, self._sliding, self._pool, self._elements)
        stops += (self._out, self._residual)
        m.d.comb += [
            self._stop.eq(self.done),
            self.error.eq(Mux(failed, prepare.error, Mux(empty, SHAPE, OK))),
            self.done.eq(Mux(opcode == SYNC, self.start, failed | empty | ends)),
            *(part.stop.eq(self._stop) for part in stops),
        ]
        self._reads()
        with m.If(self.done):
            m.d.sync += self._works.eq(0)
        with m.Elif(goes):
            m.d.sync += self._works.eq(1)

    def _reads(self) -> None:
        """One of the three works at a time."""
        m, memories, feeder = self.module, self._memories, self._feeder
        sliding, elements = self._sliding, self._elements
        m.d.comb += memories.reads.eq(sliding.reads | feeder.reads | elements.reads)
        for port, at in enumerate(memories.read_at):
            m.d.comb += at.eq(sliding.read_at[port])
            if port == 0:
                with m.If(self._dense):
                    m.d.comb += at.eq(feeder.read_at)
            if port < len(elements.read_at):
                with m.If(elements.active):
                    m.d.comb += at.eq(elements.read_at[port])

    def _residuals(self) -> None:
        """They are read ahead, and a block's last step waits for its own."""
        m, memories, residual = self.module, self._memories, self._residual
        self._added = fifo = SyncFIFOBuffered(width=8 * self._machine.width, depth=RESIDUALS)
        m.submodules.residuals = fifo
        room, came = Signal(range(RESIDUALS + 1), init=RESIDUALS), Signal()
        self._there = Signal(range(RESIDUALS + 1))
        goes = memories.residual_valid & memories.residual_ready
        m.d.comb += [
            memories.residual_valid.eq(residual.active & (room != 0) & self._works),
            memories.residual_at.eq(residual.at),
            residual.next.eq(goes),
            *(fifo.w_en.eq(came), fifo.w_data.eq(memories.residual)),
        ]
        ends = Mux(self._dense, self._issues & self._last, self._sliding.ends) & self._adds
        m.d.sync += [came.eq(goes), self._there.eq(self._there + came - ends)]
        m.d.sync += room.eq(room - goes + (fifo.r_en & fifo.r_rdy))
        with m.If(~self._works):
            m.d.sync += self._there.eq(0)

    def _sequence(self) -> None:
        """Pixels, blocks of channels, steps or parts of a window: one of them in each cycle, if it is there."""
        m, words, machine, feeder = self.module, self._words, self._machine, self._feeder
        step, row, ready = Signal(16), Signal(ADDRESS), feeder.level > feeder.offset
        begin = words[12][machine.lanes :]
        self._slides()
        lets_go, dense = self._out.last_block, self._dense
        waits = (step + 1 == high(words[15])) & self._adds & (self._there == 0)
        fed = self._works & self._out.active & ready & ~waits
        m.d.comb += [
            self._first.eq(Mux(dense, step == 0, self._slide_first)),
            self._last.eq(Mux(dense, step + 1 == high(words[15]), self._slide_last)),
            self._issues.eq(Mux(dense, fed, self._slide_issues)),
            feeder.offset.eq(Mux(lets_go, 0, step)),
            feeder.frees.eq(dense & self._issues & lets_go),
            self._out.next.eq(self._issues & self._last),
            self._memories.tile_at.eq(Mux(self._prepare.active, self._prepare.at, row + Mux(dense, 0, self._tap))),
        ]
        with m.If(self.start):
            m.d.sync += [step.eq(0), row.eq(begin)]
        with m.Elif(self._issues & dense):
            again = self._last & self._out.last_block
            m.d.sync += [step.eq(Mux(self._last, 0, step + 1)), row.eq(Mux(again, begin, row + machine.width))]
        with m.Elif(self._out.next & self._out.last_column):
            m.d.sync += row.eq(Mux(self._out.last_block, begin, row + self._steps.taps))

    def _slides(self) -> None:
        """Windows that slide: the array takes one in parts, or each tap as it comes; a pool takes each piece."""
        m, sliding, machine = self.module, self._sliding, self._machine
        whole, group = Signal(), Signal(3)
        self._slide_issues, self._slide_first, self._slide_last = Signal(), Signal(), Signal()
        self._tap, mean = Signal(16), Signal(range(DIGITS + 1))
        parts = ~self._pools & ~self._steps.single
        m.d.comb += [
            sliding.may_end.eq(Mux(self._pools, mean == 0, ~self._adds | (self._there != 0))),
            whole.eq(sliding.came & sliding.last),
            self._slide_issues.eq(self._works & Mux(parts, whole | (group != 0), sliding.came)),
            self._slide_first.eq(Mux(parts, whole, sliding.first)),
            self._slide_last.eq(Mux(parts, group + 1 == sliding.groups, sliding.last)),
            self._tap.eq(Mux(parts, group << machine.lanes, sliding.tap)),
        ]
        with m.If(self._stop | ~(self._slide_issues & parts) | self._slide_last):
            m.d.sync += group.eq(0)
        with m.Else():
            m.d.sync += group.eq(group + 1)
        m.d.sync += sliding.group.eq(group)
        with m.If(sliding.ends & self._pools & self._words[0][AVERAGE]):
            m.d.sync += mean.eq(DIGITS)
        with m.Elif(mean != 0):
            m.d.sync += mean.eq(mean - 1)

    def _sums(self) -> None:
        m, array, memories, words, pool = self.module, self._array, self._memories, self._words, self._pool
        dense = self._dense
        goes_on = dense & words[0][CONTINUE]
        valid = [self._issues & ~self._pools]
        place = Signal(32)
        blocks = Signal(13)
        m.d.comb += blocks.eq((high(words[10]) + (self._machine.width - 1)) >> self._machine.lanes)
        kept = Signal(16)
        begin = words[14] >> (self._machine.lanes + 2)
        m.d.comb += place.eq(begin + Mux(words[0][SHARED] & dense, self._out.block, kept))
        with m.If(self.start):
            m.d.sync += kept.eq(0)
        with m.Elif(self._out.next):
            m.d.sync += kept.eq(kept + 1)
        first = delayed(m, self._first, CONTROL, "first")
        m.d.comb += [
            *(
                array.vector.eq(self._feeder.vector),
                array.tile.eq(memories.tile),
                array.window.eq(self._sliding.window),
            ),
            *(array.deep.eq(~dense), array.zero_point.eq(Mux(dense, octet(words[19], 2), 0))),
            *(array.first.eq(first), array.valid.eq(delayed(m, valid[0], CONTROL, "valid"))),
            array.before.eq(Mux(goes_on, memories.sums, 0)),
            memories.sums_at.eq(delayed(m, place, SUMS_AT, "place")),
            memories.kept.eq(array.sums),
            memories.kept_at.eq(delayed(m, place, STAGES, "kept_at")),
        ]
        ends = delayed(m, valid[0] & self._last, STAGES, "ends")
        m.d.comb += memories.keeps.eq(ends & self._keeps)
        m.d.comb += memories.parameters_at.eq(delayed(m, self._out.block, STAGES - 1, "block"))
        m.d.comb += [
            *(pool.valid.eq(self._issues & self._pools), pool.first.eq(self._first), pool.last.eq(self._last)),
            *(
                pool.inside.eq(self._sliding.inside),
                pool.average.eq(words[0][AVERAGE]),
                pool.least.eq(octet(words[12], 2)),
            ),
            pool.greatest.eq(octet(words[12], 3)),
        ]

    def _results(self) -> None:
        """From sums to bytes, and where they go."""
        m, words, memories, width = self.module, self._words, self._memories, self._machine.width
        elements = self._elements
        finish = Signal(FINISH)
        m.d.comb += [
            *(finish.single.eq(words[0][FLOAT32]), finish.zero_point.eq(octet(words[16], 1))),
            *(finish.least.eq(octet(words[16], 2)), finish.greatest.eq(octet(words[16], 3))),
        ]
        lone = words[0][:8] == ADD
        once, numbers = words[0][ONCE], self._prepare.addition
        straight, sums, looked = [], [], []
        for lane in range(width):
            out, adder = output.Output(lane, finish), Adder(lane, numbers, once)
            m.submodules += [out.module, adder.module]
            found = (self._array.sums, *(memories.parameters[32 * width * i :][: 32 * width] for i in range(3)))
            inputs = (out.accumulator, out.bias, out.multiplier, out.shift)
            m.d.comb += [wire.eq(value.word_select(lane, 32)) for wire, value in zip(inputs, found, strict=True)]
            first, second = (value.word_select(lane, 8) for value in (elements.first, elements.second))
            m.d.comb += adder.first.eq(Mux(lone, first, out.byte))
            m.d.comb += adder.second.eq(Mux(lone, second, self._added.r_data.word_select(lane, 8)))
            straight.append(out.byte)
            sums.append(adder.byte)
            looked.append(self._looked(lane, first) if lane < self._machine.ports else first)
        self._ends(Cat(*straight), Cat(*sums), Cat(*looked))

    def _looked(self, port: int, number: Any) -> Any:
        table = self._prepare.table
        self.module.d.comb += table.number[port].eq(number)
        return table.found[port]

    def _ends(self, straight: Any, sums: Any, looked: Any) -> None:
        """Each result with the place that was known when it was asked for."""
        m, memories, elements, opcode = self.module, self._memories, self._elements, self._words[0][:8]
        lone = opcode == ADD
        place = Cat(self._out.mask, self._out.at)
        issued = self._issues & self._last & ~self._pools & ~self._keeps
        out_ends = delayed(m, issued, STAGES + output.STAGES, "output_ends")
        out_at = delayed(m, place, STAGES + output.STAGES, "output_at")
        m.d.comb += self._added.r_en.eq((out_ends & self._adds) | ~self._works)  # none is left behind an error
        added = Mux(lone, elements.came, out_ends & self._adds)
        adds_end = delayed(m, added, addition.STAGES, "addition_ends")
        own = Cat(elements.mask, elements.at)
        adds_at = delayed(m, Mux(lone, own, out_at), addition.STAGES, "addition_at")
        pool_at = Signal(place.shape())
        pooled_at = delayed(m, place, 1, "pooled_at")
        with m.If(self._pool.ends):
            m.d.sync += pool_at.eq(pooled_at)
        looks = elements.came & (opcode == LOOKUP)
        pooled = self._pool.done & ~self._pool.empty
        self._write(adds_end, adds_at, sums)
        self._write(out_ends & ~self._adds, out_at, straight)
        self._write(looks, own, looked)
        self._write(pooled, pool_at, self._pool.bytes)
        kept = memories.keeps
        packed = elements.came & (opcode == PACK)
        m.d.comb += self._lands.eq(adds_end | (out_ends & ~self._adds) | looks | pooled | kept | packed)
        begins = Mux(self._windowed, self._out.next, elements.came)
        m.d.sync += self._flying.eq(self._flying + begins - self._lands)
        with m.If(self._stop):
            m.d.sync += self._flying.eq(0)

    def _write(self, valid: Any, place: Any, bytes_: Any) -> None:
        m, memories, width = self.module, self._memories, self._machine.width
        with m.If(valid):
            m.d.comb += [
                memories.write_mask.eq(place[:width]),
                memories.write_at.eq(place[width:]),
                memories.written.eq(bytes_),
            ]
