"""A lane of the addition: both operands are scaled, added and scaled again, or their real sum is rounded once."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data

from npu_rtl.numbers import ERROR, OK, QUANTISATION

STAGES = 7
NUMBERS = (
    *("left_shift", "zero_point1", "multiplier1", "shift1", "zero_point2", "multiplier2", "shift2"),
    *("output_zero_point", "output_multiplier", "output_shift", "clamp_min", "clamp_max"),
)
ADDITION = data.StructLayout({name: signed(32) for name in NUMBERS})
MOST_SHIFT, LEAST_SHIFT, MOST_ONCE = 30, -31, 42


def wrong_addition(numbers: Any, once: Any) -> Any:
    """The error of numbers that mean nothing."""
    names = ("zero_point1", "zero_point2", "output_zero_point", "clamp_min", "clamp_max")
    bytes_ = Cat(*(_fits(numbers[name], 8) for name in names)).all()
    pairs = (("multiplier1", "shift1"), ("multiplier2", "shift2"), ("output_multiplier", "output_shift"))
    scales = ~Cat(*(wrong_scale(numbers[multiplier], numbers[shift]) for multiplier, shift in pairs)).any()
    small = ~numbers.left_shift[6:].any()
    shift = numbers.left_shift[:6]
    shifts = small & (shift <= MOST_SHIFT)
    whole = small & (shift >= 1) & (shift <= MOST_ONCE) & ~numbers.output_multiplier[-1]
    return Mux(bytes_ & Mux(once, whole, scales & shifts), C(OK, ERROR), C(QUANTISATION, ERROR))


def wrong_scale(multiplier: Any, shift: Any) -> Any:
    too_small, too_large = shift[:6] == (LEAST_SHIFT - 1) % 64, shift[:6] == MOST_SHIFT + 1
    return multiplier[-1] | ~_fits(shift, 6) | too_small | too_large


def _fits(number: Any, bits: int) -> Any:
    """Comparisons with numbers of 32 bits would take more than this."""
    above = number[bits - 1 :]
    return above.all() | ~above.any()


class Adder:
    """``byte`` comes ``STAGES`` cycles after its operands."""

    def __init__(self, lane: int, numbers: Any, once: Any) -> None:
        self.module = Module()
        self._lane, self._numbers = lane, numbers
        self.first, self.second = self._signal("first", signed(8)), self._signal("second", signed(8))
        self.byte = self._signal("sum_byte", 8)
        n = numbers
        sides = []
        for i, operand in ((1, self.first), (2, self.second)):
            zero_point, multiplier, shift = (n[f"{name}{i}"] for name in ("zero_point", "multiplier", "shift"))
            moved = self._wire(f"moved{i}", signed(9), operand - zero_point[:8].as_signed())
            up = self._wire(f"up{i}", 6, n.left_shift[:6] + Mux(shift > 0, shift[:6], 0))
            wide = self._wire(f"wide{i}", signed(32), (moved << up)[:32])
            factor = self._kept(f"factor{i}", Mux(once, moved, wide))
            product = self._kept(f"product{i}", factor * multiplier)
            sides.append((product, shift))
        self._end(sides, once)

    def _signal(self, name: str, shape: Any) -> Any:
        return Signal(shape, name=f"{name}_{self._lane}")

    def _kept(self, name: str, value: Any) -> Any:
        """A register behind the value."""
        register = self._signal(name, value.shape())
        self.module.d.sync += register.eq(value)
        return register

    def _wire(self, name: str, shape: Any, value: Any) -> Any:
        wire = self._signal(name, shape)
        self.module.d.comb += wire.eq(value)
        return wire

    def _scaled(self, name: str, product: Any, shift: Any) -> Any:
        """The product's high half, halves upwards, divided by the right shift, halves away from zero."""
        high = self._wire(f"{name}_high", signed(33), (product + (1 << 30)) >> 31)
        right = self._wire(f"{name}_right", 5, Mux(shift < 0, (-shift)[:5], 0))
        size = self._wire(f"{name}_size", 33, Mux(high < 0, -high, high))
        moved = self._wire(f"{name}_moved", 65, (size << 32) >> right)
        rounded = self._wire(f"{name}_rounded", 33, moved[32:] + moved[31])
        return self._wire(f"{name}_scaled", signed(34), Mux(high < 0, -rounded, rounded))

    def _end(self, sides: Any, once: Any) -> None:
        n = self._numbers
        shift = n.left_shift[:6]
        half = self._wire("half", 42, C(1, 42) << (shift - 1)[:6])
        tolerance = n.output_multiplier[:31]
        exact = self._kept("exact", sides[0][0] + sides[1][0] + half + tolerance)
        terms = [self._kept(f"term{i}", self._scaled(f"side{i}", *side)) for i, side in enumerate(sides)]
        above = self._wire("above", signed(48), exact >> shift)
        rest = self._wire("rest", 43, exact & ((C(1, 43) << shift)[:43] - 1)[:43])
        down = (rest <= tolerance << 1) & above[0]
        real = self._kept("real", above - down)
        output_shift = n.output_shift
        up = self._wire("output_up", 5, Mux(output_shift > 0, output_shift[:5], 0))
        total = self._wire("both", signed(32), (terms[0] + terms[1])[:32])
        factor = self._kept("output_factor", (self._wire("raised", signed(32), (total << up)[:32])))
        product = self._kept("output_product", factor * n.output_multiplier)
        real_on = self._kept("real_on", real)
        scaled = self._scaled("output", product, output_shift)
        value = self._kept("value", Mux(once, real_on, scaled))
        end = self._wire("end", signed(50), value + n.output_zero_point[:8].as_signed())
        least, greatest = n.clamp_min[:8].as_signed(), n.clamp_max[:8].as_signed()
        self.module.d.sync += self.byte.eq(Mux(end < least, least, Mux(end > greatest, greatest, end)))
