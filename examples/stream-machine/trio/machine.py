"""What the machine is: its memories, its commands, and the one kind of layer that it computes.

All of it stands in device/trio_device.c as well; tests/test_trio.py holds one against the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.streams import Box, Compute, Dma, Field, Format, Layer, Machine, Memory, Part, Places, halves, octets

LANES: Final = 8  # output channels at a time, and values of one that are multiplied in a cycle
START_UP: Final = 10  # cycles of a multiplication before its first
WORDS: Final = 8  # of every command
MACHINE: Final = Machine(
    activations=Memory(4096, banks=2, alignment=8),
    weights=Memory(4096, banks=2, alignment=8),
    sums=Memory(4),  # none: every sum is finished by the command that begins it
    load=Dma(bytes_per_cycle=4, start_up=20),
    store=Dma(bytes_per_cycle=4, start_up=20),
    fetch=Dma(bytes_per_cycle=8, start_up=20),
    queue=4,
    transfer_size=4 * WORDS,
    sync_size=4 * WORDS,
)

TRANSFER: Final = (
    *octets(1, "place", "memory"),
    *(
        Field(name, word)
        for word, name in enumerate(("offset", "address", "run", "runs", "stride_run", "pitch_run"), 2)
    ),
)
MULTIPLY: Final = (
    *(Field(name, word) for word, name in enumerate(("input", "output", "weights"), 1)),
    *halves(4, "depth", "channels"),
    *halves(5, "pixels", "output_pixel"),
    *octets(6, "zero_point", "clamp_min", "clamp_max", signed=True),
)
FORMATS: Final[Mapping[str, Format]] = {
    "load": Format(1, "load", WORDS, TRANSFER),
    "multiply": Format(2, "compute", WORDS, MULTIPLY),
    "store": Format(3, "store", WORDS, TRANSFER),
    "sync": Format(4, "compute", WORDS, ()),
}


@dataclass(frozen=True, eq=False)
class Multiply(Layer):
    """Every pixel, a row of input channels, times a matrix. The planner cuts pixels (columns of one row) and blocks.

    A block is 8 output channels. ``filters``: rows of weights, ``parameters``: bias, multiplier and shift, both for
    whole blocks. ``finish``: the output's zero point and its limits."""

    filters: NDArray[np.int8]
    parameters: NDArray[np.int32]
    finish: tuple[int, int, int]

    @property
    def depth(self) -> int:
        return self.shapes[0].channels

    def channels(self, blocks: range) -> range:
        return range(blocks.start * LANES, min(blocks.stop * LANES, self.shape.channels))

    def needs(self, index: int, part: Part) -> Box:
        """All channels of the pixels that are computed."""
        return Box(part.image, part.rows, part.columns, range(self.depth))

    def weight_bytes(self, blocks: range, steps: range) -> int:
        return len(blocks) * LANES * (self.depth + 3 * 4)

    def weights(self, blocks: range, steps: range) -> bytes:
        """Block after block: the weights of 8 channels, then 8 biases, multipliers and shifts."""
        packed = b""
        for block in blocks:
            some = slice(block * LANES, (block + 1) * LANES)
            packed += self.filters[some].tobytes() + self.parameters[some].T.astype("<i4").tobytes()
        return packed

    def cycles(self, part: Part) -> int:
        return START_UP + part.pixels * len(part.blocks) * -(-self.depth // LANES)

    def commands(self, part: Part, places: Places) -> Sequence[Compute]:
        zero_point, clamp_min, clamp_max = self.finish
        fields = {
            "input": places.inputs[0].address,
            "output": places.output.address,
            "weights": places.weights,
            "depth": self.depth,
            "channels": len(self.channels(part.blocks)),
            "pixels": part.pixels,
            "output_pixel": places.output.pixel_pitch,
            "zero_point": zero_point,
            "clamp_min": clamp_min,
            "clamp_max": clamp_max,
        }
        return [Compute("multiply", fields, self.cycles(part), 4 * WORDS)]


def padded(array: NDArray[Any], blocks: int) -> NDArray[Any]:
    """With zeros for the channels that the last block has too many."""
    return np.pad(array, ((0, blocks * LANES - len(array)), (0, 0)))
