"""The commands of a chain: band after band, in each of them layer after layer."""

from __future__ import annotations

from collections.abc import Iterator

from uaccel.errors import InternalError
from uaccel.machines.geometry import Box, Shape
from uaccel.streams.chain import Chain, Rows, Weights, whole_width
from uaccel.streams.emitter import Emitter
from uaccel.streams.geometry import Placed, inside
from uaccel.streams.layer import Layer, Part, Places


def emit_chain(emitter: Emitter, chain: Chain) -> None:
    run = _Run(emitter, chain)
    emitter.weights.forget()
    for number, rows in enumerate(chain.links.bands(chain.height)):
        origins = {name: where for name, where in chain.places.items() if isinstance(where, int)}
        for layer, weights in zip(chain.links.layers, chain.weights, strict=True):
            run.layer(layer, weights, rows, origins, backwards=number % 2 == 1)


class _Run:
    """``loaded``: which blocks of which layer lie at an address of the weight memory."""

    def __init__(self, emitter: Emitter, chain: Chain) -> None:
        self.emitter = emitter
        self.chain = chain
        self.loaded: dict[int, tuple[str, range]] = {}
        self.loads = 0

    def layer(self, layer: Layer, weights: Weights, rows: Rows, origins: dict[str, int], backwards: bool) -> None:
        """``origins``: where row 0 of a tensor would lie, if all of its rows were there. ``backwards``: begin with the
        blocks that the band before ended with."""
        emitter, whole = self.emitter, whole_width(layer, rows[layer.output])
        for name, shape in zip(layer.inputs, layer.shapes, strict=True):
            if name not in origins:
                origins[name] = self._origin(name, shape, rows[name])
                emitter.transfer("load", layer, whole, name, shape, _rows(origins[name], shape, rows[name]))
        if layer.output not in origins:
            origins[layer.output] = self._origin(layer.output, layer.shape, whole.rows)
        for part in _parts(layer, whole, weights.blocks, backwards):
            inputs = tuple(
                inside(origins[name], shape, layer.needs(index, part))
                for index, (name, shape) in enumerate(zip(layer.inputs, layer.shapes, strict=True))
            )
            output = inside(origins[layer.output], layer.shape, layer.result(part))
            places = Places(inputs, output, self._weights(layer, part, weights), 0)
            for compute in layer.commands(part, places):
                emitter.compute(layer, part, compute, places)
        if layer is self.chain.links.output and layer.output in emitter.homes:
            stored = _rows(origins[layer.output], layer.shape, whole.rows)
            emitter.transfer("store", layer, whole, layer.output, layer.shape, stored)

    def _origin(self, name: str, shape: Shape, rows: range) -> int:
        slots = self.chain.places[name]
        if isinstance(slots, int) or len(rows) * shape.row_pitch > slots.room:
            raise InternalError(f"rows {rows.start}:{rows.stop} of {name} have no room in {slots}")
        return self.emitter.turn(slots) - rows.start * shape.row_pitch

    def _weights(self, layer: Layer, part: Part, weights: Weights) -> int:
        if layer.weight_bytes(part.blocks, part.steps) == 0:
            return 0
        key = (layer.name, part.blocks)
        for address in weights.slots.addresses:
            if self.loaded.get(address) == key:
                return address
        address = weights.slots.addresses[self.loads % len(weights.slots.addresses)]
        self.loads += 1
        self.loaded[address] = key
        self.emitter.load_weights(layer, part, address)
        return address


def _parts(layer: Layer, whole: Part, blocks: int, backwards: bool) -> Iterator[Part]:
    begins = range(0, layer.blocks, blocks)
    for begin in reversed(begins) if backwards else begins:
        yield whole_width(layer, whole.rows, range(begin, min(begin + blocks, layer.blocks)))


def _rows(origin: int, shape: Shape, rows: range) -> Placed:
    return inside(origin, shape, Box(0, rows, range(shape.columns), range(shape.channels)))
