"""Constants that are copied into the arena while the layer before computes: which of them, where, and the C for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uaccel.basics.numbers import round_up
from uaccel.ctext.layout import wrapped
from uaccel.ctext.types import storage_type
from uaccel.emit.layer_text import Parameter
from uaccel.emit.stores import Constants
from uaccel.emit.weights import ConstantPool
from uaccel.errors import UaccelError
from uaccel.lower.program import Layer, Program
from uaccel.memory import Pool
from uaccel.ops.kernel import Constant

HEADER = "uaccel_fetch.h"
PARAMETER = "constants"
"""Of a layer's function: where they were copied."""
ALIGNMENT = 16


@dataclass(frozen=True)
class Ahead:
    """``offsets``: of each array, by its symbol, in the block that its layer has in the arena, by the layer's name.
    ``sizes``: bytes of each array."""

    offsets: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def block(self, layer: Layer) -> int:
        """Bytes of a layer's block."""
        return max((offset + self.sizes[symbol] for symbol, offset in self._of(layer).items()), default=0)

    def blocks(self, program: Program) -> dict[int, int]:
        """By the layer's index."""
        return {layer.index: self.block(layer) for layer in program.layers if self._of(layer)}

    def parameters(self, layer: Layer) -> list[Parameter]:
        """What its function takes besides."""
        return [Parameter("const void *", PARAMETER)] if self._of(layer) else []

    def value(self, layer: Layer, symbol: str, dtype: str) -> str:
        """How its function names a constant."""
        offset = self._of(layer).get(symbol)
        if offset is None:
            return symbol
        return f"(const {storage_type(dtype)} *)(const void *)((const uint8_t *){PARAMETER} + {offset})"

    def copies(self, layer: Layer, address: str) -> list[str]:
        """The calls that begin its copies."""
        return [
            wrapped("    uaccel_fetch", [_moved(address, offset), symbol, str(self.sizes[symbol])]) + ";"
            for symbol, offset in self._of(layer).items()
        ]

    def _of(self, layer: Layer) -> Mapping[str, int]:
        return self.offsets.get(layer.name, {})


NOTHING = Ahead({}, {})


def ahead_of(program: Program, constants: Constants, pools: Sequence[Pool]) -> Ahead:
    """The constants in pools whose layers are to have copies, as far as the block of a layer may be so large."""
    room = {each.name: each.fetch for each in pools if each.fetch is not None}
    _require_slow(constants, room)
    by_symbol = {array.symbol: array for array in constants.arrays if array.pool in room}
    offsets = {}
    for layer in filter(_reads_copies, program.layers):
        inside, end = {}, 0
        for symbol in dict.fromkeys(_symbols(layer, constants.pool)):
            if symbol in by_symbol and end + by_symbol[symbol].data.nbytes <= room[by_symbol[symbol].pool]:
                inside[symbol] = end
                end = round_up(end + by_symbol[symbol].data.nbytes, ALIGNMENT)
        if inside:
            offsets[layer.name] = inside
    return Ahead(offsets, {symbol: array.data.nbytes for symbol, array in by_symbol.items()})


def _require_slow(constants: Constants, room: Mapping[str, int]) -> None:
    for store in constants.stores:
        if store.name in room and store.copied:
            raise UaccelError(
                f"--constant-pool {store.name}:fetch: {store.name} is RAM, where start-up puts its constants; leave "
                "':fetch' away, or name a flash memory"
            )


def _reads_copies(layer: Layer) -> bool:
    """A driver hands on addresses that its device knows, and rows go through a layer's functions many times."""
    return not layer.is_view and not layer.on_accelerator and layer.streaming is None


def _symbols(layer: Layer, pool: ConstantPool) -> Iterator[str]:
    for i, call in enumerate(layer.kernel.calls):
        for j, argument in enumerate(call.arguments):
            if isinstance(argument, Constant) and argument.data.size:
                yield pool.symbol(layer, i, j)


def _moved(address: str, offset: int) -> str:
    return f"(uint8_t *){address} + {offset}" if offset else address
