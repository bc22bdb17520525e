"""Bytes in memory as an AXI4 master sees them: runs of bytes, runs in planes, and bursts that they become."""

from __future__ import annotations

from typing import Any, Final

from amaranth.hdl import Module, Mux, Signal

from npu_rtl.numbers import ADDRESS, Machine, high, low

LARGEST: Final = 16
"""Beats of a burst: each run begins with one, and its next ones follow after as many beats, or at a page."""
PAGE: Final = 4096
"""Bytes whose border no burst crosses."""


class Runs:
    """``start`` for a cycle. Then ``there`` and ``here`` are the run's first addresses, in memory and on chip, until
    ``next`` goes on to the run behind it. ``words`` are those of a LOAD or a STORE."""

    def __init__(self, name: str, there: Any, words: Any) -> None:
        self.module = m = Module()
        self.start, self.next = Signal(name=f"{name}_start"), Signal(name=f"{name}_next")
        self.active, self.last = Signal(name=f"{name}_active"), Signal(name=f"{name}_last")
        self.there, self.here = Signal(32, name=f"{name}_there"), Signal(ADDRESS, name=f"{name}_here")
        self.bytes = words[4]
        run, plane = Signal(16), Signal(16)
        plane_there, plane_here = Signal(32), Signal(ADDRESS)
        ends = run == 1
        m.d.comb += self.last.eq(ends & (plane == 1))

        def begin(where: Any, chip: Any) -> None:
            m.d.sync += [self.there.eq(where), self.here.eq(chip), plane_there.eq(where), plane_here.eq(chip)]
            m.d.sync += run.eq(low(words[5]))

        with m.If(self.start):
            begin(there, words[3])
            m.d.sync += [plane.eq(high(words[5])), self.active.eq(1)]
        with m.Elif(self.next):
            with m.If(~ends):
                m.d.sync += [self.there.eq(self.there + words[6]), self.here.eq(self.here + words[8])]
                m.d.sync += run.eq(run - 1)
            with m.Else():
                begin(plane_there + words[7], plane_here + words[9])
                m.d.sync += [plane.eq(plane - 1), self.active.eq(plane != 1)]


class Bursts:
    """An address channel, on which ``runs`` are asked for while it is ``allowed``, up to ``largest`` beats at once."""

    def __init__(self, name: str, machine: Machine, runs: Runs, largest: int = LARGEST) -> None:
        self.module = m = Module()
        self.valid, self.ready = Signal(name=f"{name}_valid"), Signal(name=f"{name}_ready")
        self.address, self.length = Signal(32, name=f"{name}_addr"), Signal(8, name=f"{name}_len")
        self.allowed, self.asked = Signal(name=f"{name}_allowed"), Signal(name=f"{name}_asked")
        self.beats = Signal(8, name=f"{name}_beats")
        shift = machine.bus.bit_length() - 1
        done, beats, at = Signal(32), Signal(32), Signal(32)
        behind, to_page = largest - done[: largest.bit_length() - 1], PAGE // machine.bus - page_of(at, machine)
        to_border = Signal(8)
        m.submodules.runs = runs.module
        m.d.comb += [
            at.eq((runs.there >> shift) + done),
            beats.eq(beats_of(runs.there, runs.bytes, machine) - done),
            to_border.eq(Mux(behind > to_page, to_page, behind)),
            self.beats.eq(Mux(beats > to_border, to_border, beats)),
            self.length.eq(self.beats - 1),
            self.address.eq(at << shift),
            self.valid.eq(runs.active & self.allowed),
            self.asked.eq(self.valid & self.ready),
            runs.next.eq(self.asked & (self.beats == beats)),
        ]
        with m.If(runs.start | runs.next):
            m.d.sync += done.eq(0)
        with m.Elif(self.asked):
            m.d.sync += done.eq(done + self.beats)


def page_of(beat: Any, machine: Machine) -> Any:
    """Which of its page this beat is."""
    return beat[: PAGE.bit_length() - machine.bus.bit_length()]


def beats_of(address: Any, count: Any, machine: Machine) -> Any:
    """How many beats hold so many bytes from this address on."""
    shift = machine.bus.bit_length() - 1
    return (address[:shift] + count + (machine.bus - 1)) >> shift
