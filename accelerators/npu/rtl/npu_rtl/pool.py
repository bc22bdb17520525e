"""Pools: the largest value of each lane, or its mean, which takes a digit a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from npu_rtl.numbers import Machine

DIGITS = 8
"""Of a mean without its sign."""


class Pool:
    """``valid`` for each tap, with its ``vector`` and whether it lies ``inside``. ``done`` is the cycle in which
    ``bytes`` are there, or ``empty`` tells that no tap lay inside."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self.valid, self.inside, self.first, self.last = Signal(), Signal(), Signal(), Signal()
        self.average, self.stop = Signal(), Signal()
        self.least, self.greatest = Signal(signed(8)), Signal(signed(8))
        self.vector, self.bytes = Signal(8 * machine.width), Signal(8 * machine.width)
        self.done, self.empty = Signal(), Signal()
        count, digit = Signal(16), Signal(range(DIGITS + 2))
        ends = Signal()
        m.d.sync += ends.eq(self.valid & self.last)
        with m.If(self.valid):
            m.d.sync += count.eq(Mux(self.first, 0, count) + self.inside)
        with m.If(self.stop):
            m.d.sync += digit.eq(0)
        with m.Elif(ends):
            m.d.sync += digit.eq(Mux(count == 0, 1, Mux(self.average, DIGITS + 1, 1)))
        with m.Elif(digit != 0):
            m.d.sync += digit.eq(digit - 1)
        m.d.comb += [self.done.eq(digit == 1), self.empty.eq(count == 0)]
        for lane in range(machine.width):
            self._lane(lane, count, digit, ends)

    def _lane(self, lane: int, count: Signal, digit: Signal, ends: Signal) -> None:
        m = self.module
        value = self.vector.word_select(lane, 8).as_signed()
        largest, total = Signal(signed(8), name=f"largest{lane}"), Signal(signed(25), name=f"total{lane}")
        rest, mean = Signal(25, name=f"rest{lane}"), Signal(DIGITS, name=f"mean{lane}")
        before = Mux(self.first, -128, largest)
        with m.If(self.valid):
            m.d.sync += largest.eq(Mux(self.inside & (value > before), value, before))
            m.d.sync += total.eq(Mux(self.first, 0, total) + Mux(self.inside, value, 0))
        size = Mux(total < 0, -total, total)
        parts = Signal(25, name=f"parts{lane}")
        m.d.comb += parts.eq(count << (digit - 2)[:3])
        fits = rest >= parts
        with m.If(ends):
            m.d.sync += [rest.eq(size + (count >> 1)), mean.eq(0)]
        with m.Elif(digit > 1):
            m.d.sync += [rest.eq(Mux(fits, rest - parts, rest)), mean.eq(Cat(fits, mean))]
        found = Signal(signed(10), name=f"found{lane}")
        m.d.comb += found.eq(Mux(self.average, Mux(total < 0, -mean, mean), largest))
        clamped = Mux(found < self.least, self.least, Mux(found > self.greatest, self.greatest, found))
        m.d.comb += self.bytes.word_select(lane, 8).eq(clamped)
