"""Constants that come as a code (docs/reference/npu.md): beats go in, and up to two bytes a cycle come out."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import C, Cat, Module, Mux, Signal

from npu_rtl.numbers import Machine

BLOCK_BITS, KIND_BITS, PLAIN = 5, 3, 7
ONES: Final = 16
"""Bits that are looked at for the end of a number's ones; where there are as many ones, they go alone."""
LONGEST: Final = ONES + PLAIN - 1
HELD: Final = 64
"""Bits that may wait when a beat comes."""
VALUE: Final = 9
"""Bits of a number that are in its byte."""


class Unpacker:
    """``start`` for a cycle. A ``beat`` comes where it is ``ready``, with ``bits`` of ``data``, and zeros behind them;
    ``last``: no further one does. With ``valid`` there are the bytes ``mask`` of ``bytes``, number ``at`` and so on of
    ``count``, until they are ``taken``. ``done`` with the last byte, or with the last beat."""

    def __init__(self, machine: Machine) -> None:
        self.module = Module()
        self.start, self.count, self.active = Signal(), Signal(32), Signal()
        self.beat, self.last, self.ready = Signal(), Signal(), Signal()
        self.data, self.bits = Signal(8 * machine.bus), Signal(range(8 * machine.bus + 1))
        self.valid, self.taken, self.done = Signal(), Signal(), Signal()
        self.bytes, self.mask, self.at = Signal(8 * machine.unpack), Signal(machine.unpack), Signal(32)
        self._held, self._there = Signal(HELD + 8 * machine.bus), Signal(range(HELD + 8 * machine.bus + 1))
        self._whole, self._goes, self._used = Signal(), Signal(), Signal(7)
        self._number, self._kind, self._high = Signal(32), Signal(KIND_BITS), Signal(VALUE)
        self._headed = Signal()
        """The block's kind was read, and none of its bytes."""
        self._hold()
        self._decode(machine.unpack)

    def _hold(self) -> None:
        """Bits that were not used yet, and zeros behind them."""
        m, rest = self.module, Signal(self._there.shape())
        given = self._number == self.count
        m.d.comb += [
            self.ready.eq(self.active & ((self._there <= HELD) | given)),
            self._goes.eq(self.active & ~given & (~self.valid | self.taken)),
            rest.eq(Mux(self._there > self._used, self._there - self._used, 0)),
            self.done.eq(self.active & self._whole & given & (~self.valid | self.taken)),
        ]
        with m.If(self.start):
            m.d.sync += [self.active.eq(1), self._whole.eq(0), self._held.eq(0), self._there.eq(0)]
        with m.Elif(self.active):
            coming = Mux(self.beat & ~given, self.data, 0)
            m.d.sync += [
                self._held.eq((self._held >> self._used) | (coming << rest)),
                self._there.eq(rest + Mux(self.beat & ~given, self.bits, 0)),
                self._whole.eq(self._whole | (self.beat & self.last)),
                self.active.eq(~self.done),
            ]

    def _decode(self, most: int) -> None:
        """Bytes of a block, one behind the other; ones alone, where a number has too many."""
        m = self.module
        headed, kind = Signal(), Signal(KIND_BITS)
        place = self._number[:BLOCK_BITS]
        m.d.comb += [
            headed.eq((place == 0) & ~self._headed),
            kind.eq(Mux(headed, self._held[:KIND_BITS], self._kind)),
        ]
        used: Any = Mux(headed, KIND_BITS, 0)
        fits: list[Any] = []
        found: list[tuple[Any, Any]] = []
        for i in range(most):
            byte, bits, ends = self._coded(i, self._held, used, kind, self._high if i == 0 else C(0, VALUE))
            used = Signal(7, name=f"used{i}")
            fit = Signal(name=f"fit{i}")
            inside = C(1) if i == 0 else fits[-1] & ((place + i)[:BLOCK_BITS] != 0) & (self._number + i != self.count)
            m.d.comb += [used.eq(bits), fit.eq(inside & ends & (self._whole | (bits <= self._there)))]
            fits.append(fit)
            found.append((byte, used))
        ones = ~fits[0] & (found[0][1] <= self._there) & (kind != PLAIN)
        self._advance(fits, found, kind, ones)

    def _coded(self, i: int, held: Any, used: Any, kind: Any, high: Any) -> tuple[Any, Any, Any]:
        """A byte from bit ``used`` on: what it is, the bit behind it, and whether its ones end here."""
        m = self.module
        window, ones = Signal(LONGEST, name=f"window{i}"), Signal(range(ONES + 1), name=f"ones{i}")
        behind, value = Signal(PLAIN - 1, name=f"behind{i}"), Signal(VALUE, name=f"value{i}")
        byte, ends = Signal(8, name=f"byte{i}"), Signal(name=f"ends{i}")
        count: Any = C(ONES)
        for bit in reversed(range(ONES)):
            count = Mux(window[bit], count, bit)
        low = Signal(PLAIN - 1, name=f"low{i}")
        coded = Cat(*(bit ^ value[0] for bit in value[1:]))
        m.d.comb += [
            window.eq(held >> used),
            ones.eq(count),
            behind.eq(window >> ones + 1),
            low.eq(behind & ((1 << kind) - 1)),
            value.eq(((high + ones) << kind) | low),
            ends.eq((kind == PLAIN) | (ones != ONES)),
            byte.eq(Mux(kind == PLAIN, window[:8], coded)),
        ]
        return byte, used + Mux(kind == PLAIN, 8, Mux(ones == ONES, ONES, ones + 1 + kind)), ends

    def _advance(self, fits: list[Any], found: list[tuple[Any, Any]], kind: Any, ones: Any) -> None:
        m = self.module
        bits: Any = C(0, 7)
        for fit, (_, behind) in zip(fits, found, strict=True):
            bits = Mux(fit, behind, bits)
        m.d.comb += self._used.eq(Mux(self._goes, Mux(ones, found[0][1], bits), 0))
        with m.If(self.start):
            m.d.sync += [self._number.eq(0), self._headed.eq(0), self._high.eq(0), self.valid.eq(0)]
        with m.Elif(self._goes):
            m.d.sync += [
                *(self.valid.eq(fits[0]), self.mask.eq(Cat(*fits)), self.at.eq(self._number)),
                self.bytes.eq(Cat(*(byte for byte, _ in found))),
                self._number.eq(self._number + sum(fits[1:], fits[0])),
            ]
            with m.If(ones | fits[0]):
                m.d.sync += [self._kind.eq(kind), self._headed.eq(~fits[0])]
                m.d.sync += self._high.eq(Mux(ones, self._high + ONES, 0))
        with m.Elif(self.taken):
            m.d.sync += self.valid.eq(0)
