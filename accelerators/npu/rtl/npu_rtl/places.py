"""Where blocks of channels lie: pixel after pixel, row after row."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal

from npu_rtl.numbers import ADDRESS, Machine, high, lanes_below, low


class Places:
    """``start`` for a cycle. Then ``at`` and ``mask`` are those of a block of a pixel, until ``next`` goes on. Words
    are those of a windowed command; ``first``, ``row`` and ``pixel`` its address, and what lies between rows and
    pixels."""

    def __init__(self, name: str, machine: Machine, words: Any, first: Any, row: Any, pixel: Any) -> None:
        self.module = m = Module()
        self.start, self.next = Signal(name=f"{name}_start"), Signal(name=f"{name}_next")
        self.stop = Signal(name=f"{name}_stop")
        self.active = Signal(name=f"{name}_active")
        self.at, self.mask = Signal(ADDRESS, name=f"{name}_at"), Signal(machine.width, name=f"{name}_mask")
        self.block, self.pixels = Signal(13, name=f"{name}_block"), Signal(32, name=f"{name}_pixels")
        """Which block it is, and how many pixels came before."""
        self.last_block = Signal(name=f"{name}_last_block")
        rows, columns, left = Signal(16), Signal(16), Signal(17)
        row_at, pixel_at = Signal(ADDRESS), Signal(ADDRESS)
        m.d.comb += [self.last_block.eq(left <= machine.width), self.mask.eq(lanes_below(left, machine.width))]

        def begin(address: Any) -> None:
            m.d.sync += [self.at.eq(address), pixel_at.eq(address), left.eq(high(words[10])), self.block.eq(0)]

        with m.If(self.start):
            begin(first)
            m.d.sync += [row_at.eq(first), rows.eq(low(words[11])), columns.eq(high(words[11])), self.pixels.eq(0)]
            m.d.sync += self.active.eq(1)
        with m.Elif(self.next & ~self.last_block):
            m.d.sync += [self.at.eq(self.at + machine.width), left.eq(left - machine.width)]
            m.d.sync += self.block.eq(self.block + 1)
        with m.Elif(self.next):
            ends = columns == 1
            following = Mux(ends, row_at + row, pixel_at + pixel)
            begin(following)
            m.d.sync += [columns.eq(Mux(ends, high(words[11]), columns - 1)), self.pixels.eq(self.pixels + 1)]
            with m.If(ends):
                m.d.sync += [row_at.eq(following), rows.eq(rows - 1), self.active.eq(rows != 1)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
