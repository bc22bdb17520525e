"""The memories on chip. What is read comes a cycle after its address. Each has one port to write and one to read, but
activations have as many ports to read as the machine says: as many copies, which are written at once.

A read of activations gives a vector from any byte on, one of weights a tile from any row of a tile on."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory

from npu_rtl.numbers import ADDRESS, CHANNEL_WORDS, Machine


class Memories:
    """The store engine reads at the last port of activations, and waits a cycle at most for the feeder. Residuals come
    from the port before, or from the same one where there are two, behind the store engine and before the feeder. The
    compute engine writes before the load engine."""

    def __init__(self, machine: Machine) -> None:
        self.module = m = Module()
        self.machine = machine
        width = machine.width
        self.clears, self.clears_at = Signal(), Signal(16)
        """All bytes become 0, those of a row at a time."""
        self.load_valid, self.load_ready, self.load_weights = Signal(), Signal(), Signal()
        self.load_at, self.load_mask = Signal(ADDRESS), Signal(width)
        self.load_data = Signal(8 * width)
        self.store_valid, self.store_ready, self.store_at = Signal(), Signal(), Signal(ADDRESS)
        self.residual_valid, self.residual_ready, self.residual_at = Signal(), Signal(), Signal(ADDRESS)
        ports = range(machine.ports)
        self.reads, self.read_ready = Signal(machine.ports), Signal()
        """By port; it is ready where all of them are."""
        self.read_at = [Signal(ADDRESS, name=f"read_at{i}") for i in ports]
        self.activations = [Signal(8 * width, name=f"activations_read{i}") for i in ports]
        self.stored, self.residual = self.activations[-1], self.activations[self._residual_port]
        self.write_mask, self.write_at, self.written = Signal(width), Signal(ADDRESS), Signal(8 * width)
        self.tile_at = Signal(ADDRESS)
        """Rows of tiles."""
        self.tile = Signal(8 * machine.tile)
        self.pack_mask, self.pack_row = Signal(width * width), Signal(ADDRESS)
        self.packed = Signal(8 * machine.tile)
        """As a tile."""
        self.sums_at, self.sums = Signal(16), Signal(32 * width)
        self.keeps, self.kept_at, self.kept = Signal(), Signal(16), Signal(32 * width)
        self.parameters_at, self.parameters = Signal(16), Signal(32 * CHANNEL_WORDS * width)
        self.prepares, self.prepared_at, self.prepared = Signal(), Signal(16), Signal(len(self.parameters))
        self._stores, waited = Signal(), Signal()
        m.d.sync += waited.eq(self.store_valid & ~self.store_ready)
        m.d.comb += [
            self.store_ready.eq(~self.reads[-1] | waited),
            self._stores.eq(self.store_valid & self.store_ready),
            self.residual_ready.eq(~self._stores | (self._residual_port != machine.ports - 1)),
            self.read_ready.eq((self.reads & self._taken) == 0),
            self.load_ready.eq(Mux(self.load_weights, self.pack_mask == 0, self.write_mask == 0)),
        ]
        self._activations()
        self._weights()
        sums = self._memory("sums", 32 * width, machine.sums // (4 * width), 32 * width)
        parameters = self._memory("parameters", 32 * CHANNEL_WORDS * width, machine.blocks, 32 * CHANNEL_WORDS * width)
        self._plain(sums, (self.sums_at, self.sums), (self.keeps, self.kept_at, self.kept))
        self._plain(parameters, (self.parameters_at, self.parameters), (self.prepares, self.prepared_at, self.prepared))
        with m.If(self.clears):
            m.d.comb += [sums[0].addr.eq(self.clears_at), sums[0].data.eq(0), sums[0].en.eq(1)]

    @property
    def _residual_port(self) -> int:
        return min(2, self.machine.ports - 1)

    @property
    def _taken(self) -> Any:
        """Ports that others read at."""
        return (self._stores << self.machine.ports - 1) | (self.residual_valid << self._residual_port)

    def _memory(self, name: str, width: int, depth: int, granularity: int, ports: int = 1) -> tuple[Any, ...]:
        memory = Memory(shape=width, depth=depth, init=[])
        write, reads = memory.write_port(granularity=granularity), [memory.read_port() for _ in range(ports)]
        self.module.submodules[name] = memory
        self.module.d.comb += [read.en.eq(1) for read in reads]
        return write, *reads

    def _plain(self, memory: tuple[Any, ...], read: tuple[Any, Any], written: tuple[Any, Any, Any]) -> None:
        writes, reads = memory
        self.module.d.comb += [
            reads.addr.eq(read[0]),
            read[1].eq(reads.data),
            writes.en.eq(written[0]),
            writes.addr.eq(written[1]),
            writes.data.eq(written[2]),
        ]

    def _activations(self) -> None:
        """A memory for each byte of a vector, because each has an address of its own."""
        m, width, lanes, ports = self.module, self.machine.width, self.machine.lanes, self.machine.ports
        to, data, mask = Signal(ADDRESS), Signal(8 * width), Signal(width)
        ats = [Signal(ADDRESS, name=f"at{port}") for port in range(ports)]
        computes = self.write_mask != 0
        m.d.comb += [
            *(at.eq(read_at) for at, read_at in zip(ats, self.read_at, strict=True)),
            to.eq(Mux(computes, self.write_at, self.load_at)),
            data.eq(Mux(computes, self.written, self.load_data)),
            mask.eq(Mux(computes, self.write_mask, Mux(self.load_valid & ~self.load_weights, self.load_mask, 0))),
        ]
        with m.If(self.residual_valid):
            m.d.comb += ats[self._residual_port].eq(self.residual_at)
        with m.If(self._stores):
            m.d.comb += ats[-1].eq(self.store_at)
        back = Signal(lanes)
        turned, enabled = Signal(8 * width), Signal(width)
        m.d.comb += [back.eq(0 - to[:lanes]), turned.eq(rotated(data, back, 8)), enabled.eq(rotated(mask, back, 1))]
        found: list[list[Any]] = [[] for _ in ats]
        for i in range(width):
            write, *reads = self._memory(f"activations{i}", 8, self.machine.activations // width, 8, ports)
            m.d.comb += [
                write.addr.eq(to[lanes:] + (i < to[:lanes])),
                write.data.eq(turned.word_select(i, 8)),
                write.en.eq(enabled[i]),
            ]
            with m.If(self.clears):
                m.d.comb += [write.addr.eq(self.clears_at), write.data.eq(0), write.en.eq(1)]
            for read, at, bytes_ in zip(reads, ats, found, strict=True):
                m.d.comb += read.addr.eq(at[lanes:] + (i < at[:lanes]))
                bytes_.append(read.data)
        for port, (at, bytes_) in enumerate(zip(ats, found, strict=True)):
            first = Signal(lanes, name=f"first{port}")
            m.d.sync += first.eq(at[:lanes])
            m.d.comb += self.activations[port].eq(rotated(Cat(*bytes_), first, 8))

    def _weights(self) -> None:
        """A memory for each row of a tile, because each has an address of its own."""
        m, width, lanes = self.module, self.machine.width, self.machine.lanes
        bits = 8 * width
        row, unit, back = self.load_at[lanes:], self.load_at[:lanes], Signal(lanes)
        following = row + 1
        turned, enabled = Signal(bits), Signal(width)
        m.d.comb += [back.eq(0 - unit), turned.eq(rotated(self.load_data, back, 8, width))]
        loads = self.load_valid & self.load_weights
        m.d.comb += enabled.eq(Mux(loads, rotated(self.load_mask, back, 1, width), 0))
        carries = Signal(width)
        m.d.comb += carries.eq(Cat(*(i < unit for i in range(width))))
        packs = self.pack_mask != 0
        pack_back, packed = Signal(lanes), Signal(bits * width)
        pack_mask = Signal(width * width)
        m.d.comb += [
            pack_back.eq(0 - self.pack_row[:lanes]),
            packed.eq(rotated(self.packed, pack_back, bits)),
            pack_mask.eq(rotated(self.pack_mask, pack_back, width)),
        ]
        found = []
        for i in range(width):
            write, read = self._memory(f"weights{i}", bits, self.machine.weights // self.machine.tile, 8)
            mine, behind = row[:lanes] == i, following[:lanes] == i
            lanes_mine = Mux(mine, enabled & ~carries, 0) | Mux(behind, enabled & carries, 0)
            m.d.comb += [
                write.addr.eq(
                    Mux(
                        packs,
                        self.pack_row[lanes:] + (i < self.pack_row[:lanes]),
                        Mux(mine, row, following) >> lanes,
                    )
                ),
                write.data.eq(Mux(packs, packed.word_select(i, bits), turned)),
                write.en.eq(Mux(packs, pack_mask.word_select(i, width), lanes_mine)),
                read.addr.eq(self.tile_at[lanes:] + (i < self.tile_at[:lanes])),
            ]
            with m.If(self.clears):
                m.d.comb += [write.addr.eq(self.clears_at), write.data.eq(0), write.en.eq(-1)]
            found.append(read.data)
        first = Signal(lanes)
        m.d.sync += first.eq(self.tile_at[:lanes])
        m.d.comb += self.tile.eq(rotated(Cat(*found), first, bits))


def rotated(word: Any, first: Any, bits: int, count: int = 0) -> Any:
    """The word's parts of so many bits from number ``first`` on, around its end; it may be filled up with zeros to
    ``count`` parts."""
    whole = Cat(word, C(0, count * bits - len(word))) if count * bits > len(word) else word
    return Cat(whole, whole).bit_select(first * bits, len(whole))
