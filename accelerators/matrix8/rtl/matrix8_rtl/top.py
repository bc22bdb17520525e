"""The whole unit: registers behind APB, a check, three engines with their queues, memories on chip, an AXI4 master."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from matrix8_rtl.array import Array
from matrix8_rtl.check import Check
from matrix8_rtl.loader import Loader
from matrix8_rtl.memories import Memories
from matrix8_rtl.numbers import ARRAY, ENGINES, FILL, LOADER, MULTIPLY, NONE, STORE, STORER
from matrix8_rtl.queues import Queues
from matrix8_rtl.storer import Storer

IDENTITY, VERSION = 0x4D545838, 0x00010001
STATUS, ERROR, ERROR_AT, COMMAND, CONTROL, COMMANDS, CYCLES, BUSY = 2, 3, 4, 5, 6, 7, 8, 9
"""Registers by number; ``BUSY`` is the first of three."""
ARGUMENTS, WINDOW, OUTPUT, REGISTERS = 16, 24, 31, 35
BURST_OF_WORDS: Final = {"size": 3, "burst": 1}


class Matrix8:
    """``module`` with its ``ports``."""

    def __init__(self) -> None:
        self.module = m = Module()
        self._select, self._enable, self._write = (
            Signal(name="s_psel"),
            Signal(name="s_penable"),
            Signal(name="s_pwrite"),
        )
        self._address, self._data = Signal(8, name="s_paddr"), Signal(32, name="s_pwdata")
        self._found, self._ready = Signal(32, name="s_prdata"), Signal(name="s_pready")
        self._busy = Signal(name="busy")
        self._held = [Signal(32, name=f"held{i}") for i in range(ARGUMENTS, REGISTERS)]
        self._arguments, self._window, self._output = self._held[:8], self._held[8:15], self._held[15:]
        self._what, self._failed, self._drains = Signal(32), Signal(), Signal()
        self._error, self._error_at = Signal(3), Signal(32)
        self._given, self._done, self._cycles = Signal(32), Signal(32), Signal(32)
        self._worked = [Signal(32, name=f"worked{i}") for i in range(ENGINES)]
        memories = Memories()
        self._queues = Queues()
        self._engines: list[Any] = [Loader(memories), Array(memories), Storer(memories)]
        self._check = Check(self._what, self._arguments, self._window, self._output[3])
        parts = (memories, self._queues, self._check, *self._engines)
        m.submodules += [part.module for part in parts]
        self._registers()
        self._commands()
        self._work()
        self._errors()

    @property
    def ports(self) -> list[Any]:
        registers = [self._select, self._enable, self._write, self._address, self._data, self._found, self._ready]
        bursts = []
        for channel in ("ar", "aw"):
            for name, value in BURST_OF_WORDS.items():
                constant = Signal(3 if name == "size" else 2, name=f"m_{channel}{name}")
                self.module.d.comb += constant.eq(value)
                bursts.append(constant)
        return [*registers, *self._engines[LOADER].ports, *self._engines[STORER].ports, *bursts, self._busy]

    def _registers(self) -> None:
        """What a command is made of waits until there is room for a command."""
        m, number = self.module, self._address[2:]
        check = self._check.start | self._check.active
        full = check | self._queues.full.any() | self._drains
        m.d.comb += self._busy.eq(check | ~self._queues.empty | self._drains)
        values = {0: Const(IDENTITY, 32), 1: Const(VERSION, 32), STATUS: Cat(self._busy, full, self._failed)}
        values |= {ERROR: self._error, ERROR_AT: self._error_at, COMMAND: self._what, COMMANDS: self._done}
        values |= {CYCLES: self._cycles, **{BUSY + i: value for i, value in enumerate(self._worked)}}
        values |= {ARGUMENTS + i: value for i, value in enumerate(self._held)}
        with m.Switch(number):
            for i, value in values.items():
                with m.Case(i):
                    m.d.comb += self._found.eq(value)
        part = (number >= ARGUMENTS) | (number == COMMAND)
        m.d.comb += self._ready.eq(~(self._write & part & full))
        writes = self._select & self._enable & self._write & self._ready
        for i, value in enumerate(self._held):
            with m.If(writes & (number == ARGUMENTS + i)):
                m.d.sync += value.eq(self._data)
        with m.If(writes & (number == COMMAND)):
            m.d.sync += self._what.eq(self._data)
        m.d.sync += self._check.start.eq(writes & (number == COMMAND) & ~self._failed)
        self._clears = writes & (number == CONTROL) & self._data[0]

    def _commands(self) -> None:
        """What was given, as the engines take it."""
        m, a, w, o, queues = self.module, self._arguments, self._window, self._output, self._queues
        load, multiply, store = queues.commands
        fill = self._what == FILL
        m.d.comb += [command.number.eq(self._given) for command in queues.commands]
        m.d.comb += [
            load.fill.eq(fill),
            *(load[name].eq(value) for name, value in zip(("memory", "offset"), a[:2], strict=True)),
            load.pitch.eq(a[2]),
            load.address.eq(a[3]),
            load.stride.eq(a[4]),
            load.rows.eq(Mux(fill, 1, a[5])),
            load.bytes.eq(Mux(fill, a[2], a[6])),
            load.value.eq(a[3]),
            multiply.accumulators.eq(a[0] >> 5),
            multiply.activations.eq(a[1]),
            multiply.weights.eq(a[2] >> 6),
            *(multiply[name].eq(value) for name, value in zip(("rows", "columns", "blocks"), a[3:6], strict=True)),
            multiply.add.eq(a[6] != 0),
            multiply.kernel_rows.eq(w[0]),
            multiply.kernel_columns.eq(w[1]),
            multiply.run.eq((w[2] + 7) >> 3),
            multiply.kernel_row_pitch.eq(w[3]),
            multiply.kernel_column_pitch.eq(w[4]),
            multiply.row_pitch.eq(w[5]),
            multiply.column_pitch.eq(w[6]),
            store.address.eq(a[0]),
            store.stride.eq(a[1]),
            store.accumulators.eq(a[2] >> 5),
            store.parameters.eq(a[3] >> 5),
            store.pixels.eq(a[4]),
            store.channels.eq(a[5]),
            *(store[name].eq(o[i]) for i, name in enumerate(("zero_point", "least", "greatest", "single"))),
        ]
        engine = Mux(self._what == MULTIPLY, ARRAY, Mux(self._what == STORE, STORER, LOADER))
        good = self._check.done & (self._check.error == NONE) & ~self._failed
        m.d.comb += [queues.engine.eq(engine), queues.banks.eq(self._check.banks), queues.put.eq(good)]
        m.d.sync += self._given.eq(self._given + good)

    def _work(self) -> None:
        m, queues = self.module, self._queues
        for number, engine in enumerate(self._engines):
            head = queues.heads[number]
            later = self._failed & (head.number > self._error_at)
            m.d.comb += [
                engine.command.eq(head),
                engine.start.eq(queues.starts[number]),
                queues.done[number].eq(engine.done),
                queues.drops[number].eq(later | self._drains),
            ]
            with m.If(queues.active[number]):
                m.d.sync += self._worked[number].eq(self._worked[number] + 1)
        with m.If(~queues.empty):
            m.d.sync += self._cycles.eq(self._cycles + 1)

    def _errors(self) -> None:
        """The first command that is wrong is the one that counts, whichever is told first."""
        m, queues = self.module, self._queues
        ended = []
        for number, engine in enumerate(self._engines):
            wrong = engine.done & (engine.error != NONE)
            ended.append(engine.done & (engine.error == NONE))
            with m.If(wrong & (~self._failed | (queues.heads[number].number < self._error_at))):
                self._tell(engine.error, queues.heads[number].number)
        with m.If(self._check.done & (self._check.error != NONE) & ~self._failed):
            self._tell(self._check.error, self._given)
        count = sum(ended[1:], start=ended[0])
        m.d.sync += self._done.eq(self._done + count)
        with m.If(self._drains & queues.empty & ~self._check.start & ~self._check.active):
            m.d.sync += self._drains.eq(0)
        with m.If(self._clears | self._drains):
            counters = (self._error, self._error_at, self._given, self._done, self._cycles, *self._worked)
            m.d.sync += [value.eq(0) for value in (self._failed, *counters)]
        with m.If(self._clears & self._busy):
            m.d.sync += self._drains.eq(1)

    def _tell(self, error: Any, number: Any) -> None:
        self.module.d.sync += [self._failed.eq(1), self._error.eq(error), self._error_at.eq(number)]
