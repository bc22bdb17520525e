"""The array: a column for each output channel, a row for each value of a step. A tap of a depthwise convolution takes
one product of each column."""

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
    """``vector`` and ``tile`` come a cycle after their addresses; ``first`` and ``valid`` when the step is added."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        width = machine.width
        self.vector, self.tile = Signal(8 * width), Signal(8 * machine.tile)
        self.deep, self.zero_point = Signal(), Signal(signed(8))
        """``deep``: a depthwise convolution; of the weights."""
        self.first, self.valid = Signal(), Signal()
        self.before = Signal(32 * width)
        """The sums that go on."""
        self.sums = Signal(32 * width)
        vector, tile = Signal(8 * width), Signal(8 * machine.tile)
        m.d.sync += [vector.eq(self.vector), tile.eq(self.tile)]
        values = [vector.word_select(i, 8).as_signed() for i in range(width)]
        excess = self._total([_kept(m, f"value{i}", value) for i, value in enumerate(values)], "values")
        correction = Signal(signed(24))
        m.d.comb += correction.eq(excess * self.zero_point)
        for column in range(width):
            products = []
            for row in range(width):
                weight: Any = tile.word_select(width * column + row, 8).as_signed()
                value = values[row]
                if row == 0:
                    weight = Mux(self.deep, tile.word_select(column, 8).as_signed(), weight)
                    value = Mux(self.deep, values[column], value)
                product = Signal(signed(16), name=f"product{column}_{row}")
                m.d.sync += product.eq(value * weight if row == 0 else Mux(self.deep, 0, value * weight))
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
