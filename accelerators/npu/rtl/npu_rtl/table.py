"""The table of LOOKUP: a byte for each byte, in a memory that is read in the cycle of its address."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory

from npu_rtl.numbers import TABLE_BYTES, Machine


class Table:
    """It comes as tiles: where one ``comes``, it is ``part``. Each ``found`` is the byte with that ``number``."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        ports = range(machine.ports)
        self.comes, self.part, self.tile = Signal(), Signal(4), Signal(8 * machine.tile)
        self.number = [Signal(8, name=f"number{port}") for port in ports]
        self.found = [Signal(8, name=f"found{port}") for port in ports]
        rows = max(2, TABLE_BYTES // machine.tile)  # Verilog has no address of no bits
        m.submodules.bytes = memory = Memory(shape=8 * machine.tile, depth=rows, init=[])
        writes, inside = memory.write_port(), machine.tile.bit_length() - 1
        m.d.comb += [writes.en.eq(self.comes), writes.addr.eq(self.part), writes.data.eq(self.tile)]
        for number, found in zip(self.number, self.found, strict=True):
            reads = memory.read_port(domain="comb")
            m.d.comb += [reads.addr.eq(number[inside:]), found.eq(reads.data.word_select(number[:inside], 8))]
