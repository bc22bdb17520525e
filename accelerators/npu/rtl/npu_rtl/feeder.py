"""Windows of a convolution become vectors for the array: the bytes of a step each."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib.memory import Memory

from npu_rtl.memories import Memories
from npu_rtl.numbers import ADDRESS, Machine, high, lanes_below, low, octet
from npu_rtl.windows import POSITION, Pixels, Steps


class Feeder:
    """``start`` for a cycle, with the command's ``words`` until all are fed; ``stop`` forgets everything. Vectors wait
    in a ring: ``level`` of them are there, from ``first`` on, and ``frees`` lets go of one.

    In each cycle it reads a piece of a run, up to a vector, wherever the vector under way has got to. What is too much
    for that one begins the next."""

    def __init__(self, machine: Machine, memories: Memories, words: Any, steps: Steps) -> None:
        self.module = Module()
        self.start, self.stop = Signal(), Signal()
        self.frees, self.offset = Signal(), Signal(16)
        self.reads, self.read_at = Signal(), Signal(ADDRESS)
        size = 1 << (2 * machine.weights // machine.tile - 1).bit_length()
        self.level = Signal(range(size + 1))
        self.vector = Signal(8 * machine.width)
        """A cycle after ``offset``."""
        self._machine, self._memories, self._words, self._size = machine, memories, words, size
        self._claimed, self._goes, self._ends = Signal(range(size + 1)), Signal(), Signal()
        self._active, self._flushes = Signal(), Signal()
        self._y, self._x, self._first_x = (Signal(signed(POSITION), name=name) for name in ("y", "x", "first_x"))
        self._i, self._j = Signal(16), Signal(16)
        self._byte = Signal(signed(POSITION))
        """Of the input's row, where the kernel's begins."""
        self._channel, self._lane, self._left = Signal(21), Signal(machine.lanes), Signal(40)
        self._row_at, self._at = Signal(ADDRESS), Signal(ADDRESS)
        self._steps, self._pixels = steps, Pixels(words, steps)
        self.module.submodules += self._pixels.module
        self._window()
        self._ring()

    def _window(self) -> None:
        m, w, machine, steps, pixels = self.module, self._words, self._machine, self._steps, self._pixels
        width = machine.width
        rest, most, size = Signal(21), Signal(machine.lanes + 1), Signal(machine.lanes + 1)
        tap_ends, row_ends, window_ends, block_ends, room = (Signal() for _ in range(5))
        m.d.comb += [
            room.eq(self._active & (self._claimed != self._size)),
            rest.eq(Mux(steps.merges, steps.row_bytes, high(w[3])) - self._channel),
            most.eq(Mux(rest < width, rest, width)),
            size.eq(Mux(window_ends, self._left, most)),
            tap_ends.eq(rest <= width),
            row_ends.eq(tap_ends & (steps.merges | (self._j + 1 == high(w[5])))),
            window_ends.eq(self._left <= most),
            self._ends.eq(self._flushes | window_ends | (self._lane + size >= width)),
            block_ends.eq(self._flushes | (window_ends & (self._lane + size <= width))),
            self.reads.eq(room & ~self._flushes),
            self.read_at.eq(self._at + self._channel),
            self._goes.eq(room & (self._flushes | self._memories.read_ready)),
            pixels.next.eq(steps.ready & pixels.active & (~self._active | (self._goes & block_ends))),
            *(pixels.start.eq(self.start), pixels.stop.eq(self.stop)),
        ]
        self._assemble(size)
        with m.If(self._goes):
            m.d.sync += [self._lane.eq(self._lane + size), self._left.eq(self._left - size)]
            m.d.sync += self._flushes.eq(window_ends & ~block_ends)
            self._advance(tap_ends, row_ends, size)
            with m.If(block_ends):
                m.d.sync += self._active.eq(0)
        with m.If(pixels.next):
            self._begin()
        with m.If(self.stop | self.start):
            m.d.sync += [self._active.eq(0), self._flushes.eq(0)]

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
        m, w, steps, pixels, machine = self.module, self._words, self._steps, self._pixels, self._machine
        merges, row = steps.merges, pixels.at + steps.skipped_rows
        bytes_, whole = high(w[15]) << machine.lanes, steps.depth - (low(w[15]) << machine.lanes)
        m.d.sync += [
            *(self._y.eq(pixels.y + steps.skipped_y), self._first_x.eq(pixels.x), self._byte.eq(pixels.byte)),
            *(self._x.eq(pixels.x + steps.skipped_x), self._i.eq(steps.i), self._j.eq(steps.j)),
            *(self._row_at.eq(row), self._at.eq(row + Mux(merges, 0, steps.skipped_taps))),
            self._channel.eq(steps.channel + Mux(merges, steps.row_channel, 0)),
            *(self._lane.eq(0), self._active.eq(1), self._flushes.eq(0)),
            self._left.eq(Mux(whole < bytes_, whole, bytes_)),
        ]

    def _inside(self) -> Any:
        """Of a piece's bytes those that lie in the input: of a row that is one run any, of a tap all or none."""
        w, steps, width = self._words, self._steps, self._machine.width
        at = self._byte + self._channel
        row = (self._y >= 0) & (self._y < low(w[4]))
        some = lanes_below(steps.input_bytes - at, width) & ~lanes_below(-at, width)
        column = (self._x >= 0) & (self._x < high(w[4]))
        return Mux(row, Mux(steps.merges, some, column.replicate(width)), 0)

    def _assemble(self, size: Any) -> None:
        """A cycle later the bytes are there."""
        m, width, vector = self.module, self._machine.width, 8 * self._machine.width
        came, ends, lane = Signal(), Signal(), Signal(self._machine.lanes)
        there, inside = Signal(width), Signal(width)
        kept, piece, found = Signal(vector), Signal(vector), Signal(2 * vector)
        m.d.sync += [came.eq(self._goes), ends.eq(self._ends), lane.eq(self._lane), inside.eq(self._inside())]
        m.d.sync += there.eq(Mux(self._flushes, 0, lanes_below(size, width)))
        zero = octet(self._words[16], 0)
        for i in range(width):
            byte = self._memories.activations[0].word_select(i, 8)
            m.d.comb += piece.word_select(i, 8).eq(Mux(there[i], Mux(inside[i], byte, zero), 0))
        m.d.comb += found.eq(kept | (piece << (lane << 3)))
        with m.If(came):
            m.d.sync += kept.eq(Mux(ends, found[vector:], found[:vector]))
        with m.If(self.start):
            m.d.sync += kept.eq(0)
        self._pushes, self._pushed = Signal(), Signal(vector)
        m.d.comb += [self._pushes.eq(came & ends), self._pushed.eq(found[:vector])]

    def _ring(self) -> None:
        m, size = self.module, self._size
        memory = Memory(shape=8 * self._machine.width, depth=size, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.submodules.ring = memory
        last, first = Signal(range(size)), Signal(range(size))
        m.d.comb += [
            *(write.addr.eq(last), write.data.eq(self._pushed), write.en.eq(self._pushes)),
            *(read.addr.eq(first + self.offset), read.en.eq(1), self.vector.eq(read.data)),
        ]
        m.d.sync += [
            self._claimed.eq(self._claimed + (self._goes & self._ends) - self.frees),
            self.level.eq(self.level + self._pushes - self.frees),
            last.eq(last + self._pushes),
            first.eq(first + self.frees),
        ]
        with m.If(self.start):  # a vector may have come behind a stop
            m.d.sync += [self._claimed.eq(0), self.level.eq(0), last.eq(0), first.eq(0)]
