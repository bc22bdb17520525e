"""What is checked of each command, as products and tests of them; the tests stand in the model's order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from amaranth.hdl import C, Cat, Mux

from npu_rtl.numbers import (
    ADD,
    ADDITION_WORDS,
    CHANNEL_WORDS,
    CODED,
    COMMAND,
    CONTINUE,
    CONVOLVE,
    DEPTHWISE,
    FLOAT32,
    KEEP,
    LOAD,
    LOOKUP,
    ONCE,
    PACK,
    POOL,
    RANGE,
    RESIDUAL,
    SHAPE,
    SHARED,
    STORE,
    SYNC,
    TABLE_BYTES,
    Machine,
    high,
    low,
    octet,
)

ALL: Final = 0xFFFFFFFF
LOW: Final = 0xFFFF
MOST_TAPS: Final = 65535
PLACES: Final = 64
_WINDOW: Final = (ALL, ALL, ALL, *[ALL] * 8)
"""Words 1 to 11."""
_TOKENS: Final = 0xFFF
"""With the opcode."""
MEANS: Final[Mapping[int, tuple[int, ...]]] = {
    LOAD: (_TOKENS, LOW, *[ALL] * 8),
    STORE: (_TOKENS, LOW, *[ALL] * 8),
    CONVOLVE: (_TOKENS | 0x3F0000, *_WINDOW, *[ALL] * 7, 0xFFFFFF, ALL),
    DEPTHWISE: (_TOKENS | 0x1C0000, *_WINDOW, ALL, ALL, 0, 0, ALL, ALL, ALL, LOW, ALL),
    POOL: (_TOKENS | 0x10000, ALL, ALL, LOW, *_WINDOW[3:], 0xFFFF0000),
    ADD: (_TOKENS | 0x100000, *[ALL] * 9),
    SYNC: (_TOKENS,),
    LOOKUP: (_TOKENS, *[ALL] * 7),
    PACK: (_TOKENS | 0x10000, *[ALL] * 4),
}
"""Bits of each word that mean something."""

Test = tuple[Callable[[Any], Any], int]


@dataclass(frozen=True)
class Op:
    """``a`` times ``b`` and ``plus``; None is the total so far. ``adds`` it, or begins anew."""

    a: Any
    b: Any = 1
    plus: Any = 0
    adds: bool = False
    tests: Sequence[Test] = ()


def meaningless(words: Sequence[Any], machine: Machine) -> Any:
    """Whether a bit is set that means nothing."""
    opcode: Any = words[0][:8]
    found: Any = C(0)
    coded = {LOAD: (_TOKENS | 1 << CODED, *MEANS[LOAD][1:])} if machine.unpack else {}
    for number, used in {**MEANS, **coded}.items():
        rest = Cat(*(word & (ALL ^ bits) for word, bits in zip(words, used, strict=False)))
        found = Mux(opcode == number, rest != 0, found)
    weighted = (opcode == CONVOLVE) | (opcode == DEPTHWISE)
    residual = Cat(words[17], words[18], low(words[19]), words[20], words[0][ONCE])
    return found | (weighted & ~words[0][RESIDUAL] & (residual != 0))


def over(total: Any, address: Any, limit: Any, most: int, scale: int = 1) -> Any:
    """Whether ``total`` times ``scale`` from the address on ends beyond the limit, which is ``most`` at most. What has
    higher bits does; they are looked at beside the sum, not behind it, since this is the longest way of all."""
    bits = most.bit_length()
    few, start = total[:bits], address[:bits]
    product = sum((few << place for place in range(scale.bit_length()) if scale >> place & 1), start=C(0))
    return Cat(total[bits:], address[bits:]).any() | (product + start > limit)


def beyond(address: Any, limit: int) -> Test:
    """Of so many bytes from there on."""
    return lambda total: over(total, address, limit, limit), RANGE


class Programs:
    """``all`` by opcode. ``read``: channels that a depthwise command reads; ``limit``: of the transfer's place."""

    def __init__(self, machine: Machine, words: Sequence[Any], read: Any, limit: Any) -> None:
        self._machine, self._w = machine, words
        w, lanes = words, machine.lanes
        self._blocks = (high(w[10]) + (machine.width - 1)) >> lanes
        pack = Mux(w[0][16], low(w[3]), high(w[3])), Mux(w[0][16], high(w[3]), low(w[3]))
        self.all: Mapping[int, Sequence[Op]] = {
            LOAD: self._transfer(2, limit),
            STORE: self._transfer(1, limit),
            CONVOLVE: [*self._window(high(w[3]), ~w[0][KEEP]), *self._convolve()],
            DEPTHWISE: [
                Op(0, tests=[(lambda _: high(w[3]) == 0, SHAPE)]),
                *self._window(read, C(1)),
                Op(low(w[5]), high(w[5])),
                Op(None, self._blocks, tests=[self._weights(w[12], machine.width)]),
                *self._output(C(1)),
            ],
            POOL: self._window(high(w[10]), C(1)),
            ADD: self._elements(3, 4 * ADDITION_WORDS),
            LOOKUP: self._elements(2, TABLE_BYTES),
            PACK: [
                Op(0, tests=[(lambda _: (low(w[3]) == 0) | (high(w[3]) == 0), SHAPE)]),
                Op(pack[0] - 1, w[2], pack[1], tests=[beyond(w[1], machine.activations)]),
                Op(self._over(high(w[3])), self._over(low(w[3])), tests=[self._weights(w[4], machine.tile)]),
            ],
        }

    def _over(self, count: Any) -> Any:
        return (count + (self._machine.width - 1)) >> self._machine.lanes

    def _weights(self, address: Any, scale: int) -> Test:
        """Tiles begin at a multiple of a column."""
        limit = self._machine.weights
        aligned = address[: self._machine.lanes] == 0
        return lambda total: over(total, address, limit, limit, scale) | ~aligned, RANGE

    def _transfer(self, memories: int, limit: Any) -> Sequence[Op]:
        w, machine = self._w, self._machine
        run, runs, planes = w[4], low(w[5]), high(w[5])
        memory = octet(w[1], 1)
        room, most = Mux(memory[0], machine.weights, machine.activations), max(machine.weights, machine.activations)
        coded = (w[0][CODED] if machine.unpack else C(0)) & (w[0][:8] == LOAD)
        no_code = coded & ((w[5] != 0x10001) | (w[8] == 0))
        nowhere = (octet(w[1], 0) >= PLACES) | (memory >= memories)
        return [
            Op(0, tests=[(lambda _: no_code | (run == 0) | (runs == 0) | (planes == 0), SHAPE)]),
            Op(
                runs - 1,
                w[8],
                Mux(coded, w[8], run),
                tests=[
                    (lambda total: ((runs != 1) & (w[8] < run)) | ((planes != 1) & (w[9] < total)), SHAPE),
                ],
            ),
            Op(planes - 1, w[9], adds=True, tests=[(lambda total: nowhere | over(total, w[3], room, most), RANGE)]),
            Op(runs - 1, w[6], run),
            Op(planes - 1, w[7], adds=True, tests=[(lambda total: total + w[2] > limit, RANGE)]),
        ]

    def _window(self, read: Any, writes: Any) -> Sequence[Op]:
        w, limit = self._w, self._machine.activations
        counts = [*(half(w[i]) for i in (4, 5, 11) for half in (low, high)), *(octet(w[6], i) for i in range(4))]
        none = Cat(*(count == 0 for count in (*counts, high(w[10]), read))).any()
        in_rows, in_columns, in_pixel = low(w[4]), high(w[4]), low(w[3])
        rows, columns, pixel, channels = low(w[11]), high(w[11]), low(w[10]), high(w[10])
        reads = Op(in_columns - 1, in_pixel, read)
        return [
            Op(low(w[5]), high(w[5]), tests=[(lambda total: none | (total > MOST_TAPS), SHAPE)]),
            Op(
                *(reads.a, reads.b, reads.plus),
                tests=[
                    (lambda t: ((in_columns != 1) & (in_pixel < read)) | ((in_rows != 1) & (w[2] < t)), SHAPE),
                ],
            ),
            Op(
                columns - 1,
                pixel,
                channels,
                tests=[
                    (lambda t: writes & (((columns != 1) & (pixel < channels)) | ((rows != 1) & (w[9] < t))), SHAPE),
                ],
            ),
            Op(rows - 1, w[9], adds=True, tests=[(lambda total: writes & over(total, w[8], limit, limit), RANGE)]),
            reads,
            Op(in_rows - 1, w[2], adds=True, tests=[beyond(w[1], limit)]),
        ]

    def _convolve(self) -> Sequence[Op]:
        w, machine = self._w, self._machine
        keeps, goes_on, shared = w[0][KEEP], w[0][CONTINUE], w[0][SHARED]
        sums = keeps | goes_on
        first, steps = low(w[15]), high(w[15])
        unused = Cat(w[8], w[9], low(w[10]), w[13], w[16][8:], w[0][RESIDUAL], w[0][FLOAT32]) != 0
        wrong = (keeps & unused) | (~sums & (w[14] != 0)) | (shared & (keeps | ~sums))
        aligned = ~sums | (w[14][:2] == 0)
        row = 4 * machine.width

        def few(total: Any) -> Any:
            return (steps != 0) & (first + steps <= (total + (machine.width - 1)) >> machine.lanes)

        return [
            Op(low(w[5]), high(w[5])),
            Op(
                None,
                high(w[3]),
                tests=[(lambda total: ~(few(total) & aligned), SHAPE), (lambda _: wrong, COMMAND)],
            ),
            Op(self._blocks, steps, tests=[self._weights(w[12], machine.tile)]),
            Op(Mux(shared, 1, low(w[11])), Mux(shared, 1, high(w[11]))),
            Op(
                None,
                self._blocks,
                tests=[
                    (lambda t: sums & (over(t, w[14], machine.sums, machine.sums, row) | (w[14] % row != 0)), RANGE),
                ],
            ),
            *self._output(~keeps),
        ]

    def _output(self, writes: Any) -> Sequence[Op]:
        w, machine = self._w, self._machine
        adds = w[0][RESIDUAL]
        outside = self._weights(w[13], 4 * CHANNEL_WORDS * machine.width)[0]
        return [
            Op(self._blocks, 1, tests=[(lambda total: writes & outside(total), RANGE)]),
            Op(high(w[11]) - 1, low(w[19]), high(w[10])),
            Op(
                low(w[11]) - 1,
                w[18],
                adds=True,
                tests=[
                    (lambda t: writes & adds & over(t, w[17], machine.activations, machine.activations), RANGE),
                ],
            ),
            Op(
                4 * ADDITION_WORDS,
                tests=[(lambda total: writes & adds & self._weights(w[20], 1)[0](total), RANGE)],
            ),
        ]

    def _elements(self, tensors: int, constants: int) -> Sequence[Op]:
        w, machine = self._w, self._machine
        run, rows, address = w[2 * tensors + 1], w[2 * tensors + 2], w[2 * tensors + 3]
        none = (run == 0) | (rows == 0) | ((rows != 1) & (w[2 * tensors] < run))
        extents = [
            Op(rows - 1, w[2 * i + 2], run, tests=[beyond(w[2 * i + 1], machine.activations)]) for i in range(tensors)
        ]
        return [
            Op(0, tests=[(lambda _: none, SHAPE)]),
            *extents,
            Op(constants, tests=[self._weights(address, 1)]),
        ]
