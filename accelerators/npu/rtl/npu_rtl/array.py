"""The array: a column for each output channel, a row for each value of a step. Taps of a depthwise convolution take a
row each."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed

from npu_rtl.numbers import Machine

STAGES = 5
"""Cycles from the addresses of a step to its sums."""
SUMS_AT = 3
"""Cycles until the sums that it goes on from are asked for."""
CONTROL = 4
"""Cycles until a step is added."""


class Array:
    """``vector``, ``window`` and ``tile`` come a cycle after their addresses; ``first`` and ``valid`` when the step is
    added."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        width = machine.width
        self.vector, self.tile = Signal(8 * width), Signal(8 * machine.tile)
        self.window = Signal(8 * machine.tile)
        """A vector for each row, of a depthwise convolution."""
        self.deep, self.zero_point = Signal(), Signal(signed(8))
        """``deep``: a depthwise convolution; of the weights."""
        self.first, self.valid = Signal(), Signal()
        self.before = Signal(32 * width)
        """The sums that go on."""
        self.sums = Signal(32 * width)
        vector, tile, window = Signal(8 * width), Signal(8 * machine.tile), Signal(8 * machine.tile)
        m.d.sync += [vector.eq(self.vector), tile.eq(self.tile), window.eq(Mux(self.deep, self.window, 0))]
        values = [vector.word_select(i, 8).as_signed() for i in range(width)]
        excess = self._total([_kept(m, f"value{i}", value) for i, value in enumerate(values)], "values")
        correction = Signal(signed(24))
        m.d.comb += correction.eq(excess * self.zero_point)
        for column in range(width):
            products = []
            for row in range(width):
                weight = Mux(
                    self.deep, tile.word_select(width * row + column, 8), tile.word_select(width * column + row, 8)
                )
                value = Mux(self.deep, window.word_select(width * row + column, 8), vector.word_select(row, 8))
                product = Signal(signed(16), name=f"product{column}_{row}")
                m.d.sync += product.eq(value.as_signed() * weight.as_signed())
                products.append(product)
            total = self._total(products, f"total{column}")
            base = Mux(self.first, self.before.word_select(column, 32), self.sums.word_select(column, 32))
            with m.If(self.valid):
                m.d.sync += self.sums.word_select(column, 32).eq(base + total - correction)

    def _total(self, numbers: list[Any], name: str) -> Any:
        """A cycle later, of a power of two numbers."""
        while len(numbers) > 1:
            numbers = [a + b for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        return _kept(self.module, name, numbers[0])


def _kept(m: Module, name: str, value: Any) -> Any:
    register = Signal(value.shape(), name=name)
    m.d.sync += register.eq(value)
    return register
