"""Windows of the input become vectors for the array: a step of a convolution, or a tap of a block of channels."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib.memory import Memory

from npu_rtl.memories import Memories
from npu_rtl.numbers import ADDRESS, CONVOLVE, POOL, Machine, high, lanes_below, low, octet
from npu_rtl.windows import POSITION, Pixels, Steps


class Feeder:
    """``start`` for a cycle, with the command's ``words`` until all are fed; ``stop`` forgets everything. Vectors wait
    in a ring: ``level`` of them are there, from ``first`` on, and ``frees`` lets go of one."""

    def __init__(self, machine: Machine, memories: Memories, words: Any) -> None:
        self.module = Module()
        self.start, self.stop = Signal(), Signal()
        self.frees, self.offset = Signal(), Signal(16)
        self.valid, self.read_at = Signal(), Signal(ADDRESS)
        size = 1 << (2 * machine.weights // machine.tile - 1).bit_length()
        self.level = Signal(range(size + 1))
        self.vector, self.inside = Signal(8 * machine.width), Signal()
        """A cycle after ``offset``."""
        self._machine, self._memories, self._words = machine, memories, words
        self._size = size
        self._dense = words[0][:8] == CONVOLVE
        self._claimed, self._goes, self._ends = Signal(range(size + 1)), Signal(), Signal()
        self._active, self._merged = Signal(), Signal()
        self._y, self._x, self._first_x = (Signal(signed(POSITION), name=name) for name in ("y", "x", "first_x"))
        self._i, self._j, self._left, self._base = (Signal(16, name=name) for name in ("i", "j", "left", "base"))
        self._channel, self._lane = Signal(21), Signal(machine.lanes)
        self._row_at, self._at = Signal(ADDRESS), Signal(ADDRESS)
        self._steps = Steps(words, machine)
        self._pixels = Pixels(words, machine, self._steps)
        self._map = [Signal(machine.lanes, name=f"map{i}", init=i) for i in range(machine.width)]
        self.module.submodules += [self._steps.module, self._pixels.module]
        self.module.d.comb += self._steps.start.eq(self.start)
        self._window()
        self._ring()

    def _window(self) -> None:
        """A fragment of a tap in each cycle."""
        m, w, machine, steps, pixels = self.module, self._words, self._machine, self._steps, self._pixels
        tap_rest, lane_rest = Signal(21), Signal(machine.lanes + 1)
        tap_ends, vector_ends, row_ends, window_ends, block_ends = (Signal() for _ in range(5))
        size = Signal(machine.lanes + 1)
        inside = (self._y >= 0) & (self._y < low(w[4])) & (self._x >= 0) & (self._x < high(w[4]))
        room = self._active & (self._claimed != self._size)
        m.d.comb += [
            tap_rest.eq(Mux(self._merged, steps.row_bytes, high(w[3])) - self._channel),
            lane_rest.eq(machine.width - self._lane),
            tap_ends.eq(~self._dense | (tap_rest <= lane_rest)),
            row_ends.eq(tap_ends & (self._merged | (self._j + 1 == high(w[5])))),
            window_ends.eq(row_ends & (self._i + 1 == low(w[5]))),
            vector_ends.eq(~self._dense | (lane_rest <= tap_rest) | window_ends),
            block_ends.eq(Mux(self._dense, vector_ends & (self._left == 1), window_ends)),
            size.eq(Mux(self._dense & (tap_rest < lane_rest), tap_rest, Mux(self._dense, lane_rest, machine.width))),
            self.valid.eq(room & inside),
            self.read_at.eq(self._at + Mux(self._dense, self._channel - self._lane, self._base)),
            self._goes.eq(room & (~inside | self._memories.read_ready)),
            self._ends.eq(vector_ends),
            pixels.next.eq(steps.ready & pixels.active & pixels.ready & (~self._active | (self._goes & block_ends))),
            *(pixels.start.eq(self.start), pixels.stop.eq(self.stop), steps.stop.eq(self.stop)),
        ]
        self._assemble(inside, size)
        with m.If(self._goes):
            m.d.sync += [self._lane.eq(Mux(vector_ends, 0, self._lane + size)), self._left.eq(self._left - vector_ends)]
            self._advance(tap_ends, row_ends, size)
            with m.If(block_ends):
                m.d.sync += self._active.eq(0)
        with m.If(pixels.next):
            self._begin()
        with m.If(self.stop | self.start):
            m.d.sync += self._active.eq(0)

    def _advance(self, tap_ends: Any, row_ends: Any, size: Any) -> None:
        """Within a tap, to the next one, or to the next row of the kernel."""
        m, w, row = self.module, self._words, self._row_at + self._steps.row_step
        with m.If(~tap_ends):
            m.d.sync += self._channel.eq(self._channel + size)
        with m.Else():
            m.d.sync += self._channel.eq(0)
            with m.If(~row_ends):
                m.d.sync += [self._j.eq(self._j + 1), self._x.eq(self._x + octet(w[6], 3))]
                m.d.sync += self._at.eq(self._at + self._steps.tap_step)
            with m.Else():
                m.d.sync += [self._j.eq(0), self._x.eq(self._first_x), self._i.eq(self._i + 1)]
                m.d.sync += [self._y.eq(self._y + octet(w[6], 2)), self._row_at.eq(row), self._at.eq(row)]

    def _begin(self) -> None:
        """The next pixel's window."""
        m, w, steps, pixels = self.module, self._words, self._steps, self._pixels
        merges = steps.merges & (pixels.x >= 0) & (pixels.x + high(w[5]) <= high(w[4]))
        row = pixels.at + steps.skipped_rows
        m.d.sync += [
            *(self._merged.eq(merges), self._y.eq(pixels.y + steps.skipped_y), self._first_x.eq(pixels.x)),
            *(self._x.eq(pixels.x + Mux(merges, 0, steps.skipped_x)), self._i.eq(steps.i)),
            *(self._j.eq(Mux(merges, 0, steps.j)), self._row_at.eq(row)),
            self._channel.eq(steps.channel + Mux(merges, steps.row_channel, 0)),
            self._at.eq(row + Mux(merges, 0, steps.skipped_taps)),
            *(self._lane.eq(0), self._left.eq(high(w[15])), self._base.eq(pixels.base), self._active.eq(1)),
            *(to.eq(number) for to, number in zip(self._map, pixels.map, strict=True)),
        ]

    def _assemble(self, inside: Any, size: Any) -> None:
        """A cycle later the bytes are there."""
        m, width, lane = self.module, self._machine.width, self._lane
        came, ends, was_inside, fresh = Signal(), Signal(), Signal(), Signal()
        mask, kept, found = Signal(width), Signal(8 * width), Signal(8 * width)
        below = lanes_below(lane + size, width) & ~lanes_below(lane, width)
        m.d.sync += [came.eq(self._goes), ends.eq(self._ends), was_inside.eq(inside), fresh.eq(lane == 0)]
        used = [Signal(self._machine.lanes, name=f"used{i}") for i in range(width)]
        m.d.sync += [mask.eq(below), *(to.eq(number) for to, number in zip(used, self._map, strict=True))]
        zero = Mux(self._words[0][:8] == POOL, 0, octet(self._words[16], 0))
        for i in range(width):
            data = Mux(
                self._dense,
                self._memories.activations.word_select(i, 8),
                self._memories.activations.word_select(used[i], 8),
            )
            old = Mux(fresh, 0, kept.word_select(i, 8))
            m.d.comb += found.word_select(i, 8).eq(Mux(mask[i], Mux(was_inside, data, zero), old))
        with m.If(came):
            m.d.sync += kept.eq(found)
        self._pushes, self._pushed = Signal(), Signal(8 * width + 1)
        m.d.comb += [self._pushes.eq(came & ends), self._pushed.eq(Cat(found, was_inside))]

    def _ring(self) -> None:
        m, size = self.module, self._size
        memory = Memory(shape=8 * self._machine.width + 1, depth=size, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.submodules.ring = memory
        last, first = Signal(range(size)), Signal(range(size))
        m.d.comb += [
            *(write.addr.eq(last), write.data.eq(self._pushed), write.en.eq(self._pushes)),
            *(read.addr.eq(first + self.offset), read.en.eq(1)),
            *(self.vector.eq(read.data[:-1]), self.inside.eq(read.data[-1])),
        ]
        m.d.sync += [
            self._claimed.eq(self._claimed + (self._goes & self._ends) - self.frees),
            self.level.eq(self.level + self._pushes - self.frees),
            last.eq(last + self._pushes),
            first.eq(first + self.frees),
        ]
        with m.If(self.start):  # a vector may have come behind a stop
            m.d.sync += [self._claimed.eq(0), self.level.eq(0), last.eq(0), first.eq(0)]
