"""Beats of a run become vectors, so that a load seldom wants a memory that the compute engine writes to as well."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal

from npu_rtl.numbers import ADDRESS, Machine


class Gather:
    """A beat ``goes`` where it is ``ready``: ``data`` for ``at``, of which the bytes ``inside`` count; it may be the
    one with which its run ``ends``. A vector is ``valid`` until it is ``taken``. ``empties``: it is the last one.

    A vector that is whole goes at once, or waits behind the next one's beats."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        bus, width = machine.bus, machine.width
        self.goes, self.ends, self.ready = Signal(), Signal(), Signal()
        self.at, self.data, self.inside = Signal(ADDRESS), Signal(8 * bus), Signal(bus)
        self.valid, self.taken, self.empties = Signal(), Signal(), Signal()
        self.vector_at, self.vector, self.mask = Signal(ADDRESS), Signal(8 * width), Signal(width)
        beats = width // bus
        full, waits, number = Signal(), Signal(), Signal(range(max(2, beats)))
        kept = [Signal(shape, name=name) for name, shape in (("at", ADDRESS), ("vector", 8 * width), ("mask", width))]
        held = [Signal(signal.shape(), name=f"held_{signal.name}") for signal in kept]
        shown = (self.vector_at, self.vector, self.mask)
        m.d.comb += [
            self.valid.eq(full | waits),
            self.ready.eq(~full | ~waits | self.taken),
            self.empties.eq(self.taken & ~(full & waits)),
            *(to.eq(Mux(waits, older, newer)) for to, older, newer in zip(shown, held, kept, strict=True)),
        ]
        moves = full & (waits == self.taken)
        m.d.sync += waits.eq(moves | (waits & ~self.taken))
        with m.If(moves):
            m.d.sync += [older.eq(newer) for older, newer in zip(held, kept, strict=True)]
        last: Any = number == beats - 1
        with m.If(self.goes):
            m.d.sync += [full.eq(last | self.ends), number.eq(Mux(last | self.ends, 0, number + 1))]
            self._keep(kept, number, bus)
        with m.Elif(self.ready):
            m.d.sync += full.eq(0)

    def _keep(self, kept: list[Signal], number: Signal, bus: int) -> None:
        """A vector begins with its first beat, and has nothing behind it yet."""
        m, (at, vector, mask) = self.module, kept
        with m.If(number == 0):
            m.d.sync += [at.eq(self.at), vector.eq(self.data), mask.eq(self.inside)]
        with m.Else():
            m.d.sync += [
                vector.word_select(number, 8 * bus).eq(self.data),
                mask.word_select(number, bus).eq(self.inside),
            ]
