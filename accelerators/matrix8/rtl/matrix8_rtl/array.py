"""64 multipliers: a step takes eight values of a pixel's window and the weights of eight channels for them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from matrix8_rtl.memories import Memories
from matrix8_rtl.numbers import LANES, MULTIPLY_COMMAND, SUMS


class Array:
    """``start`` for a cycle, with the command on ``command`` until ``done``."""

    def __init__(self, memories: Memories) -> None:
        self.module = Module()
        self.command = Signal(MULTIPLY_COMMAND)
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(3)
        self._memories = memories
        self._issues = Signal()
        self._first, self._last = Signal(), Signal()
        self._sum_at = Signal(9)
        self._loops()
        self._sums()

    def _loops(self) -> None:
        """Pixels, blocks of channels, the window's rows, columns, steps: the innermost one goes on in each cycle."""
        m, c = self.module, self.command
        loops = ("rows", "columns", "blocks", "kernel_rows", "kernel_columns", "run")
        counters = {name: Signal(10, name=f"at_{name}") for name in loops}
        ends = {name: Signal(name=f"end_{name}") for name in loops}
        for name in loops:
            m.d.comb += ends[name].eq(counters[name] + 1 == c[name])
        row, pixel, window_row, run, at = (Signal(14, name=n) for n in ("row", "pixel", "window_row", "run", "at"))
        weight = Signal(8)
        m.d.comb += [
            self._first.eq(Cat(counters["kernel_rows"], counters["kernel_columns"], counters["run"]) == 0),
            self._last.eq(ends["kernel_rows"] & ends["kernel_columns"] & ends["run"]),
            self._memories.activations_at.eq(at),
            self._memories.weights_at.eq(weight),
            self._memories.sums_at.eq(self._sum_at),
            self._memories.reads.eq(self._issues & self._first),
        ]
        bases = (row, pixel, window_row, run, at)

        def begins(value: Any, count: int) -> None:
            """The innermost bases begin again, from here."""
            m.d.sync += [base.eq(value) for base in bases[len(bases) - count :]]

        with m.If(self.start):
            begins(c.activations, 5)
            m.d.sync += [counter.eq(0) for counter in counters.values()]
            m.d.sync += [self._issues.eq(1), weight.eq(c.weights), self._sum_at.eq(c.accumulators)]
        with m.Elif(self._issues):
            self._step(counters, ends)
            m.d.sync += [weight.eq(weight + 1), self._sum_at.eq(self._sum_at + self._last)]
            with m.If(~ends["run"]):
                begins(at + LANES, 1)
            with m.Elif(~ends["kernel_columns"]):
                begins(run + c.kernel_column_pitch, 2)
            with m.Elif(~ends["kernel_rows"]):
                begins(window_row + c.kernel_row_pitch, 3)
            with m.Elif(~ends["blocks"]):
                begins(pixel, 4)
            with m.Else():
                m.d.sync += weight.eq(c.weights)
                with m.If(~ends["columns"]):
                    begins(pixel + c.column_pitch, 4)
                with m.Elif(~ends["rows"]):
                    begins(row + c.row_pitch, 5)
                with m.Else():
                    m.d.sync += self._issues.eq(0)

    def _step(self, counters: dict[str, Any], ends: dict[str, Any]) -> None:
        """The innermost counter that is not at its end goes on, those inside it begin again."""
        m = self.module
        carries: Any = 1
        for name in reversed(counters):
            with m.If(carries):
                m.d.sync += counters[name].eq(Mux(ends[name], 0, counters[name] + 1))
            carries = carries & ends[name]

    def _sums(self) -> None:
        """A cycle for the memories, one for the products, one for their sum."""
        m, memories = self.module, self._memories
        valid, first, last, at = ([s] for s in (self._issues, self._first, self._last, self._sum_at))
        for stages in (valid, first, last, at):
            for number in (1, 2):
                stage = Signal(len(stages[0]), name=f"{stages[0].name}_{number}")
                m.d.sync += stage.eq(stages[-1])
                stages.append(stage)
        kept, sums, more = Signal(SUMS), Signal(SUMS), Signal(SUMS)
        m.d.sync += kept.eq(Mux(self.command.add, memories.sums, 0))
        for lane in range(LANES):
            products = []
            for i in range(LANES):
                product = Signal(signed(16), name=f"product{lane}_{i}")
                value = memories.activations.word_select(i, 8).as_signed()
                m.d.sync += product.eq(value * memories.weights.word_select(LANES * lane + i, 8).as_signed())
                products.append(product)
            base = Mux(first[2], kept[lane], sums[lane])
            m.d.comb += more[lane].eq(base + _total(products))
        with m.If(valid[2]):
            m.d.sync += sums.eq(more)
        m.d.comb += [
            memories.writes.eq(valid[2] & last[2]),
            memories.written_at.eq(at[2]),
            memories.written.eq(more.as_value()),
            self.active.eq(valid[0] | valid[1] | valid[2]),
            self.done.eq(valid[2] & ~valid[1] & ~valid[0]),
        ]


def _total(numbers: list[Any]) -> Any:
    """As a tree."""
    while len(numbers) > 1:
        numbers = [a + b for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    return numbers[0]
