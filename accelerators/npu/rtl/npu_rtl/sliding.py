"""Windows of depthwise convolutions and pools: taps of a block of channels, several of a column in each cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed

from npu_rtl.memories import Memories
from npu_rtl.numbers import ADDRESS, DEPTHWISE, Machine, high, low, octet
from npu_rtl.windows import KEPT, POSITION, Blocks, Steps


class Sliding:
    """``start`` for a cycle. It reads while it is ``allowed``: row by row of the output, in each of them block by block
    of channels, in each of them column by column. A piece is up to ``ports`` taps of a column of the kernel, and a
    window's last one waits until it ``may_end``; ``ends`` tells that it is read. A cycle later a piece ``came``:
    ``vectors``, and which of them lie ``inside``. A window that slides keeps the columns that it had before."""

    def __init__(self, machine: Machine, memories: Memories, words: Any, steps: Steps) -> None:
        self.module = m = Module()
        ports, vector = range(machine.ports), 8 * machine.width
        self.start, self.stop, self.allowed, self.may_end = Signal(), Signal(), Signal(), Signal()
        self.reads, self.ends = Signal(machine.ports), Signal()
        self.read_at = [Signal(ADDRESS, name=f"tap_at{k}") for k in ports]
        self.came, self.first, self.last, self.tap = Signal(), Signal(), Signal(), Signal(16)
        self.vectors, self.inside = [Signal(vector, name=f"tap{k}") for k in ports], Signal(machine.ports)
        self.groups = Signal(4)
        """In how many parts the array takes a window."""
        self.group, self.window = Signal(3), Signal(8 * machine.tile)
        """Which part is shown: a vector for each row of the array."""
        self._machine, self._memories, self._words, self._steps = machine, memories, words, steps
        self._deep = words[0][:8] == DEPTHWISE
        self._blocks = Blocks(words, machine, steps)
        m.submodules += self._blocks.module
        parts = (steps.taps[:6] + (machine.width - 1)) >> machine.lanes
        m.d.comb += self.groups.eq(Mux(steps.single | ~self._deep, 1, parts))
        self._goes, self._active, self._rests = Signal(), Signal(), Signal(3)
        self._i, self._j, self._columns, self._tap, self._slot = (
            Signal(16, name=name) for name in ("tap_i", "tap_j", "columns_left", "tap_number", "slot")
        )
        self._y, self._top, self._x, self._left = (
            Signal(signed(POSITION), name=name) for name in ("tap_y", "window_y", "tap_x", "window_x")
        )
        self._at, self._column_at, self._window_at = (
            Signal(ADDRESS, name=name) for name in ("piece_at", "column_at", "window_at")
        )
        self._base = Signal(16)
        self._map = [Signal(machine.lanes, name=f"tap_map{i}", init=i) for i in range(machine.width)]
        self._there = Signal(machine.ports)
        self._pieces()
        self._come()
        self._keep()

    def _pieces(self) -> None:
        m, w, steps, blocks, ports = self.module, self._words, self._steps, self._blocks, self._machine.ports
        rest, across = low(w[5]) - self._i, octet(w[6], 2)
        column_ends, window_ends, row_ends, goes_on = Signal(), Signal(), Signal(), Signal()
        inside = (self._x >= 0) & (self._x < high(w[4]))
        for k in range(ports):
            y = self._y + k * across
            m.d.comb += [
                self._there[k].eq((rest > k) & (~steps.single | (k == 0))),
                self.reads[k].eq(goes_on & self._there[k] & inside & (y >= 0) & (y < low(w[4]))),
                self.read_at[k].eq(self._at + k * steps.row_step + self._base),
            ]
        m.d.comb += [
            column_ends.eq(rest <= Mux(steps.single, 1, ports)),
            window_ends.eq(column_ends & (self._j + 1 == high(w[5]))),
            goes_on.eq(self._active & self.allowed & (self._rests == 0) & (~window_ends | self.may_end)),
            self._goes.eq(goes_on & self._memories.read_ready),
            self.ends.eq(self._goes & window_ends),
            row_ends.eq(self.ends & (self._columns == 1)),
            blocks.next.eq(steps.ready & blocks.active & blocks.ready & (~self._active | row_ends)),
            *(blocks.start.eq(self.start), blocks.stop.eq(self.stop)),
        ]
        with m.If(self._rests != 0):
            m.d.sync += self._rests.eq(self._rests - 1)
        with m.If(self.ends):
            m.d.sync += self._rests.eq(self.groups - 1)
        self._advance(column_ends, window_ends)
        with m.If(row_ends):
            m.d.sync += self._active.eq(0)
        with m.If(blocks.next):
            self._window(blocks.at, high(w[7]).as_signed(), blocks.y, 0, 0)
            m.d.sync += [self._active.eq(1), self._columns.eq(high(w[11])), self._base.eq(blocks.base)]
            m.d.sync += [to.eq(number) for to, number in zip(self._map, blocks.map, strict=True)]
        with m.If(self.stop | self.start):
            m.d.sync += [self._active.eq(0), self._rests.eq(0)]

    def _advance(self, column_ends: Any, window_ends: Any) -> None:
        m, w, steps, ports = self.module, self._words, self._steps, self._machine.ports
        across, wide = octet(w[6], 2), high(w[5])
        single = steps.single
        with m.If(self._goes & ~column_ends):
            m.d.sync += [self._i.eq(self._i + Mux(single, 1, ports)), self._tap.eq(self._tap + wide)]
            m.d.sync += self._y.eq(self._y + Mux(single, across, ports * across))
            m.d.sync += self._at.eq(self._at + Mux(single, steps.row_step, ports * steps.row_step))
            m.d.sync += self._slot.eq(Mux(single, 0, self._slot + ports * wide))
        with m.Elif(self._goes & ~window_ends):
            self._column(self._column_at + steps.tap_step, self._x + octet(w[6], 3), self._top, self._j + 1)
        with m.Elif(self._goes):
            m.d.sync += self._columns.eq(self._columns - 1)
            at, left = self._window_at + steps.pixel_x, self._left + octet(w[6], 1)
            self._window(at, left, self._top, steps.kept, wide - steps.moved)

    def _window(self, at: Any, left: Any, top: Any, kept: Any, columns: Any) -> None:
        """So many columns of it are there, and so many bytes."""
        self.module.d.sync += [self._window_at.eq(at), self._left.eq(left), self._top.eq(top)]
        self._column(at + kept, left + columns, top, columns)

    def _column(self, at: Any, x: Any, y: Any, j: Any) -> None:
        self.module.d.sync += [
            *(self._at.eq(at), self._column_at.eq(at), self._x.eq(x), self._y.eq(y), self._i.eq(0)),
            *(self._j.eq(j), self._tap.eq(j), self._slot.eq(Mux(self._steps.single, 0, high(self._words[5]) - 1))),
        ]

    def _come(self) -> None:
        m, machine = self.module, self._machine
        begins = (self._i == 0) & (self._j == 0)
        m.d.sync += [self.came.eq(self._goes), self.first.eq(begins), self.last.eq(self.ends), self.tap.eq(self._tap)]
        m.d.sync += self.inside.eq(self.reads)
        used = [Signal(machine.lanes, name=f"used{i}") for i in range(machine.width)]
        m.d.sync += [to.eq(number) for to, number in zip(used, self._map, strict=True)]
        zero = octet(self._words[16], 0)
        for k, (vector, read) in enumerate(zip(self.vectors, self._memories.activations, strict=True)):
            for i in range(machine.width):
                byte = read.word_select(used[i], 8)
                m.d.comb += vector.word_select(i, 8).eq(Mux(self.inside[k], byte, zero))

    def _keep(self) -> None:
        """Tap after tap. A column that comes moves all of them on by one: it is behind the last one of each row."""
        m, machine, wide = self.module, self._machine, high(self._words[5])
        moves, there, slot = Signal(), Signal(machine.ports), Signal(16)
        m.d.sync += [moves.eq(self._i == 0), there.eq(self._there), slot.eq(self._slot)]
        taps = [Signal(8 * machine.width, name=f"kept{t}") for t in range(KEPT)]
        count = Mux(self._steps.single, 1, self._steps.taps)
        with m.If(self.came & self._deep):
            for t, (tap, behind) in enumerate(zip(taps, (*taps[1:], taps[0]), strict=True)):
                with m.If(moves):
                    m.d.sync += tap.eq(behind)
                for k, vector in enumerate(self.vectors):
                    with m.If(there[k] & (slot + k * wide == t)):
                        m.d.sync += tap.eq(vector)
        for row in range(machine.width):
            shown = self.window.word_select(row, 8 * machine.width)
            with m.Switch(self.group):
                for number in range(KEPT // machine.width):
                    t = number * machine.width + row
                    with m.Case(number):
                        m.d.comb += shown.eq(Mux(count > t, taps[t], 0))
