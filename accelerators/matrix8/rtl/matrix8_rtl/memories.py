"""The memories on chip. The loader writes eight bytes at any address, the array and the storer read what they need in
one cycle. A command has its banks for itself, so that nobody writes where another one works."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory

from matrix8_rtl.numbers import ACCUMULATORS, ACTIVATIONS, BANKS, BYTES, LANES, PARAMETERS, PIXEL, WEIGHTS


class Memories:
    """What is read comes a cycle after its address."""

    def __init__(self) -> None:
        self.module = Module()
        # Bytes from the loader: lane i goes to word `word`, or to the next one where `carries` has its bit.
        self.memory = Signal(2)
        self.word = Signal(11)
        self.carries = Signal(LANES)
        self.enable = Signal(LANES)
        self.bytes = Signal(8 * LANES)
        # Eight activations from any byte on, a block of weights.
        self.activations_at = Signal(14)
        self.activations = Signal(8 * LANES)
        self.weights_at = Signal(8)
        self.weights = Signal(64 * LANES)
        # Sums: the array reads and writes, the storer reads.
        self.reads = Signal()
        self.sums_at = Signal(9)
        self.sums = Signal(8 * PIXEL)
        self.writes = Signal()
        self.written_at = Signal(9)
        self.written = Signal(8 * PIXEL)
        self.stored_at = Signal(9)
        self.stored = Signal(8 * PIXEL)
        # Biases, multipliers, shifts: each has a copy to read from.
        self.parameters_at = [Signal(8, name=f"parameters_at{i}") for i in range(3)]
        self.parameters = [Signal(8 * PIXEL, name=f"parameters{i}") for i in range(3)]
        self._next = Signal(11)
        self.module.d.comb += self._next.eq(self.word + 1)
        self._activations()
        self._wide("weights", WEIGHTS, LANES, self.weights_at, self.weights)
        for at, found in zip(self.parameters_at, self.parameters, strict=True):
            self._wide(at.name, PARAMETERS, PIXEL // LANES, at, found)
        self._accumulators()

    def _memory(self, name: str, width: int, depth: int) -> tuple[Any, Any]:
        memory = Memory(shape=width, depth=depth, init=[])
        write, read = memory.write_port(granularity=8), memory.read_port()
        self.module.submodules[name] = memory
        self.module.d.comb += read.en.eq(1)
        return write, read

    def _activations(self) -> None:
        """A memory for each byte of a word, because each has an address of its own."""
        m, found = self.module, []
        for i in range(LANES):
            write, read = self._memory(f"activations{i}", 8, BYTES[ACTIVATIONS] // LANES)
            m.d.comb += [
                write.addr.eq(Mux(self.carries[i], self._next, self.word)),
                write.data.eq(self.bytes.word_select(i, 8)),
                write.en.eq((self.memory == ACTIVATIONS) & self.enable[i]),
                read.addr.eq(self.activations_at[3:] + (i < self.activations_at[:3])),
            ]
            found.append(read.data)
        first = Signal(3)
        m.d.sync += first.eq(self.activations_at[:3])
        m.d.comb += self.activations.eq(rotated(Cat(*found), first))

    def _wide(self, name: str, number: int, words: int, at: Any, found: Any) -> None:
        """A memory of rows of so many words."""
        for i in range(words):
            write, read = self._memory(f"{name}_{i}", 8 * LANES, BYTES[number] // (words * LANES))
            self._written(write, i, words, self.memory == number)
            self.module.d.comb += [read.addr.eq(at), found.word_select(i, 8 * LANES).eq(read.data)]

    def _written(self, write: Any, place: int, words: int, mine: Any, bank: int | None = None) -> None:
        """The loader's bytes, as far as they belong to the word in this place of a row, and to this bank."""
        low = words.bit_length() - 1
        takes_word, takes_next = (
            (word[:low] == place) & (True if bank is None else word[-1] == bank) for word in (self.word, self._next)
        )
        lanes = Mux(takes_word, ~self.carries, 0) | Mux(takes_next, self.carries, 0)
        self.module.d.comb += [
            write.addr.eq(Mux(takes_word, self.word, self._next) >> low),
            write.data.eq(self.bytes),
            write.en.eq(Mux(mine, lanes & self.enable, 0)),
        ]

    def _accumulators(self) -> None:
        """Each bank has ports of its own: array, storer and loader work in different ones."""
        m, words = self.module, PIXEL // LANES
        array_bank, storer_bank = Signal(), Signal()
        m.d.sync += [array_bank.eq(self.sums_at[8]), storer_bank.eq(self.stored_at[8])]
        for bank in range(BANKS):
            mine = self.reads & (self.sums_at[8] == bank)
            adds = self.writes & (self.written_at[8] == bank)
            loads = self.memory == ACCUMULATORS
            found = Signal(8 * PIXEL, name=f"bank{bank}")
            for i in range(words):
                write, read = self._memory(f"accumulators{bank}_{i}", 8 * LANES, BYTES[ACCUMULATORS] // BANKS // PIXEL)
                self._written(write, i, words, loads, bank)
                with m.If(adds):
                    m.d.comb += [
                        write.addr.eq(self.written_at),
                        write.data.eq(self.written.word_select(i, 8 * LANES)),
                        write.en.eq(-1),
                    ]
                m.d.comb += read.addr.eq(Mux(mine, self.sums_at, self.stored_at))
                m.d.comb += found.word_select(i, 8 * LANES).eq(read.data)
            with m.If(array_bank == bank):
                m.d.comb += self.sums.eq(found)
            with m.If(storer_bank == bank):
                m.d.comb += self.stored.eq(found)


def rotated(word: Any, first: Any) -> Any:
    """The word's bytes from number ``first`` on, around its end."""
    return Cat(word, word).bit_select(first << 3, 8 * LANES)
