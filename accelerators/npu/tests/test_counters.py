"""Registers of the RTL by themselves, cycle by cycle: counters beyond 32 bits, and an interrupt that is cleared while
it comes. Neither can be seen from outside in the time that a test has."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.device.planted import Bug

pytestmark = pytest.mark.skipif(importlib.util.find_spec("amaranth") is None, reason="amaranth is not installed")
CYCLES, CYCLES_HIGH, BUSY, INTERRUPT = 0x30, 0x34, (0x38, 0x3C, 0x40), 0x44
RTL = Path(__file__).resolve().parents[1] / "rtl"
BEGINS = [*((1 << 32) - back for back in range(2, 9)), (5 << 32) - 3, (1 << 31) - 6, (1 << 47) - 6, (1 << 40) + 7]


@contextmanager
def registers_of(folder: Path) -> Iterator[Callable[[], Any]]:
    """Makes registers of the RTL in this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        from npu_rtl import numbers
        from npu_rtl import registers as module

        words = ("width=16", "ports=4", "activations=65536", "weights=49152", "sums=16384", "bus=8", "queue=32")
        yield lambda: module.Registers(numbers.machine_of(list(words)))
    for name in [name for name in sys.modules if name.startswith("npu_rtl")]:
        del sys.modules[name]


@pytest.fixture
def registers() -> Iterator[Any]:
    with registers_of(RTL) as made:
        yield made()


class Bus:
    """APB, in the simulation of Amaranth."""

    def __init__(self, registers: Any, context: Any) -> None:
        self._context = context
        self._select, self._enable, self._write, self._address, self._data, self._found, _ = registers.ports

    async def access(self, offset: int, data: int | None = None) -> int:
        context = self._context
        context.set(self._address, offset)
        context.set(self._write, data is not None)
        context.set(self._data, data or 0)
        context.set(self._select, 1)
        await context.tick()
        context.set(self._enable, 1)
        found = int(context.get(self._found))
        await context.tick()
        context.set(self._select, 0)
        context.set(self._enable, 0)
        return found


def simulate(registers: Any, bench: Callable[[Any, Bus], Any]) -> None:
    from amaranth.sim import Simulator

    simulator = Simulator(registers.module)
    simulator.add_clock(1e-6)

    async def run(context: Any) -> None:
        await bench(context, Bus(registers, context))

    simulator.add_testbench(run)
    simulator.run()


def counter(registers: Any, name: str, bits: int) -> Any:
    """The register of that name."""
    from amaranth.hdl import Fragment

    signals = Fragment.get(registers.module, None).statements["sync"]._rhs_signals()
    found = next(signal for signal in signals if signal.name == name)
    assert len(found) == bits
    return found


def counts(registers: Any, begin: int) -> None:
    """It counts in each cycle, so that the low half tells how far it is when the high half is held."""
    counter(registers, "cycles", 64)._init = begin

    async def bench(context: Any, bus: Bus) -> None:
        context.set(registers.counts, 1)
        for _ in range(6):
            low = await bus.access(CYCLES)
            high = await bus.access(CYCLES_HIGH)
            value = high << 32 | low
            assert 0 < value - begin < 64
            assert await bus.access(CYCLES_HIGH) == high, "it is held until the low half is read again"

    simulate(registers, bench)


@pytest.mark.parametrize("begin", BEGINS)
def test_the_high_half_of_the_cycles_is_that_of_the_low_half(registers: Any, begin: int) -> None:
    counts(registers, begin)


@pytest.mark.parametrize("engine", range(3))
def test_each_engine_has_its_counter(registers: Any, engine: int) -> None:
    async def bench(context: Any, bus: Bus) -> None:
        context.set(registers.worked, 1 << engine)
        await context.tick().repeat(10)
        context.set(registers.worked, 0)
        assert [await bus.access(offset) for offset in BUSY] == [10 * (i == engine) for i in range(3)]
        assert await bus.access(CYCLES) == 0

    simulate(registers, bench)


def interrupts(registers: Any, after: int, what: int) -> None:
    """A write takes two cycles, and clears with the second one."""

    async def bench(context: Any, bus: Bus) -> None:
        await bus.access(INTERRUPT, 1)

        # Two steps of the bus by hand, with the end of a job in the cycle that is asked for.
        for cycle, (select, enable) in enumerate([(0, 0), (1, 0), (1, 1), (0, 0), (0, 0)]):
            for signal, value in zip(registers.ports[:5], (select, enable, 1, INTERRUPT, what), strict=True):
                context.set(signal, value)
            context.set(registers.ends, cycle == after)
            await context.tick()
        context.set(registers.ends, 0)
        enabled = what & 1
        pending = int(after >= 2)
        assert context.get(registers.interrupt) == (enabled & pending)
        assert await bus.access(INTERRUPT) == (pending << 1 | enabled)

    simulate(registers, bench)


@pytest.mark.parametrize("after", range(5))
@pytest.mark.parametrize("what", [2, 3])
def test_an_interrupt_that_comes_while_it_is_cleared_stays(registers: Any, after: int, what: int) -> None:
    interrupts(registers, after, what)


BUGS = {
    "an interrupt is cleared while it comes": ("self.ends):", "self.ends & ~self._writes[INTERRUPT]):"),
    "the high half is ahead": ("held.eq(cycles[32:])", "held.eq((cycles + 4)[32:])"),
    "the high half moves on": ("CYCLES_HIGH: held", "CYCLES_HIGH: cycles[32:]"),
    "a counter of 40 bits": ("cycles.eq(cycles + self.counts)", "cycles[:40].eq(cycles[:40] + self.counts)"),
    "the high half is that of an earlier read": ("(number == CYCLES)", "(number == CYCLES_HIGH)"),
}


def check_all(make: Callable[[], Any]) -> None:
    for begin in BEGINS:
        counts(make(), begin)
    for after, what in product(range(5), (2, 3)):
        interrupts(make(), after, what)


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_is_found(bug: str, tmp_path: Path) -> None:
    Bug("npu_rtl/registers.py", *BUGS[bug], "").plant(RTL.parent, tmp_path)
    with registers_of(tmp_path / "npu" / "rtl") as make, pytest.raises(AssertionError):
        check_all(make)
