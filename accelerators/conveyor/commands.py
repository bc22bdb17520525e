"""The device's commands: what each is made of, what the device holds of it at a time, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final

Fields = Mapping[str, int]

ROW_BYTES: Final = 65536
"""On-chip memory for the rows of the input that one row of the output needs."""
FILTER_BYTES: Final = 65536
"""On-chip memory for filters; one filter at least must fit."""
LARGEST_EXTENT: Final = 65535
LARGEST_WINDOW: Final = 255
"""Of kernels, strides, dilations and padding."""
LARGEST_COUNT: Final = 0x7FFFFFFF
"""Of the elements that one addition takes."""

MULTIPLIERS: Final = 64
LANES: Final = 16
"""What works where only few multipliers find the same input: grouped convolutions, pooling, additions."""
BUS_BYTES: Final = 8
COMMAND_CYCLES: Final = 32
CHANNEL_BYTES: Final = 12
"""Bias, multiplier and shift of an output channel."""

WINDOW: Final = (
    "batch", "in_height", "in_width", "in_channels", "out_height", "out_width", "out_channels",
    "kernel_height", "kernel_width", "stride_height", "stride_width", "pad_top", "pad_left",
)  # fmt: skip
ADDITION: Final = (
    "elements", "left_shift", "zero_point1", "multiplier1", "shift1", "zero_point2", "multiplier2", "shift2",
    "output_zero_point", "output_multiplier", "output_shift",
)  # fmt: skip
RANGE: Final = ("clamp_min", "clamp_max")


@dataclass(frozen=True)
class Operation:
    """``tensors`` and ``fields`` in the order in which a record holds them."""

    code: int
    tensors: tuple[str, ...]
    fields: tuple[str, ...]


OPERATIONS: Final[Mapping[str, Operation]] = {
    "convolve": Operation(
        1,
        ("input", "channels", "filters", "output"),
        (*WINDOW, "dilation_height", "dilation_width", "groups", "input_zero_point", "output_zero_point", *RANGE),
    ),
    "add": Operation(
        2,
        ("first", "second", "output"),
        (*ADDITION, *RANGE),
    ),
    "average": Operation(3, ("input", "output"), (*WINDOW, *RANGE)),
    "largest": Operation(4, ("input", "output"), (*WINDOW, *RANGE)),
}


@dataclass(frozen=True)
class Place:
    """Memory that a stream works on. ``kind``: constants, input, output or scratch."""

    kind: str
    bytes: int


@dataclass(frozen=True)
class At:
    """Where a tensor lies: ``offset`` bytes into the place of that number."""

    place: int
    offset: int


@dataclass(frozen=True)
class Command:
    """One layer. ``layer`` is its name, for readers alone."""

    operation: str
    tensors: Mapping[str, At]
    fields: Fields
    layer: str = field(default="", compare=False)


@dataclass(frozen=True)
class Stream:
    """Commands in the order in which they run, and the memory that they work on."""

    places: tuple[Place, ...]
    commands: tuple[Command, ...]

    @property
    def cycles(self) -> int:
        return sum(cycles(command.operation, command.fields) for command in self.commands)


def input_bytes(fields: Fields) -> int:
    return prod(fields[name] for name in ("batch", "in_height", "in_width", "in_channels"))


def output_bytes(fields: Fields) -> int:
    return prod(fields[name] for name in ("batch", "out_height", "out_width", "out_channels"))


def filter_bytes(fields: Fields) -> int:
    """Of one output channel; the device refuses commands without any group, which can be written down all the same."""
    return fields["kernel_height"] * fields["kernel_width"] * (fields["in_channels"] // max(1, fields["groups"]))


def row_bytes(operation: str, fields: Fields) -> int:
    """What one row of the output needs of the input: for convolutions with its padding, for pooling without."""
    if operation != "convolve":
        return min(fields["kernel_height"], fields["in_height"]) * fields["in_width"] * fields["in_channels"]
    reach = (fields["kernel_width"] - 1) * fields["dilation_width"] + 1
    columns = (fields["out_width"] - 1) * fields["stride_width"] + reach
    return fields["kernel_height"] * columns * fields["in_channels"]


def cycles(operation: str, fields: Fields) -> int:
    """Of one command: as the device counts them."""
    if operation == "add":
        return _cycles(fields["elements"], LANES, 3 * fields["elements"])
    moved = input_bytes(fields) + output_bytes(fields)
    if operation != "convolve":
        taps = fields["kernel_height"] * fields["kernel_width"]
        return _cycles(output_bytes(fields) * taps, LANES, moved)
    one = filter_bytes(fields)
    moved += fields["out_channels"] * (one + CHANNEL_BYTES)
    return _cycles(output_bytes(fields) * one, MULTIPLIERS if fields["groups"] == 1 else LANES, moved)


def _cycles(work: int, rate: int, moved: int) -> int:
    return COMMAND_CYCLES + -(-work // rate) + -(-moved // BUS_BYTES)
