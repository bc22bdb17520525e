"""Every number of a command is held against the memories before it waits for its engine: one multiplier, a product in
two cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import C, Module, Mux, Signal

from npu_rtl.numbers import COMMAND, DEPTHWISE, ERROR, LOAD, OK, STORE, TOKEN, Machine
from npu_rtl.programs import Op, Programs, meaningless

PRODUCT = 66
"""Bits of a product and what was there before."""
DIVISION = 16
"""Cycles."""


class Check:
    """``start`` for a cycle, with ``done`` there is an ``error``, or none. ``there`` is where a transfer begins."""

    def __init__(self, machine: Machine, words: Sequence[Any], base: Any, limit: Any) -> None:
        self.module = m = Module()
        self.start, self.active, self.done = Signal(), Signal(), Signal()
        self.error, self.there = Signal(ERROR), Signal(32)
        self._index, self._second, self._total = Signal(6), Signal(), Signal(PRODUCT)
        self._a, self._b, self._c = Signal(32), Signal(32), Signal(32)
        self._divides, self._read = Signal(range(DIVISION + 1)), Signal(16)
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
                    self._run(program)
            with m.Default():
                self._end()
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

    def _run(self, program: Sequence[Op]) -> None:
        m = self.module
        total = Signal(PRODUCT)
        with m.Switch(self._index):
            for i, op in enumerate(program):
                with m.Case(i):
                    with m.If(~self._second):
                        a = self._total[:32] if op.a is None else op.a
                        m.d.sync += [self._a.eq(a), self._b.eq(op.b), self._c.eq(op.plus), self._second.eq(1)]
                    with m.Else():
                        m.d.comb += total.eq((self._total if op.adds else 0) + self._a * self._b + self._c)
                        m.d.sync += [self._total.eq(total), self._second.eq(0), self._index.eq(i + 1)]
                        wrong: Any = C(OK, ERROR)
                        for test, error in reversed(op.tests):
                            wrong = Mux(test(total), error, wrong)
                        m.d.sync += self.error.eq(wrong)
            with m.Default():
                self._end()
