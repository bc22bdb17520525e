"""Every number of a command is held against the memories before it waits for its engine: one multiplier, a product in
two cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value

from npu_rtl.numbers import COMMAND, DEPTHWISE, ERROR, LOAD, OK, STORE, TOKEN, Machine
from npu_rtl.programs import Op, Programs, meaningless

PRODUCT = 66
"""Bits of a product and what was there before."""
ENOUGH = 34
"""Bits of a product that tests look at, and one that says that there is more: nothing that they compare it with is as
large."""
DIVISION = 16
"""Cycles."""


class Shared:
    """Most steps want a value that others want, too. In a cycle of a step that ``wants`` one, ``value`` is it.
    What they are made of has names, by which they are told apart."""

    def __init__(self, module: Module) -> None:
        self._module, self._numbers = module, dict[str, tuple[int, Any]]()
        self._number, self.value = Signal(6), Signal(32)

    def wants(self, value: Any) -> None:
        text = repr(Value.cast(value))
        assert "$" not in text
        number, _ = self._numbers.setdefault(text, (len(self._numbers), value))
        self._module.d.comb += self._number.eq(number)

    def end(self) -> None:
        """All that are wanted are known."""
        with self._module.Switch(self._number):
            for number, value in self._numbers.values():
                with self._module.Case(number):
                    self._module.d.comb += self.value.eq(value)


class Check:
    """``start`` for a cycle, with ``done`` there is an ``error``, or none. ``there`` is where a transfer begins."""

    def __init__(self, machine: Machine, words: Sequence[Any], base: Any, limit: Any) -> None:
        self.module = m = Module()
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error, self.there = Signal(ERROR), Signal(32)
        self._index, self._second, self._total = Signal(6), Signal(), Signal(PRODUCT, name="total")
        self._a, self._b, self._c = Signal(32), Signal(32), Signal(32)
        self._goes, self._adds, self._product, self._wrong = Signal(), Signal(), Signal(PRODUCT), Signal(ERROR)
        self._shared = [Shared(m) for _ in range(3)]
        self._divides, self._read = Signal(range(DIVISION + 1)), Signal(16, name="read")
        opcode = words[0][:8]
        programs = Programs(machine, words, self._read, limit).all
        m.d.comb += self.there.eq(base + words[2])
        first, second = (opcode == LOAD), (opcode == STORE)
        token = (first & (words[0][8] | words[0][10])) | (second & (words[0][9] | words[0][11]))
        with m.If(self.start):
            nothing = Signal()
            m.d.comb += nothing.eq(meaningless(words, machine))
            m.d.sync += [self._index.eq(0), self._second.eq(0), self.active.eq(1), self._total.eq(0)]
            m.d.sync += self.error.eq(Mux(nothing, COMMAND, Mux(token, TOKEN, OK)))
            m.d.sync += self._divides.eq(Mux((opcode == DEPTHWISE) & (words[3][16:] > 1), DIVISION, 0))
            m.d.sync += self._read.eq(words[10][16:])
        with m.Elif(self.active & (self.error != OK)):
            self._end()
        with m.Elif(self.active & (self._divides != 0)):
            m.d.sync += self._divides.eq(self._divides - 1)
        with m.Elif(self.active), m.Switch(opcode):
            for number, program in programs.items():
                with m.Case(number):
                    self._choose(program)
            with m.Default():
                self._end()
        self._step()
        self._divide(words[10][16:], words[3][16:])

    def _end(self) -> None:
        self.module.d.comb += self.done.eq(1)
        self.module.d.sync += self.active.eq(0)

    def _divide(self, channels: Any, by: Any) -> None:
        """``read``: channels of the input that a depthwise command reads, rounded up. Digit by digit."""
        m = self.module
        rest, digits, tried = Signal(17), Signal(16), Signal(18)
        m.d.comb += tried.eq((rest << 1) + digits[-1])
        fits = tried >= by
        with m.If(self.start):
            m.d.sync += [rest.eq(0), digits.eq(channels - 1)]
        with m.Elif(self._divides != 0):
            m.d.sync += [rest.eq(Mux(fits, tried - by, tried)), digits.eq((digits << 1) + fits)]
            with m.If(self._divides == 1):
                m.d.sync += self._read.eq((digits << 1) + fits + 1)

    def _choose(self, program: Sequence[Op]) -> None:
        """What the step is, of which there may be no more."""
        m, total = self.module, Cat(self._product[:ENOUGH], self._product[ENOUGH:].any())
        with m.Switch(self._index):
            for i, op in enumerate(program):
                with m.Case(i):
                    values = (self._total[:32] if op.a is None else op.a), op.b, op.plus
                    for shared, value in zip(self._shared, values, strict=True):
                        shared.wants(value)
                    wrong: Any = C(OK, ERROR)
                    for test, error in reversed(op.tests):
                        wrong = Mux(test(total), error, wrong)
                    m.d.comb += [self._goes.eq(1), self._adds.eq(op.adds), self._wrong.eq(wrong)]
            with m.Default():
                self._end()

    def _step(self) -> None:
        m, registers = self.module, (self._a, self._b, self._c)
        for shared in self._shared:
            shared.end()
        before = Mux(self._adds, self._total, 0)
        m.d.comb += self._product.eq(before + self._a * self._b + self._c)
        with m.If(self._goes & ~self._second):
            m.d.sync += [register.eq(shared.value) for register, shared in zip(registers, self._shared, strict=True)]
            m.d.sync += self._second.eq(1)
        with m.Elif(self._goes):
            m.d.sync += [self._total.eq(self._product), self._second.eq(0), self._index.eq(self._index + 1)]
            m.d.sync += self.error.eq(self._wrong)
