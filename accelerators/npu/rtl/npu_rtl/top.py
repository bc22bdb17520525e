"""The whole machine: registers behind APB, commands on their way, three engines, memories on chip, an AXI4 master."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal

from npu_rtl.bus import Bursts
from npu_rtl.check import Check
from npu_rtl.compute import Compute
from npu_rtl.fetch import Fetch
from npu_rtl.loader import Loader
from npu_rtl.memories import Memories
from npu_rtl.numbers import COMPUTER, DEADLOCK, ERROR, LOAD, LOADER, LONGEST, OK, STORE, STORER, STREAM, TOKEN, Machine
from npu_rtl.queues import Queues
from npu_rtl.registers import NOBODY, Registers
from npu_rtl.storer import Storer

FETCHED: Final = 1
"""The id of reads that fetch commands; loads have 0."""


class Npu:
    """``module`` with its ``ports``."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self._machine = machine
        self._memories, self._fetch, self._queues = Memories(machine), Fetch(machine), Queues(machine)
        self._engines: list[Any] = [
            Loader(machine, self._memories),
            Compute(machine, self._memories),
            Storer(machine, self._memories),
        ]
        self._registers = Registers(machine)
        self._held = [Signal(32, name=f"held{i}") for i in range(LONGEST)]
        self._check = Check(machine, self._held, self._registers.base, self._registers.limit)
        parts = (self._memories, self._fetch, self._queues, self._registers, self._check, *self._engines)
        m.submodules += [part.module for part in parts]
        self._works, self._fails, self._quiet, self._clears = Signal(), Signal(), Signal(), Signal()
        self._wanted = Signal()
        """All is to be cleared, as soon as the job has ended; what starts meanwhile waits for that, too."""
        self._number, self._holds, self._judges = Signal(32), Signal(), Signal()
        self._error, self._error_at = Signal(ERROR), Signal(32)
        self.ports = [*self._registers.ports, self._registers.interrupt]
        self._commands()
        self._work()
        self._job()
        self._clear()
        self._reads()
        self._writes()

    def _commands(self) -> None:
        """Each is checked, and waits for room in its queue."""
        m, fetch, check, queues = self.module, self._fetch, self._check, self._queues
        takes = fetch.valid & (fetch.error == OK) & ~self._judges & ~self._holds & ~self._fails
        index, starts = Signal(32), Signal()
        opcode = self._held[0][:8]
        engine = Mux(opcode == LOAD, LOADER, Mux(opcode == STORE, STORER, COMPUTER))
        good = check.done & (check.error == OK)
        m.d.comb += [
            fetch.take.eq(takes),
            check.start.eq(starts),
            self._registers.wanted.eq(self._held[1][:6]),
            queues.engine.eq(engine),
            queues.put.eq(self._holds & ~queues.full.bit_select(engine, 1) & ~self._fails),
        ]
        m.d.sync += starts.eq(takes)
        with m.If(takes):
            m.d.sync += [kept.eq(word) for kept, word in zip(self._held, fetch.words, strict=True)]
            m.d.sync += [index.eq(self._number), self._number.eq(self._number + 1), self._judges.eq(1)]
        with m.If(check.done):
            m.d.sync += [self._judges.eq(0), self._holds.eq(good)]
        with m.If(queues.put | self._fails):
            m.d.sync += self._holds.eq(0)
        for given in queues.given:
            m.d.comb += given.index.eq(index)
            m.d.comb += given.words.eq(Cat(*self._held))
        for given in (queues.given[LOADER], queues.given[STORER]):
            m.d.comb += given.there.eq(check.there)
        self._checked = index

    def _work(self) -> None:
        m, queues = self.module, self._queues
        for number, engine in enumerate(self._engines):
            m.d.comb += [
                engine.command.eq(queues.commands[number]),
                engine.start.eq(queues.starts[number]),
                queues.done[number].eq(engine.done),
                self._registers.worked[number].eq(queues.works[number]),
            ]

    def _job(self) -> None:
        m, registers, queues, fetch = self.module, self._registers, self._queues, self._fetch
        begins, wrong = Signal(), (registers.length == 0) | (Cat(registers.length[:2], registers.commands[:2]) != 0)
        waits = registers.starts & (self._wanted | self._clears)
        later = Signal()
        m.d.comb += begins.eq((registers.starts | later) & ~self._wanted & ~self._clears & ~self._works)
        with m.If(waits):
            m.d.sync += later.eq(1)
        with m.Elif(begins):
            m.d.sync += later.eq(0)
        m.d.comb += [
            fetch.start.eq(begins & ~wrong),
            *(fetch.at.eq(registers.commands), fetch.bytes.eq(registers.length)),
            queues.begin.eq(begins),
            *(fetch.stop.eq(self._fails), queues.stop.eq(self._fails)),
            registers.busy.eq(self._works | self._wanted | self._clears | later | fetch.active),
            registers.counts.eq(self._works),
        ]
        rests = ~self._judges & ~self._holds & fetch.ended & queues.empty & queues.rests
        aborted = self._fails & (queues.active == 0) & ~self._judges & ~fetch.active
        ends = self._works & (aborted | (rests & ~self._fails))
        m.d.comb += [
            registers.ends.eq((ends & ~self._quiet) | (begins & wrong)),
            registers.error.eq(Mux(begins, STREAM, Mux(self._fails, self._error, OK))),
            registers.error_at.eq(Mux(begins | ~self._fails, NOBODY, self._error_at)),
        ]
        with m.If(begins & ~wrong):
            m.d.sync += [self._works.eq(1), self._number.eq(0)]
        with m.If(ends):
            m.d.sync += [self._works.eq(0), self._fails.eq(0), self._quiet.eq(0)]
        with m.If(self._works & ~self._fails):
            self._errors()
        with m.If(registers.resets & self._works):
            m.d.sync += [self._fails.eq(1), self._quiet.eq(1)]

    def _errors(self) -> None:
        """The first one counts."""
        m, queues, fetch, check = self.module, self._queues, self._fetch, self._check
        full = self._holds & queues.full.bit_select(queues.engine, 1)
        stuck = queues.rests & ~queues.empty & ((fetch.ended & ~self._judges & ~self._holds) | full)
        free = ~self._judges & ~self._holds

        def tell(condition: Any, error: Any, index: Any) -> None:
            with m.If(condition):
                m.d.sync += [self._fails.eq(1), self._error.eq(error), self._error_at.eq(index)]

        tell(stuck, DEADLOCK, queues.oldest)
        tell(fetch.valid & (fetch.error != OK) & free, fetch.error, self._number)
        tell(check.done & (check.error != OK), check.error, self._checked)
        for number, engine in enumerate(self._engines):
            index = queues.commands[number].index
            tell(engine.done & queues.overflows[number], TOKEN, index)
            tell(engine.done & (engine.error != OK), engine.error, index)

    def _clear(self) -> None:
        """The memories, a row in each cycle; after a job, where there is one."""
        m, machine, wanted, at = self.module, self._machine, self._wanted, Signal(16)
        rows = max(machine.activations // machine.width, machine.weights // machine.tile)
        with m.If(self._registers.resets):
            m.d.sync += wanted.eq(1)
        with m.If(wanted & ~self._works):
            m.d.sync += [wanted.eq(0), self._clears.eq(1), at.eq(0)]
        with m.If(self._clears):
            m.d.sync += [at.eq(at + 1), self._clears.eq(at != rows - 1)]
        m.d.comb += [self._memories.clears.eq(self._clears), self._memories.clears_at.eq(at)]

    def _port(self, name: str, width: int = 1) -> Any:
        signal = Signal(width, name=f"m_{name}")
        self.ports.append(signal)
        return signal

    def _addresses(self, channel: str) -> Any:
        """Adds the ports of a channel and returns valid, ready, address and length; the rest is the same for all
        bursts."""
        size, burst = self._port(f"{channel}size", 3), self._port(f"{channel}burst", 2)
        self.module.d.comb += [size.eq(self._machine.bus.bit_length() - 1), burst.eq(1)]
        return (
            *(self._port(f"{channel}{name}") for name in ("valid", "ready")),
            *(self._port(f"{channel}addr", 32), self._port(f"{channel}len", 8)),
        )

    def _reads(self) -> None:
        """Fetching comes before loading; an address that is told stays. Whether a beat is taken does not depend on
        whose it is, as no output may follow an input: one of fetching waits where one of a load would have to."""
        m, loader, fetch = self.module, self._engines[LOADER], self._fetch
        valid, ready, address, length = self._addresses("ar")
        number, found = self._port("arid"), self._port("rid")
        waits, was = Signal(), Signal()
        fetches = Mux(waits, was, fetch.bursts.valid)
        m.d.sync += [waits.eq(valid & ~ready), was.eq(fetches)]
        sides: tuple[tuple[Any, Bursts], ...] = ((~fetches, loader.bursts), (fetches, fetch.bursts))
        for mine, bursts in sides:
            m.d.comb += bursts.ready.eq(ready & mine)
            with m.If(mine):
                m.d.comb += [valid.eq(bursts.valid), address.eq(bursts.address), length.eq(bursts.length)]
        m.d.comb += number.eq(Mux(fetches, FETCHED, 0))
        comes, takes, last = (self._port(f"r{name}") for name in ("valid", "ready", "last"))
        data, response = self._port("rdata", 8 * self._machine.bus), self._port("rresp", 2)
        mine = found == FETCHED
        m.d.comb += [
            *(fetch.beat.eq(comes & takes & mine), fetch.data.eq(data), fetch.response.eq(response)),
            *(loader.valid.eq(comes & ~mine), loader.data.eq(data), loader.response.eq(response)),
            *(loader.last.eq(last), takes.eq(fetch.ready & loader.ready)),
        ]

    def _writes(self) -> None:
        m, storer = self.module, self._engines[STORER]
        valid, ready, address, length = self._addresses("aw")
        m.d.comb += [
            *(valid.eq(storer.bursts.valid), storer.bursts.ready.eq(ready)),
            *(address.eq(storer.bursts.address), length.eq(storer.bursts.length)),
        ]
        valid, ready, last = (self._port(f"w{name}") for name in ("valid", "ready", "last"))
        data, strobes = self._port("wdata", 8 * self._machine.bus), self._port("wstrb", self._machine.bus)
        answers, listens, response = self._port("bvalid"), self._port("bready"), self._port("bresp", 2)
        m.d.comb += [
            *(valid.eq(storer.valid), storer.ready.eq(ready), last.eq(storer.last)),
            *(data.eq(storer.data), strobes.eq(storer.strobes), listens.eq(1)),
            *(storer.answered.eq(answers), storer.response.eq(response)),
        ]
