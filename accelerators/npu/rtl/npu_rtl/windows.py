"""What the feeder needs of a window: the numbers that are the same for all pixels, and where the next pixel is."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Module, Mux, Signal, signed

from npu_rtl.numbers import ADDRESS, CONVOLVE, DEPTHWISE, Machine, high, low, octet

POSITION: Final = 28
"""Bits of a row's or a column's number."""


class Steps:
    """``start`` for a cycle; once it is ``ready`` the numbers are there. Taps of the steps before the first one are
    skipped: ``i``, ``j`` and ``channel`` are where a window begins."""

    def __init__(self, words: Any, machine: Machine) -> None:
        self.module = m = Module()
        self.start, self.stop, self.ready = Signal(), Signal(), Signal()
        numbers = ("row_step", "tap_step", "pixel_y", "pixel_x", "first_y", "first_x")
        found = {name: Signal(ADDRESS, name=name) for name in numbers}
        self.row_step, self.tap_step, self.pixel_y, self.pixel_x, self.first_y, self.first_x = found.values()
        self.row_bytes = Signal(32)
        self.merges = Signal()
        """Whether a row of the kernel that lies inside is one run."""
        self.i, self.j, self.channel, self.row_channel = Signal(16), Signal(16), Signal(21), Signal(21)
        self.skipped_rows, self.skipped_taps = Signal(ADDRESS), Signal(ADDRESS)
        self.skipped_y, self.skipped_x = Signal(signed(POSITION)), Signal(signed(POSITION))
        self._skip = Signal(21)
        m.d.comb += self.channel.eq(self._skip)
        dense, active, multiplied = words[0][:8] == CONVOLVE, Signal(), Signal()
        whole = low(words[3]) == high(words[3])
        m.d.comb += self.merges.eq(dense & whole & (octet(words[6], 3) == 1))
        with m.If(self.start):
            m.d.sync += [active.eq(1), self.ready.eq(0), self._skip.eq(Mux(dense, low(words[15]) << machine.lanes, 0))]
            m.d.sync += [target.eq(0) for target in (self.i, self.j, self.row_channel, self.skipped_rows)]
            m.d.sync += [target.eq(0) for target in (self.skipped_taps, self.skipped_y, self.skipped_x)]
        with m.Elif(active & multiplied & dense & (self._skip >= high(words[3]))):
            self._next_tap(words)
        with m.Elif(active & multiplied):
            m.d.sync += [active.eq(0), self.ready.eq(1)]
        with m.If(self.stop):
            m.d.sync += [active.eq(0), self.ready.eq(0)]
        self._multiply(words, (*found.values(), self.row_bytes), multiplied)

    def _multiply(self, words: Any, targets: Any, done: Any) -> None:
        """One product after the other."""
        m, row, pixel = self.module, words[2], low(words[3])
        products = (
            (octet(words[6], 2), row),
            (octet(words[6], 3), pixel),
            (octet(words[6], 0), row),
            (octet(words[6], 1), pixel),
            (low(words[7]).as_signed(), row),
            (high(words[7]).as_signed(), pixel),
            (high(words[5]), high(words[3])),
        )
        number, a, b = Signal(range(len(products) + 2)), Signal(signed(17)), Signal(32)
        product = Signal(signed(50))
        m.d.comb += [product.eq(a * b), done.eq(number == len(products) + 1)]
        with m.If(self.start):
            m.d.sync += number.eq(0)
        with m.Elif(~done):
            m.d.sync += number.eq(number + 1)
        with m.Switch(number):
            for i, (one, two) in enumerate(products):
                with m.Case(i):
                    m.d.sync += [a.eq(one), b.eq(two)]
        with m.Switch(number):
            for i, target in enumerate(targets):
                with m.Case(i + 1):
                    m.d.sync += target.eq(product)

    def _next_tap(self, words: Any) -> None:
        m, run = self.module, high(words[3])
        m.d.sync += self._skip.eq(self._skip - run)
        with m.If(self.j + 1 == high(words[5])):
            m.d.sync += [self.j.eq(0), self.i.eq(self.i + 1), self.skipped_rows.eq(self.skipped_rows + self.row_step)]
            m.d.sync += [self.skipped_y.eq(self.skipped_y + octet(words[6], 2)), self.skipped_x.eq(0)]
            m.d.sync += [self.skipped_taps.eq(0), self.row_channel.eq(0)]
        with m.Else():
            m.d.sync += [self.j.eq(self.j + 1), self.skipped_taps.eq(self.skipped_taps + self.tap_step)]
            m.d.sync += self.skipped_x.eq(self.skipped_x + octet(words[6], 3))
            m.d.sync += self.row_channel.eq(self.row_channel + run)


class Pixels:
    """The next pixel, and without a convolution its next block: ``x``, ``y`` and ``at`` are those of the window's first
    tap, ``base`` the first channel that is read. It is ``ready`` once ``map`` tells which of the bytes from there on
    each lane takes: the multiplier of a depthwise command lets lanes share one."""

    def __init__(self, words: Any, machine: Machine, steps: Steps) -> None:
        self.module = m = Module()
        self.start, self.stop, self.next, self.active = Signal(), Signal(), Signal(), Signal()
        self.ready = Signal()
        self.x, self.y = Signal(signed(POSITION)), Signal(signed(POSITION))
        self.at, self.base = Signal(ADDRESS), Signal(16)
        self.map = [Signal(machine.lanes, name=f"next_map{i}") for i in range(machine.width)]
        rows, columns, left = Signal(16), Signal(16), Signal(17)
        row_at, begin = Signal(ADDRESS), Signal(ADDRESS)
        channels = Mux(words[0][:8] == CONVOLVE, 1, high(words[10]))
        first_x, first_y = high(words[7]).as_signed(), low(words[7]).as_signed()
        last_block, ends = left <= machine.width, columns == 1
        m.d.comb += begin.eq(words[1] + steps.first_y + steps.first_x)
        with m.If(~steps.ready):
            m.d.sync += [self.at.eq(begin), row_at.eq(begin)]
        with m.If(self.start):
            m.d.sync += [rows.eq(low(words[11])), columns.eq(high(words[11])), left.eq(channels), self.active.eq(1)]
            m.d.sync += [self.x.eq(first_x), self.y.eq(first_y)]
        with m.Elif(self.next & ~last_block):
            m.d.sync += left.eq(left - machine.width)
        with m.Elif(self.next):
            m.d.sync += [left.eq(channels), columns.eq(Mux(ends, high(words[11]), columns - 1))]
            with m.If(ends):
                m.d.sync += [rows.eq(rows - 1), self.active.eq(rows != 1), self.x.eq(first_x)]
                m.d.sync += [self.y.eq(self.y + octet(words[6], 0)), row_at.eq(row_at + steps.pixel_y)]
                m.d.sync += self.at.eq(row_at + steps.pixel_y)
            with m.Else():
                m.d.sync += [self.x.eq(self.x + octet(words[6], 1)), self.at.eq(self.at + steps.pixel_x)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
        self._channels(words, machine, last_block)

    def _channels(self, words: Any, machine: Machine, last_block: Any) -> None:
        """One lane after the other, where lanes share channels."""
        m = self.module
        shares, multiplier = (words[0][:8] == DEPTHWISE) & (high(words[3]) != 1), high(words[3])
        channel, rest, lane = Signal(16), Signal(16), Signal(machine.lanes)
        with m.If(self.start | self.next):
            m.d.sync += self.ready.eq(~shares)
            with m.If(self.start | last_block):
                m.d.sync += [channel.eq(0), rest.eq(0)]
            m.d.sync += self.base.eq(Mux(self.start | last_block, 0, self.base + machine.width))
            m.d.sync += [number.eq(i) for i, number in enumerate(self.map)]
        with m.Elif(~self.ready & self.active):
            wraps = rest + 1 == multiplier
            m.d.sync += [rest.eq(Mux(wraps, 0, rest + 1)), channel.eq(channel + wraps), lane.eq(lane + 1)]
            m.d.sync += self.ready.eq(lane == machine.width - 1)
            with m.If(lane == 0):
                m.d.sync += self.base.eq(channel)
            for i, number in enumerate(self.map):
                with m.If(lane == i):
                    m.d.sync += number.eq(0 if i == 0 else channel - self.base)
        with m.If(self.stop):
            m.d.sync += lane.eq(0)
