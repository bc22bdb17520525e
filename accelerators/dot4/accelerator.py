"""dot4: instructions inside a RISC-V core, which multiply four int8 at a time and round as TensorFlow Lite does."""

from collections.abc import Sequence

import numpy as np

from uaccel.accelerator import (
    Accelerator,
    Constant,
    Input,
    Instruction,
    Lowered,
    Operation,
    Output,
    Region,
    Scratch,
    library_call,
    sums,
)

from .meaning import Unit

WORD = 4
"""Bytes, and the channels that are computed at a time."""


def blocks(values: np.ndarray, channels: int) -> np.ndarray:
    """One row a channel, filled up with zeros to whole words and to whole blocks of channels."""
    rows = values.reshape(channels, -1)
    return np.pad(rows, ((0, -channels % WORD), (0, -rows.shape[1] % WORD)))


def constants(region: Region, by_channel: np.ndarray) -> np.ndarray:
    """Gives biases, multipliers and shifts, four channels at a time; biases have the input's zero point in them."""
    channels = len(by_channel)
    bias, multiplier, shift = (np.broadcast_to(one.value, channels).astype(np.int64) for one in region.operands[2:5])
    bias = bias - region.attrs.input_zero_point * by_channel.reshape(channels, -1).astype(np.int64).sum(axis=1)
    table = np.pad(np.stack([bias, multiplier, shift]), ((0, 0), (0, -channels % WORD)))
    return np.ascontiguousarray(table.reshape(3, -1, WORD).transpose(1, 0, 2)).astype(np.int32)


def output_stage(region: Region) -> tuple[int, int, int]:
    attrs = region.attrs
    return attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max


def dense_weights(weights: np.ndarray) -> np.ndarray:
    """Gives a word for each channel, for four channels and four inputs at a time."""
    filled = blocks(weights, len(weights))
    words = filled.reshape(len(filled) // WORD, WORD, -1, WORD).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(words, np.int8).reshape(-1).view("<i4").astype(np.int32)


def lane_weights(weights: np.ndarray) -> np.ndarray:
    """Gives one word for each four channels and each tap; ``weights`` are of shape height, width, channels."""
    words = weights.reshape(-1, weights.shape[-1] // WORD, WORD).transpose(1, 0, 2)
    return np.ascontiguousarray(words, np.int8).reshape(-1).view("<i4").astype(np.int32)


def shape(region: Region, data: Sequence[int], kernel: Sequence[int], out: Sequence[int]) -> np.ndarray:
    """The fields of ``struct dot4_layer``, in their order."""
    attrs = region.attrs
    strides, dilation = getattr(attrs, "strides", (1, 1)), getattr(attrs, "dilation", (1, 1))
    padding = getattr(attrs, "padding", (0, 0, 0, 0))
    numbers = (*data, *out, *kernel, *strides, *dilation, *padding[:2], attrs.input_zero_point, *output_stage(region))
    return np.array(numbers, np.int32)


def can_convolve(region: Region) -> str | None:
    groups = getattr(region.attrs, "groups", 1)
    return f"{groups} groups, and its kernel has one" if groups > 1 else sums.int8_only(region)


def can_convolve_lanes(region: Region) -> str | None:
    given, channels = region.operands[0].info.shape[3], region.output.shape[3]
    if given != channels or channels % WORD:
        return f"{channels} channels of {given}, and it takes as many as there are, in fours"
    return sums.int8_only(region)


def convolve(region: Region) -> Lowered:
    weights = region.operands[1].value
    depth = int(np.prod(weights.shape[1:]))
    layer = shape(region, region.operands[0].info.shape, weights.shape[1:3], region.output.shape[1:])
    return _lowered("dot4_conv2d", region, layer, dense_weights(weights), weights, 2 * (depth + -depth % WORD))


def multiply(region: Region) -> Lowered:
    weights, (rows, depth) = region.operands[1].value, region.operands[0].info.shape
    layer = shape(region, (1, 1, rows, depth), (1, 1), (1, rows, len(weights)))
    return _lowered("dot4_conv2d", region, layer, dense_weights(weights), weights, 2 * (depth + -depth % WORD))


def convolve_lanes(region: Region) -> Lowered:
    weights = region.operands[1].value
    layer = shape(region, region.operands[0].info.shape, weights.shape[:2], region.output.shape[1:])
    return _lowered("dot4_depthwise", region, layer, lane_weights(weights), weights.transpose(2, 0, 1), WORD)


def _lowered(
    name: str, region: Region, layer: np.ndarray, words: np.ndarray, by_channel: np.ndarray, scratch: int
) -> Lowered:
    call = library_call(
        name,
        Input(0),
        Constant("weights", words),
        Constant("constants", constants(region, by_channel)),
        Constant("layer", layer),
        Output(0),
        Scratch(),
    )
    return Lowered((call,), scratch=scratch, instructions=instructions(region), cycles=0)


def instructions(region: Region) -> float:
    """Estimates the core's instructions, as measured on networks: the core does all the work."""
    return 500 + 0.7 * region.macs + 12.0 * region.output.elements


ACCELERATOR = Accelerator(
    name="dot4",
    description="instructions of a RISC-V core: four products at a time, and TensorFlow Lite's rounding",
    headers=["dot4.h"],
    page="../../docs/rtl.md#instructions-inside-the-core",
    unit=Unit,
    instructions=[
        Instruction("begin", 0, Unit.begin, count=4, doc="sums N and N + 4 begin at left and right"),
        Instruction("add", 1, Unit.add, count=8, doc="sum N grows by four products of bytes; gives the sum"),
        Instruction("lanes", 2, Unit.lanes, count=2, doc="sums 4N to 4N + 3 grow by a product of bytes each"),
        Instruction("range", 3, Unit.range, doc="left: zero point; right: lowest and highest of what finish gives"),
        Instruction("finish", 4, Unit.finish, count=8, doc="sum N times left / 2^31, shifted by right, as int8"),
    ],
    operations=[
        Operation("conv2d", "conv2d", convolve, can_convolve),
        Operation("depthwise", "depthwise_conv2d", convolve_lanes, can_convolve_lanes),
        Operation("dense", "fully_connected", multiply, sums.int8_only),
    ],
)
