"""Pools: the largest value of each lane, or its mean, a digit in each cycle, beside the next window's taps."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from npu_rtl.numbers import Machine

DIGITS = 8
"""Of a mean without its sign."""


class Pool:
    """``valid`` for each piece, with its ``vectors`` and which of them lie ``inside``. ``done`` is the cycle in which
    ``bytes`` are there, or ``empty`` tells that no tap lay inside; a mean must not end within ``DIGITS``
    cycles behind another one."""

    def __init__(self, machine: Machine, vectors: list[Any]) -> None:
        self.module = m = Module()
        self.valid, self.inside, self.first, self.last = Signal(), Signal(len(vectors)), Signal(), Signal()
        self.average, self.stop = Signal(), Signal()
        self.least, self.greatest = Signal(signed(8)), Signal(signed(8))
        self.bytes = Signal(8 * machine.width)
        self.ends, self.done, self.empty = Signal(), Signal(), Signal()
        """``ends``: a cycle behind the last piece."""
        count, held, digit = Signal(16), Signal(16), Signal(range(DIGITS + 2))
        m.d.sync += self.ends.eq(self.valid & self.last & ~self.stop)
        with m.If(self.valid):
            m.d.sync += count.eq(Mux(self.first, 0, count) + sum(self.inside[1:], self.inside[0]))
        with m.If(self.stop):
            m.d.sync += digit.eq(0)
        with m.Elif(self.ends):
            m.d.sync += [digit.eq(Mux((count != 0) & self.average, DIGITS + 1, 1)), held.eq(count)]
        with m.Elif(digit != 0):
            m.d.sync += digit.eq(digit - 1)
        m.d.comb += [self.done.eq(digit == 1), self.empty.eq(held == 0)]
        parts = Signal(25)
        m.d.comb += parts.eq(held << (digit - 2)[:3])
        for lane in range(machine.width):
            self._lane(lane, [vector.word_select(lane, 8).as_signed() for vector in vectors], count, parts, digit)

    def _lane(self, lane: int, values: list[Any], count: Signal, parts: Signal, digit: Signal) -> None:
        m = self.module
        largest, total = Signal(signed(8), name=f"largest{lane}"), Signal(signed(25), name=f"total{lane}")
        rest, mean = Signal(25, name=f"rest{lane}"), Signal(DIGITS, name=f"mean{lane}")
        most, negative = Signal(signed(8), name=f"most{lane}"), Signal(name=f"negative{lane}")
        greatest: Any = Mux(self.first, -128, largest)
        more: Any = Mux(self.first, 0, total)
        for k, value in enumerate(values):
            kept = Signal(signed(8), name=f"greatest{lane}_{k}")
            m.d.comb += kept.eq(Mux(self.inside[k] & (value > greatest), value, greatest))
            greatest, more = kept, more + Mux(self.inside[k], value, 0)
        with m.If(self.valid):
            m.d.sync += [largest.eq(greatest), total.eq(more)]
        size = Mux(total < 0, -total, total)
        fits = rest >= parts
        with m.If(self.ends):
            m.d.sync += [rest.eq(size + (count >> 1)), mean.eq(0), most.eq(largest), negative.eq(total < 0)]
        with m.Elif(digit > 1):
            m.d.sync += [rest.eq(Mux(fits, rest - parts, rest)), mean.eq(Cat(fits, mean))]
        found = Signal(signed(10), name=f"found{lane}")
        m.d.comb += found.eq(Mux(self.average, Mux(negative, -mean, mean), most))
        clamped = Mux(found < self.least, self.least, Mux(found > self.greatest, self.greatest, found))
        m.d.comb += self.bytes.word_select(lane, 8).eq(clamped)
