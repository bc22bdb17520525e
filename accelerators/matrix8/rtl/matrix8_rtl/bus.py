"""What the two DMA engines share: an AXI4 master of eight bytes, and how rows of bytes become bursts."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal

from matrix8_rtl.numbers import LANES

BORDER = 256
"""Words between addresses that no burst crosses: 2 KiB, so that none is too long, or crosses 4 KiB."""


class Addresses:
    """An address channel, on which rows are asked for, ``stride`` apart. ``start`` for a cycle."""

    def __init__(self, prefix: str) -> None:
        self.module = m = Module()
        self.valid, self.ready = Signal(name=f"m_{prefix}valid"), Signal(name=f"m_{prefix}ready")
        self.address = Signal(32, name=f"m_{prefix}addr")
        self.length = Signal(8, name=f"m_{prefix}len")
        self.start = Signal(name=f"{prefix}_start")
        self.first, self.stride = Signal(32, name=f"{prefix}_first"), Signal(32, name=f"{prefix}_stride")
        self.rows, self.bytes = Signal(15, name=f"{prefix}_rows"), Signal(15, name=f"{prefix}_bytes")
        self.active, self.asked = Signal(name=f"{prefix}_active"), Signal(name=f"{prefix}_asked")
        row, left, words, burst = Signal(32), Signal(15), Signal(13), Signal(13)
        to_border, following = Signal(9), Signal(32)
        m.d.comb += [
            to_border.eq(BORDER - self.address[3:11]),
            burst.eq(Mux(words > to_border, to_border, words)),
            self.length.eq(burst - 1),
            self.valid.eq(self.active),
            self.asked.eq(self.active & self.ready),
            following.eq(row + self.stride),
        ]

        def begin(at: Any) -> None:
            m.d.sync += [row.eq(at), self.address.eq(at & ~7), words.eq(words_of(at, self.bytes))]

        with m.If(self.start):
            begin(self.first)
            m.d.sync += [left.eq(self.rows), self.active.eq(1)]
        with m.Elif(self.asked):
            with m.If(burst != words):
                m.d.sync += [self.address.eq(self.address + (burst << 3)), words.eq(words - burst)]
            with m.Else():
                begin(following)
                m.d.sync += [left.eq(left - 1), self.active.eq(left != 1)]

    @property
    def ports(self) -> list[Any]:
        return [self.valid, self.ready, self.address, self.length]


def words_of(address: Any, count: Any) -> Any:
    """How many words of the bus hold so many bytes from this address on."""
    return (address[:3] + count + (LANES - 1)) >> 3
