"""Every number of a command is held against the memories before it waits for its engine: one multiplier, a product in
two cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from amaranth.hdl import Array as Choice
from amaranth.hdl import Cat, Const, Module, Mux, Signal

from matrix8_rtl.numbers import (
    ACCUMULATORS,
    ACTIVATIONS,
    ALIGNMENT,
    ARGUMENT,
    BANKS,
    BLOCK,
    BYTES,
    COMMAND,
    FILL,
    LANES,
    LOAD,
    MULTIPLY,
    NONE,
    PARAMETERS,
    PIXEL,
    RANGE,
    STORE,
    WEIGHTS,
)

LIMIT: Final = 1 << 16
"""Of rows, columns and the like, so that no product of three overflows."""


@dataclass(frozen=True)
class Use:
    """Bytes of a memory: the sum so far times ``scale``, and ``more``, from ``offset`` on."""

    memory: Any
    offset: Any
    scale: int = 1
    more: Any = 0


@dataclass(frozen=True)
class Product:
    """``a`` times ``b``; None is the sum so far. ``adds`` to it, or begins anew."""

    a: Any
    b: Any
    adds: bool = False
    use: Use | None = None
    keeps: bool = False
    """As the number of steps."""


class Check:
    """``start`` for a cycle; with ``done`` there are ``error``, ``banks`` and ``steps``."""

    def __init__(self, what: Any, arguments: Sequence[Any], window: Sequence[Any], single: Any) -> None:
        self.module = m = Module()
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error = Signal(3)
        self.banks = Signal(len(BYTES) * BANKS)
        """That the command touches."""
        self.steps = Signal(16)
        self._index, self._second, self._total = Signal(range(10)), Signal(), Signal(66)
        self._a, self._b = Signal(32), Signal(32)
        self._single = single
        programs = _programs(arguments, window)
        sensible = _sensible(arguments, window, single)
        with m.If(self.start):
            m.d.sync += [self._index.eq(0), self._second.eq(0), self.banks.eq(0), self.active.eq(1)]
            m.d.sync += self.error.eq(Mux(Choice([0, 1, 1, 1, 1, 0, 0, 0])[what[:3]] & (what[3:] == 0), NONE, COMMAND))
        with m.Elif(self.active & (self.error != NONE)):
            self._end()
        with m.Elif(self.active), m.Switch(what):
            for number, program in programs.items():
                with m.Case(number):
                    self._run(program, sensible[number])

    def _end(self) -> None:
        self.module.d.comb += self.done.eq(1)
        self.module.d.sync += self.active.eq(0)

    def _run(self, program: Sequence[Product], sensible: Any) -> None:
        m = self.module
        with m.If(~sensible):
            m.d.sync += self.error.eq(ARGUMENT)
        with m.Elif(self._index == len(program)):
            self._end()
        with m.Else(), m.Switch(self._index):
            for i, product in enumerate(program):
                with m.Case(i):
                    with m.If(~self._second):
                        a, b = (self._total if value is None else value for value in (product.a, product.b))
                        m.d.sync += [self._a.eq(a), self._b.eq(b), self._second.eq(1)]
                    with m.Else():
                        self._take(product)

    def _take(self, product: Product) -> None:
        m = self.module
        total = Signal(66)
        m.d.comb += total.eq((self._total if product.adds else 0) + self._a * self._b)
        m.d.sync += [self._total.eq(total), self._second.eq(0), self._index.eq(self._index + 1)]
        if product.keeps:
            m.d.sync += self.steps.eq(total)
            with m.If(total > BYTES[WEIGHTS]):
                m.d.sync += self.error.eq(RANGE)
        if product.use is not None:
            self._touch(product.use, total)

    def _touch(self, use: Use, total: Any) -> None:
        m = self.module
        size = Signal(66)
        end = Signal(67)
        m.d.comb += [size.eq(total * use.scale + use.more), end.eq(size + use.offset)]
        for memory, limit in enumerate(BYTES):
            with m.If(use.memory == memory):
                first, second = self.banks[BANKS * memory], self.banks[BANKS * memory + 1]
                with m.If((size == 0) | (use.offset % ALIGNMENT[memory] != 0) | (end > limit)):
                    m.d.sync += self.error.eq(RANGE)
                with m.If(use.offset < limit // BANKS):
                    m.d.sync += first.eq(1)
                with m.If(end > limit // BANKS):
                    m.d.sync += second.eq(1)


def _programs(a: Sequence[Any], window: Sequence[Any]) -> Mapping[int, Sequence[Product]]:
    kernel_rows, kernel_columns, run, *pitches = window
    steps = (run + (LANES - 1)) >> 3
    blocks = (a[5] + (LANES - 1)) >> 3
    whole = Use(Const(ACTIVATIONS), a[1], more=steps << 3)
    return {
        LOAD: [Product(a[5] - 1, a[2], use=Use(a[0], a[1], more=a[6]))],
        FILL: [Product(a[2], 1, use=Use(a[0], a[1]))],
        MULTIPLY: [
            Product(a[3], a[4]),
            Product(None, a[5], use=Use(Const(ACCUMULATORS), a[0], PIXEL)),
            Product(kernel_rows, kernel_columns),
            Product(None, steps, keeps=True),
            Product(None, a[5], use=Use(Const(WEIGHTS), a[2], BLOCK)),
            Product(a[3] - 1, pitches[2]),
            Product(a[4] - 1, pitches[3], adds=True),
            Product(kernel_rows - 1, pitches[0], adds=True),
            Product(kernel_columns - 1, pitches[1], adds=True, use=whole),
        ],
        STORE: [
            Product(a[4], blocks, use=Use(Const(ACCUMULATORS), a[2], PIXEL)),
            Product(blocks, 1, use=Use(Const(PARAMETERS), a[3], 3 * PIXEL)),
        ],
    }


def _sensible(a: Sequence[Any], window: Sequence[Any], single: Any) -> Mapping[int, Any]:
    """Whether the arguments of each command mean anything."""
    memory = a[0] < len(BYTES)

    def limited(*numbers: Any) -> Any:
        return Cat(*((number != 0) & (number < LIMIT) for number in numbers)).all()

    return {
        LOAD: memory & (a[5] != 0) & ((a[5] == 1) | (a[2] >= a[6])),
        FILL: memory,
        MULTIPLY: limited(*a[3:6], *window[:3]),
        STORE: limited(*a[4:6]) & (single < 2),
    }
