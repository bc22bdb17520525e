"""The registers behind APB, the places and the counters."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory

from npu_rtl.numbers import ENGINES, ERROR, OK, Machine

IDENTITY, VERSION = 0x4E505531, 0x00010002
NOBODY: Final = 0xFFFFFFFF
PLACES: Final = 64
CONTROL, STATUS, ERROR_CODE, ERROR_COMMAND, COMMANDS, LENGTH, CYCLES, CYCLES_HIGH, WORKED = range(6, 15)
"""By number; ``WORKED`` is the first of three."""
INTERRUPT, PLACE, BASE, LIMIT = range(17, 21)
START, RESET = 1, 2


class Registers:
    """``starts`` and ``resets`` for a cycle. ``ends`` for a cycle with ``error`` and ``error_at``. ``base`` and
    ``limit`` are those of the ``wanted`` place."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self._select, self._enable = Signal(name="s_psel"), Signal(name="s_penable")
        self._write, self._address = Signal(name="s_pwrite"), Signal(8, name="s_paddr")
        self._data, self._found = Signal(32, name="s_pwdata"), Signal(32, name="s_prdata")
        self.interrupt, self.busy = Signal(name="irq"), Signal(name="busy")
        self.starts, self.resets = Signal(), Signal()
        self.commands, self.length = Signal(32), Signal(32)
        self.ends, self.error, self.error_at = Signal(), Signal(ERROR), Signal(32)
        self.wanted, self.base, self.limit = Signal(6), Signal(32), Signal(32)
        self.counts, self.worked = Signal(), Signal(ENGINES)
        self._place = Signal(6)
        number = self._address[2:]
        writes = self._select & self._enable & self._write
        self._writes = {i: writes & (number == i) for i in range(LIMIT + 1)}
        self._reads_cycles = self._select & self._enable & ~self._write & (number == CYCLES)
        m.d.comb += [
            self.starts.eq(self._writes[CONTROL] & (self._data == START)),
            self.resets.eq(self._writes[CONTROL] & (self._data == RESET)),
        ]
        numbers = (machine.width, machine.width, machine.ports, machine.queue)
        values: dict[int, Any] = {0: C(IDENTITY, 32), 1: C(VERSION, 32), 2: Cat(*(C(n, 8) for n in numbers))}
        values |= {3: C(machine.activations, 32), 4: C(machine.weights, 32), 5: C(machine.sums, 32)}
        values |= self._state() | self._counters() | self._places()
        with m.Switch(number):
            for i, value in values.items():
                with m.Case(i):
                    m.d.comb += self._found.eq(value)

    @property
    def ports(self) -> list[Any]:
        return [self._select, self._enable, self._write, self._address, self._data, self._found, self.busy]

    def _state(self) -> dict[int, Any]:
        m = self.module
        done, failed, enabled, pending = Signal(), Signal(), Signal(), Signal()
        error, error_at = Signal(ERROR), Signal(32, init=NOBODY)
        for i, value in ((COMMANDS, self.commands), (LENGTH, self.length)):
            with m.If(self._writes[i]):
                m.d.sync += value.eq(self._data)
        with m.If(self._writes[STATUS] | self.starts | self.resets):
            m.d.sync += [done.eq(0), failed.eq(0)]
        with m.If(self._writes[INTERRUPT]):
            m.d.sync += [enabled.eq(self._data[0]), pending.eq(pending & ~self._data[1])]
        with m.If(self.ends):
            m.d.sync += [done.eq(1), failed.eq(self.error != OK), pending.eq(1)]
            m.d.sync += [error.eq(self.error), error_at.eq(self.error_at)]
        with m.If(self.resets):
            m.d.sync += [error.eq(OK), error_at.eq(NOBODY), enabled.eq(0), pending.eq(0)]
        m.d.comb += self.interrupt.eq(enabled & pending)
        return {
            STATUS: Cat(done, failed, self.counts),
            ERROR_CODE: error,
            ERROR_COMMAND: error_at,
            COMMANDS: self.commands,
            LENGTH: self.length,
            INTERRUPT: Cat(enabled, pending),
        }

    def _counters(self) -> dict[int, Any]:
        m, cycles, held = self.module, Signal(64, name="cycles"), Signal(32)
        m.d.sync += cycles.eq(cycles + self.counts)
        with m.If(self._reads_cycles):
            m.d.sync += held.eq(cycles[32:])
        values = {CYCLES: cycles[:32], CYCLES_HIGH: held}
        for i in range(ENGINES):
            count = Signal(32, name=f"worked{i}")
            m.d.sync += count.eq(count + self.worked[i])
            values[WORKED + i] = count
        return values

    def _places(self) -> dict[int, Any]:
        """What nobody told is 0."""
        m, found = self.module, {}
        with m.If(self._writes[PLACE]):
            m.d.sync += self._place.eq(self._data)
        for number, name, out in ((BASE, "bases", self.base), (LIMIT, "limits", self.limit)):
            told, shown = Signal(PLACES, name=f"told_{name}"), Signal(32, name=f"shown_{name}")
            memory = Memory(shape=32, depth=PLACES, init=[])
            m.submodules[name] = memory
            write, *reads = (memory.write_port(), *(memory.read_port(domain="comb") for _ in range(2)))
            m.d.comb += [*(write.addr.eq(self._place), write.data.eq(self._data), write.en.eq(self._writes[number]))]
            with m.If(write.en):
                m.d.sync += told.bit_select(self._place, 1).eq(1)
            for read, place, to in zip(reads, (self._place, self.wanted), (shown, out), strict=True):
                m.d.comb += [read.addr.eq(place), to.eq(Mux(told.bit_select(place, 1), read.data, 0))]
            found[number] = shown
        return {PLACE: self._place, **found}
