"""Where blocks of channels lie: pixel after pixel, row after row."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal

from npu_rtl.numbers import ADDRESS, Machine, high, lanes_below, low


class Places:
    """``start`` for a cycle. Then ``at`` and ``mask`` are those of a block of a pixel, until ``next`` goes on. Words
    are those of a windowed command; ``first``, ``row`` and ``pixel`` its address, and what lies between rows and
    pixels. Blocks follow each other pixel by pixel; where windows ``slide``, pixels of a row block by block."""

    def __init__(self, name: str, machine: Machine, words: Any, place: tuple[Any, Any, Any], slide: Any) -> None:
        self.module = m = Module()
        self.start, self.next = Signal(name=f"{name}_start"), Signal(name=f"{name}_next")
        self.stop = Signal(name=f"{name}_stop")
        self.active = Signal(name=f"{name}_active")
        self.at, self.mask = Signal(ADDRESS, name=f"{name}_at"), Signal(machine.width, name=f"{name}_mask")
        self.block = Signal(13, name=f"{name}_block")
        self.last_block, self.last_column = Signal(name=f"{name}_last_block"), Signal(name=f"{name}_last_column")
        first, row, pixel = place
        rows, columns, left = Signal(16), Signal(16), Signal(17)
        row_at, begin_at = Signal(ADDRESS), Signal(ADDRESS)
        m.d.comb += [self.last_block.eq(left <= machine.width), self.mask.eq(lanes_below(left, machine.width))]
        m.d.comb += self.last_column.eq(columns == 1)
        block_ends = Mux(slide, self.last_column, 1) & ~self.last_block
        pixel_ends = Mux(slide, 1, self.last_block) & ~self.last_column

        def blocks() -> None:
            m.d.sync += [left.eq(high(words[10])), self.block.eq(0)]

        with m.If(self.start):
            blocks()
            m.d.sync += [*(to.eq(first) for to in (self.at, begin_at, row_at)), rows.eq(low(words[11]))]
            m.d.sync += [columns.eq(high(words[11])), self.active.eq(1)]
        with m.Elif(self.next & block_ends):
            following = Mux(slide, begin_at, self.at) + machine.width
            m.d.sync += [self.at.eq(following), left.eq(left - machine.width), self.block.eq(self.block + 1)]
            with m.If(slide):
                m.d.sync += [begin_at.eq(following), columns.eq(high(words[11]))]
        with m.Elif(self.next & pixel_ends):
            following = Mux(slide, self.at, begin_at) + pixel
            m.d.sync += [self.at.eq(following), columns.eq(columns - 1)]
            with m.If(~slide):
                blocks()
                m.d.sync += begin_at.eq(following)
        with m.Elif(self.next):
            blocks()
            m.d.sync += [to.eq(row_at + row) for to in (self.at, begin_at, row_at)]
            m.d.sync += [columns.eq(high(words[11])), rows.eq(rows - 1), self.active.eq(rows != 1)]
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
