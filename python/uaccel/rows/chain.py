"""Which layers can run together by rows, and how their values lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from uaccel.lower.program import Layer, Program, Value
from uaccel.ops.base import Elementwise
from uaccel.rows.geometry import Reach, row_bytes, windows_of
from uaccel.rows.schedule import Chain

Windows = tuple[Reach | None, ...]


class Chains:
    """The chains of a program: of consecutive layers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.windows = [windows_of(layer) for layer in program.layers]
        self.last_read: dict[str, int] = {}
        for layer in program.layers:
            self.last_read |= dict.fromkeys((value.name for value in layer.inputs), layer.index)
        after = len(program.layers)
        self.last_read |= {value.name: after for value in program.outputs}
        self.last_read |= {
            value.name: after for entry in program.state for value in (entry.before, entry.after) if value
        }
        self.reads = Counter(value.name for layer in program.layers for value in layer.inputs)

    def of(self, first: int, last: int, fed: Value | None = None) -> Chain | None:
        """Of the layers ``first`` to ``last``, where they can run together."""
        layers = self.program.layers[first : last + 1]
        windows = [self.windows[layer.index] for layer in layers]
        if any(window is None for window in windows):
            return None
        known = tuple(window for window in windows if window is not None)
        made = {layer.outputs[0].name for layer in layers}
        for layer, of_layer in zip(layers, known, strict=True):
            for value, window in zip(layer.inputs, of_layer, strict=True):
                if window is None and (value.name in made or value == fed):
                    return None
        if fed is not None and any(v != fed and v in self.program.inputs for layer in layers for v in layer.inputs):
            return None  # rows come when the others may not be there yet
        inside = frozenset(name for name in made if self.last_read.get(name, last + 1) <= last)
        if layers[-1].outputs[0].name in inside or not _joined(layers):
            return None
        return Chain(layers, known, inside, self._merged(layers, known, inside), fed)

    @cached_property
    def feedable(self) -> Value | None:
        """The first of the inputs that can come by rows, to the first layer."""
        count = len(self.program.layers)
        of_each = ((value, (self.of(0, last, value) for last in range(count))) for value in self.program.inputs)
        return next((value for value, chains in of_each if any(chains)), None)

    def _merged(self, layers: Sequence[Layer], windows: Sequence[Windows], inside: frozenset[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for layer, of_layer in zip(layers, windows, strict=True):
            output = layer.outputs[0]
            for index in layer.kernel.inplace:
                value = layer.inputs[index]
                fits = value.name in inside and self.reads[value.name] == 1 and of_layer[index] is not None
                if fits and is_elementwise(layer) and row_bytes(value.info) == row_bytes(output.info):
                    found[value.name] = output.name
                    break
        return found


def is_elementwise(layer: Layer) -> bool:
    return layer.applied is not None and layer.applied.operator.elementwise in (Elementwise.FIRST, Elementwise.EACH)


def _joined(layers: Sequence[Layer]) -> bool:
    """Whether each layer but the last gives something to another."""
    read = {value.name for layer in layers for value in layer.inputs}
    return all(layer.outputs[0].name in read for layer in layers[:-1])


def bands_of(chain: Chain, band: int) -> tuple[int, ...]:
    """How many rows each layer computes at once: those with the most rows ``band``, the others in proportion."""
    rows = {chain.layers[-1].outputs[0].name: Fraction(1)}
    for layer, windows in zip(reversed(chain.layers), reversed(chain.windows), strict=True):
        own = rows.setdefault(layer.outputs[0].name, Fraction(1))
        for value, window in zip(layer.inputs, windows, strict=True):
            if window is not None:
                rows[value.name] = max(rows.get(value.name, Fraction(0)), own * window.scale)
    made = [layer.outputs[0] for layer in chain.layers]
    most = max(rows[value.name] for value in made)
    return tuple(min(max(1, int(band * rows[value.name] / most)), value.info.shape[1]) for value in made)
