"""trio: fully connected layers and 1x1 convolutions, many at a time, from a stream of commands for three engines."""

from math import prod

import numpy as np

from uaccel.accelerator import (
    Accelerator,
    AcceleratorError,
    Constant,
    Input,
    KernelCall,
    Lowered,
    OpCall,
    Operation,
    Output,
    Region,
    Scratch,
    library_call,
    sums,
)
from uaccel.streams import Network, Shape, cycles_alone, listing, pack, plan_network, why_not

from .machine import FORMATS, LANES, MACHINE, Multiply, padded

PLACES = 8  # constants, the region's inputs and outputs, scratch


def layer_of(call: OpCall) -> Multiply:
    """The operator as this machine computes it: a row of pixels, whatever the shape was."""
    data, weights, attrs = call.operands[0].info.shape, call.operands[1].value, call.attrs
    filters = weights.reshape(weights.shape[0], -1)
    channels, depth = filters.shape
    pixels, blocks = prod(data) // depth, -(-channels // LANES)
    bias, multiplier, shift = (operand.value for operand in call.operands[2:5])
    bias = bias - attrs.input_zero_point * filters.astype(np.int32).sum(axis=1)
    parameters = np.stack(np.broadcast_arrays(bias, multiplier, shift), axis=1)
    return Multiply(
        name=call.name,
        inputs=(str(call.sources[0]),),
        shapes=(Shape(1, 1, pixels, depth),),
        output=call.results[0],
        shape=Shape(1, 1, pixels, channels),
        blocks=blocks,
        steps=1,
        filters=padded(filters, blocks),
        parameters=padded(parameters, blocks),
        finish=(attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max),
    )


def can_multiply(region: Region) -> str | None:
    """Why not, in words that `uaccel explain` shows."""
    reason = sums.int8_only(region)
    if reason is not None:
        return reason
    if region.operands[0].constant is not None:
        return "its input is a constant"
    return why_not(MACHINE, layer_of(region.root))


def can_convolve(region: Region) -> str | None:
    attrs, kernel = region.attrs, region.operands[1].info.shape[1:3]
    if kernel != (1, 1) or attrs.strides != (1, 1) or any(attrs.padding) or attrs.groups != 1:
        window = f"kernel {kernel}, strides {attrs.strides}, padding {attrs.padding}, groups {attrs.groups}"
        return f"{window}: it takes one pixel for one pixel"
    return can_multiply(region)


def cycles(region: Region) -> float:
    """Of one layer alone."""
    return cycles_alone(MACHINE, layer_of(region.root))


def play(region: Region) -> Lowered:
    """Plan all layers of a region, pack the stream, and tell the driver where everything lies."""
    names = [tensor.name for tensor in region.inputs], [tensor.name for tensor in region.outputs]
    if len(names[0]) + len(names[1]) + 2 > PLACES:
        raise AcceleratorError(
            f"trio: {region.root.name}: more than {PLACES - 2} inputs and outputs; forbid it a layer"
        )
    planned = plan_network(MACHINE, Network(tuple(map(layer_of, region.calls)), tuple(names[0]), tuple(names[1])))
    commands = zip(planned.stream.commands, planned.stream.tokens, strict=True)
    stream = b"".join(pack(FORMATS[command.kind], command.fields, tokens) for command, tokens in commands)
    places: list[tuple[Constant | Input | Output | Scratch, int]] = [
        (Constant("constants", np.frombuffer(planned.constants, np.uint8)), len(planned.constants)),
        *((Input(index), tensor.info.size) for index, tensor in enumerate(region.inputs)),
        *((Output(index), tensor.info.size) for index, tensor in enumerate(region.outputs)),
    ]
    if planned.scratch:
        places.append((Scratch(), planned.scratch))
    calls: list[KernelCall] = [library_call("trio_place", i, memory, size) for i, (memory, size) in enumerate(places)]
    data = Constant("stream", np.frombuffer(stream, np.uint8))
    numbers = (len(planned.stream.commands), len(region.calls), planned.timeline.total)
    calls.append(library_call("trio_play", data, *numbers))
    return Lowered(
        tuple(calls),
        planned.scratch,
        artefacts={"stream.txt": listing(planned, "trio", region)},
        labels=planned.labels,
        cycles=planned.timeline.total,
    )


ACCELERATOR = Accelerator(
    name="trio",
    description="fully connected layers and 1x1 convolutions from a command stream",
    headers=["trio.h"],
    operations=[
        Operation("fully_connected", "fully_connected", check=can_multiply, cost=cycles),
        Operation("pointwise", "conv2d", check=can_convolve, cost=cycles),
    ],
    stream=play,
    memories={"activations": MACHINE.activations.bytes, "weights": MACHINE.weights.bytes},
)
