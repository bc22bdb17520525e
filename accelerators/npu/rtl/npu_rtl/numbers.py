"""The numbers of the machine, what is in a command's words, and the errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data

LOAD, STORE, CONVOLVE, DEPTHWISE, POOL, ADD, SYNC, LOOKUP, PACK = range(1, 10)
LOADER, COMPUTER, STORER = range(3)
ENGINES: Final = 3
OK, STREAM, COMMAND, RANGE, SHAPE, QUANTISATION, BUS, DEADLOCK, TOKEN = range(9)
ERROR: Final = 4
"""Bits of an error."""
LONGEST: Final = 21
"""Words of a command."""
WORDS: Final = (0, 10, 10, 21, 21, 13, 10, 1, 8, 5)
"""Of each opcode."""
CONTINUE, KEEP, RESIDUAL, FLOAT32, ONCE, SHARED = range(16, 22)
AVERAGE = TURNED = CODED = 16
"""Bits of the first word."""
CHANNEL_WORDS: Final = 3
"""Bias, multiplier, shift."""
ADDITION_WORDS: Final = 12
TABLE_BYTES: Final = 256
ADDRESS: Final = 20
"""Bits of an address on chip, at most."""
TRANSFER: Final = data.StructLayout({"index": 32, "there": 32, "words": 320})
COMPUTE: Final = data.StructLayout({"index": 32, "words": 32 * LONGEST})
FINISH: Final = data.StructLayout({"single": 1, "zero_point": 8, "least": 8, "greatest": 8})
"""What the output stage needs of a command."""
COMMANDS: Final = (TRANSFER, COMPUTE, TRANSFER)


@dataclass(frozen=True)
class Machine:
    """``width``: rows of the array, and columns; ``bus`` and the memories in bytes; ``unpack``: bytes a cycle of a load
    that comes as a code, up to 2, or 0 where none may."""

    width: int
    ports: int
    activations: int
    weights: int
    sums: int
    bus: int
    queue: int
    unpack: int = 0

    @property
    def lanes(self) -> int:
        """Bits that number the bytes of a vector."""
        return self.width.bit_length() - 1

    @property
    def tile(self) -> int:
        return self.width * self.width

    @property
    def blocks(self) -> int:
        """Of output channels whose parameters there may be."""
        return self.weights // (4 * CHANNEL_WORDS * self.width)


def machine_of(arguments: Sequence[str]) -> Machine:
    """From ``NAME=NUMBER`` each."""
    numbers = dict(argument.split("=") for argument in arguments)
    return Machine(**{name: int(number) for name, number in numbers.items()})


def low(word: Any) -> Any:
    return word[:16]


def high(word: Any) -> Any:
    return word[16:]


def octet(word: Any, number: int) -> Any:
    return word[8 * number : 8 * number + 8]


def words_of(command: Any, count: int) -> list[Any]:
    return [command.words[32 * i : 32 * i + 32] for i in range(count)]


def lanes_below(count: Any, width: int) -> Any:
    """A bit for each lane whose number is less."""
    return Cat(*(count > i for i in range(width)))


def delayed(m: Module, value: Any, cycles: int, name: str) -> Any:
    """The value so many cycles later."""
    for i in range(cycles):
        stage = Signal(value.shape(), name=f"{name}_{i + 1}")
        m.d.sync += stage.eq(value)
        value = stage
    return value
