"""stream_dots: sums of products of int8 between two AXI-Streams: a row goes in, then the weights of all units."""

from uaccel.accelerator import Accelerator, Constant, Input, KernelCall, Operation, Output, Region, library_call, sums

LARGEST = 1024


def can_multiply(region: Region) -> str | None:
    depth = region.operands[0].info.shape[1]
    if depth % 4 or depth > LARGEST:
        return f"rows of {depth}, wanted whole words and {LARGEST} at most"
    return sums.int8_only(region)


def multiply(region: Region) -> KernelCall:
    (rows, depth), units = region.operands[0].info.shape, region.output.shape[1]
    weights = Constant("weights", region.operands[1].value)
    return library_call("stream_dots_multiply", Input(0), weights, Output(0), rows, depth, units)


def cycles(region: Region) -> float:
    rows, depth = region.operands[0].info.shape
    return rows * depth * (1 + region.output.shape[1]) / 4


ACCELERATOR = Accelerator(
    name="stream_dots",
    description="int8 matrix multiplication between two streams, behind a DMA",
    headers=["stream_dots.h"],
    operations=[Operation("multiply", "fully_connected", multiply, can_multiply, cycles, sums.fully_connected)],
)
