"""The way out of a sum: TFLite's rounding or single precision's, zero point, clamp. A sum in each cycle."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import C, Module, Mux, Signal, signed

from npu_rtl.numbers import FINISH

STAGES: Final = 6
DIGITS: Final = 24
"""Of a single-precision number."""
GREATEST: Final = (1 << 31) - 1


class Output:
    """One channel. ``parameters`` are bias, multiplier and shift."""

    def __init__(self, lane: int, command: Any) -> None:
        assert command.shape() == FINISH
        self.module = Module()
        self._lane, self._command = lane, command
        self.accumulator, self.bias = self._signal("accumulator", 32), self._signal("bias", 32)
        self.multiplier, self.shift = self._signal("multiplier", 32), self._signal("shift", 32)
        self.byte = self._signal("byte", 8)
        factors = self._factors(*self._sum())
        self._finish(*self._rounded(*self._product(*factors)))

    def _signal(self, name: str, shape: Any) -> Any:
        return Signal(shape, name=f"{name}{self._lane}")

    def _kept(self, name: str, value: Any) -> Any:
        """A register behind the value."""
        register = self._signal(name, value.shape())
        self.module.d.sync += register.eq(value)
        return register

    def _named(self, name: str, shape: Any, value: Any) -> Any:
        wire = self._signal(name, shape)
        self.module.d.comb += wire.eq(value)
        return wire

    def _sum(self) -> tuple[Any, Any, Any]:
        total = self._named("total", signed(32), self.accumulator + self.bias)
        return self._kept("sum", total), self._kept("factor", self.multiplier), self._kept("exponent", self.shift[:6])

    def _factors(self, total: Any, factor: Any, exponent: Any) -> tuple[Any, ...]:
        """Both numbers of the product, and what the shift still has to make good."""
        single = self._command.single
        shift = exponent.as_signed()
        most = 1 << DIGITS
        rest = Mux((total >= -most) & (total <= most), factor[:7], 0)
        fine = self._named("fine", signed(41), (total << 7) + rest.as_unsigned())
        negative = self._named("below", 1, fine < 0)
        magnitude = self._named("magnitude", 40, Mux(negative, -fine, fine))
        lost = self._excess("lost", magnitude)
        short = self._divided("short", magnitude, lost, 16, DIGITS + 1, C(1))
        left = self._named("left", 5, Mux(shift > 0, shift.as_unsigned(), 0))
        moved = self._named("moved", signed(32), (total << left)[:32])
        a = self._named("a", signed(33), Mux(single, short, moved))
        b = self._named("b", signed(33), Mux(single, factor[7:], factor.as_signed()))
        values = {"a_kept": a, "b_kept": b, "shift_kept": shift, "lost_kept": lost, "below_kept": negative}
        return tuple(self._kept(name, value) for name, value in values.items())

    def _product(self, a: Any, b: Any, shift: Any, lost: Any, negative: Any) -> tuple[Any, ...]:
        product = self._signal("product", signed(66))
        self.module.d.sync += product.eq(a * b)
        values = {"shift_on": shift, "lost_on": lost, "below_on": negative}
        return product, *(self._kept(name, value) for name, value in values.items())

    def _rounded(self, product: Any, shift: Any, lost: Any, negative: Any) -> tuple[Any, ...]:
        """A magnitude, its sign, and by how much it is to be divided, or multiplied if that is below 0."""
        single = self._command.single
        high = self._named("high", signed(34), (product + (1 << 30)) >> 31)
        full = self._named("full", signed(34), Mux(high == GREATEST + 1, GREATEST, high))
        below = Mux(single, negative, full < 0)
        whole = self._named("whole", 50, product[:50])
        cut = self._excess("cut", whole)
        short = self._divided("shorter", whole, cut, 26, DIGITS + 1, C(1))
        twice = self._named("twice", 32, Mux(full < 0, -full, full))
        down_single = 31 - shift - lost - cut
        down = self._named("down", signed(9), Mux(single, down_single, Mux(shift > 0, 0, -shift)))
        values = {"rounded": Mux(single, short, twice), "down_kept": down, "negative": below}
        return tuple(self._kept(name, value) for name, value in values.items())

    def _finish(self, value: Any, down: Any, negative: Any) -> None:
        """A number of single precision has 24 digits here, or is 0: dividing it by 2^31 leaves nothing, and multiplying
        it by more than 2^8 is beyond 32 bits."""
        m, c = self.module, self._command
        right = self._named("right", 5, Mux(down < 0, 0, Mux(down > 31, 31, down)))
        up = self._named("up", 4, Mux(down < -9, 9, Mux(down < 0, -down, 0)))
        divided = self._divided("divided", value, right, 31, 33, c.single)
        far = self._named("far", 42, value << up)
        grown = Mux(far[31:] != 0, GREATEST, far)
        magnitude = self._named("result", 33, Mux(down < 0, grown, divided))
        scaled = self._kept("scaled", self._named("signed", signed(34), Mux(negative, -magnitude, magnitude)))
        moved = self._named("moved_zero", signed(35), scaled + c.zero_point.as_signed())
        least, greatest = c.least.as_signed(), c.greatest.as_signed()
        clamped = Mux(moved < least, least, Mux(moved > greatest, greatest, moved))
        m.d.sync += self.byte.eq(clamped)

    def _excess(self, name: str, value: Any) -> Any:
        """How many bits a number has beyond the 24 of a single-precision one."""
        excess = self._signal(name, 5)
        for bit in range(DIGITS, len(value)):
            with self.module.If(value[bit]):
                self.module.d.comb += excess.eq(bit + 1 - DIGITS)
        return excess

    def _divided(self, name: str, value: Any, down: Any, most: int, width: int, even: Any) -> Any:
        """By two to the power of ``down``, ``most`` at most. Halves go to the even number, or upwards."""
        moved = self._named(f"{name}_moved", len(value) + most, (value << most) >> down)
        whole, half, rest = moved[most:], moved[most - 1], moved[: most - 1]
        return self._named(name, width, whole + (half & (~even | (rest != 0) | whole[0])))
