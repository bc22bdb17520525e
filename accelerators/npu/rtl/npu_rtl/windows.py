"""What feeding needs of a window: the numbers that are the same for all pixels, and where the next pixel is."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Module, Mux, Signal, signed

from npu_rtl.numbers import ADDRESS, CONVOLVE, DEPTHWISE, Machine, high, low, octet

POSITION: Final = 28
"""Bits of a row's or a column's number, or of a byte's in its row."""
KEPT: Final = 32
"""Taps of a window that slides: columns that it had before stay."""


class Steps:
    """``start`` for a cycle; once it is ``ready`` the numbers are there. Taps of the steps before the first one are
    skipped: ``i``, ``j`` and ``channel`` are where a window begins."""

    def __init__(self, words: Any, machine: Machine) -> None:
        self.module = m = Module()
        self.start, self.stop, self.ready = Signal(), Signal(), Signal()
        numbers = ("row_step", "tap_step", "pixel_y", "pixel_x", "first_y", "first_x", "kept")
        found = {name: Signal(ADDRESS, name=name) for name in numbers}
        self.row_step, self.tap_step, self.pixel_y, self.pixel_x, self.first_y, self.first_x, self.kept = found.values()
        self.row_bytes, self.input_bytes, self.depth = Signal(32), Signal(32), Signal(40)
        """Of a kernel row, of the input's columns, of a window."""
        self.merges = Signal()
        """Whether a row of the kernel is one run."""
        self.moved, self.slides = Signal(16), Signal()
        """Columns of the kernel that are read for a window behind another one, and whether others stay."""
        self.taps, self.single = Signal(32), Signal()
        """Whether a depthwise window has more of them than can be kept, so that each is used as it comes."""
        self.i, self.j, self.channel, self.row_channel = Signal(16), Signal(16), Signal(21), Signal(21)
        self.skipped_rows, self.skipped_taps = Signal(ADDRESS), Signal(ADDRESS)
        self.skipped_y, self.skipped_x = Signal(signed(POSITION)), Signal(signed(POSITION))
        self._skip = Signal(21)
        m.d.comb += self.channel.eq(self._skip)
        dense, active, multiplied = words[0][:8] == CONVOLVE, Signal(), Signal()
        whole, near = low(words[3]) == high(words[3]), octet(words[6], 3) == 1
        stride, deep = octet(words[6], 1), words[0][:8] == DEPTHWISE
        m.d.sync += self.taps.eq(low(words[5]) * high(words[5]))
        m.d.comb += [
            self.merges.eq(dense & whole & near),
            self.single.eq(deep & (self.taps > KEPT)),
            self.slides.eq(deep & ~self.single & near & (stride < high(words[5]))),
            self.moved.eq(Mux(self.slides, stride, high(words[5]))),
        ]
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
        self._multiply(words, (self.row_bytes, self.input_bytes, self.depth, *found.values()), multiplied)

    def _multiply(self, words: Any, targets: Any, done: Any) -> None:
        """One product after the other."""
        m, row, pixel = self.module, words[2], low(words[3])
        products = (
            (high(words[5]), high(words[3])),
            (high(words[4]), high(words[3])),
            (low(words[5]), self.row_bytes),
            (octet(words[6], 2), row),
            (octet(words[6], 3), pixel),
            (octet(words[6], 0), row),
            (octet(words[6], 1), pixel),
            (low(words[7]).as_signed(), row),
            (high(words[7]).as_signed(), pixel),
            (high(words[5]) - self.moved, pixel),
        )
        number, a, b = Signal(range(len(products) + 2)), Signal(signed(18)), Signal(32)
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
    """The next pixel of a convolution: ``x``, ``y`` and ``at`` are those of the window's first tap, ``byte`` its
    number in its row."""

    def __init__(self, words: Any, steps: Steps) -> None:
        self.module = m = Module()
        self.start, self.stop, self.next, self.active = Signal(), Signal(), Signal(), Signal()
        self.x, self.y, self.byte = (Signal(signed(POSITION), name=f"pixel_{name}") for name in ("x", "y", "byte"))
        self.at = Signal(ADDRESS)
        rows, columns = Signal(16), Signal(16)
        row_at, begin = Signal(ADDRESS), Signal(ADDRESS)
        first_x, first_y = high(words[7]).as_signed(), low(words[7]).as_signed()
        first_byte, ends = steps.first_x.as_signed(), columns == 1
        m.d.comb += begin.eq(words[1] + steps.first_y + steps.first_x)
        with m.If(~steps.ready):
            m.d.sync += [self.at.eq(begin), row_at.eq(begin), self.byte.eq(first_byte)]
        with m.If(self.start):
            m.d.sync += [rows.eq(low(words[11])), columns.eq(high(words[11])), self.active.eq(1)]
            m.d.sync += [self.x.eq(first_x), self.y.eq(first_y)]
        with m.Elif(self.next & ends):
            m.d.sync += [columns.eq(high(words[11])), rows.eq(rows - 1), self.active.eq(rows != 1)]
            m.d.sync += [self.x.eq(first_x), self.y.eq(self.y + octet(words[6], 0)), self.byte.eq(first_byte)]
            m.d.sync += [row_at.eq(row_at + steps.pixel_y), self.at.eq(row_at + steps.pixel_y)]
        with m.Elif(self.next):
            m.d.sync += [columns.eq(columns - 1), self.x.eq(self.x + octet(words[6], 1))]
            m.d.sync += [self.at.eq(self.at + steps.pixel_x), self.byte.eq(self.byte + steps.pixel_x)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)


class Blocks:
    """The next block of channels of an output row: ``at`` and ``y`` are those of the row's first tap, ``base`` the
    first channel that is read. It is ``ready`` once ``map`` tells which of the bytes from there on each lane takes: a
    depthwise command's multiplier lets lanes share one."""

    def __init__(self, words: Any, machine: Machine, steps: Steps) -> None:
        self.module = m = Module()
        self.start, self.next, self.stop, self.active = Signal(), Signal(), Signal(), Signal()
        self.ready, self.base = Signal(), Signal(16)
        self.at, self.y = Signal(ADDRESS), Signal(signed(POSITION))
        self.map = [Signal(machine.lanes, name=f"next_map{i}") for i in range(machine.width)]
        self._last = Signal()
        rows, left, channels = Signal(16), Signal(17), high(words[10])
        m.d.comb += self._last.eq(left <= machine.width)
        with m.If(~steps.ready):
            m.d.sync += self.at.eq(words[1] + steps.first_y + steps.first_x)
        with m.If(self.start):
            m.d.sync += [rows.eq(low(words[11])), left.eq(channels), self.active.eq(1)]
            m.d.sync += self.y.eq(low(words[7]).as_signed())
        with m.Elif(self.next & ~self._last):
            m.d.sync += left.eq(left - machine.width)
        with m.Elif(self.next):
            m.d.sync += [left.eq(channels), rows.eq(rows - 1), self.active.eq(rows != 1)]
            m.d.sync += [self.y.eq(self.y + octet(words[6], 0)), self.at.eq(self.at + steps.pixel_y)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
        self._channels(words, machine)

    def _channels(self, words: Any, machine: Machine) -> None:
        m, multiplier = self.module, high(words[3])
        shares = (words[0][:8] == DEPTHWISE) & (multiplier != 1)
        channel, rest, lane = Signal(16), Signal(16), Signal(machine.lanes)
        with m.If(self.start | self.next):
            begins = self.start | self._last
            m.d.sync += self.ready.eq(~shares)
            with m.If(begins):
                m.d.sync += [channel.eq(0), rest.eq(0)]
            m.d.sync += self.base.eq(Mux(begins, 0, self.base + machine.width))
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
