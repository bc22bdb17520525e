"""nuc_fpga: an int8 convolution and matrix engine in FPGA fabric, called as a C library.

It multiplies and adds int8 tensors in NCHW into int32 sums; requantisation is the CPU's. Kernels are not dilated there:
zeros lie between their weights.
"""

from functools import partial
from math import prod

from uaccel.accelerator import (
    ROUNDINGS,
    Accelerator,
    Constant,
    Input,
    Lowered,
    Operation,
    Output,
    Region,
    library_call,
    sums,
)

from .timing import ABREAST, BUS_BYTES, LINE, START_UP, of_convolution, of_matrices

MULTIPLIERS = 64
LARGEST_KERNEL = 16
EXPAND = partial(sums.conv2d_nchw, abreast=ABREAST)


def can_convolve(region: Region) -> str | None:
    attrs, width = region.attrs, region.operands[0].info.shape[2]
    if width + attrs.padding[1] + attrs.padding[3] > LINE:
        return f"lines of {width} with padding {attrs.padding}, and the engine's line buffer holds {LINE}"
    reason = sums.int8_only(region)
    height, width = sums.window(region) if reason is None else (1, 1)
    if max(height, width) > LARGEST_KERNEL:
        return f"kernel {height}x{width}, and the engine's largest is {LARGEST_KERNEL}x{LARGEST_KERNEL}"
    return reason


def convolve(region: Region) -> Lowered:
    (data, weights), attrs = region.operands, region.attrs
    call = library_call(
        "nuc_fpga_conv2d",
        Input(0),
        Constant("kernel", weights.value),
        Output(0),
        *data.info.shape,
        weights.info.shape[0],
        attrs.groups,
        *attrs.padding[:2],
        *weights.info.shape[2:],
        *attrs.strides,
    )
    return Lowered((call,), cycles=of_convolution(region), instructions=1000)  # measured on a Cortex-M4


def multiply(region: Region) -> Lowered:
    (data, weights) = region.operands
    call = library_call(
        "nuc_fpga_dense",
        Input(0),
        Constant("kernel", weights.value),
        Output(0),
        *data.info.shape,
        region.output.shape[1],
    )
    return Lowered((call,), cycles=of_matrices(region), instructions=750)


def cycles(region: Region) -> float:
    """Estimates the layer as the model has it; ``timing`` is exact about what is left of it for the engine."""
    macs = float(region.macs)
    if getattr(region.attrs, "dilation", (1, 1)) != (1, 1):
        macs *= prod(sums.window(region)) / prod(sums.oihw(region).shape[2:])
    return START_UP + max(macs / MULTIPLIERS, region.bytes_moved / BUS_BYTES)


ACCELERATOR = Accelerator(
    name="nuc_fpga",
    description="int8 convolution and matrix engine called as a C library; requantisation on the CPU",
    headers=["nuc_fpga.h"],
    page="../../docs/bring-your-accelerator.md#ways-to-call-the-hardware",
    operations=[
        *(
            Operation(name, name, convolve, can_convolve, cycles, EXPAND, roundings=ROUNDINGS)
            for name in ("conv2d", "depthwise_conv2d")
        ),
        Operation(
            "dense", "fully_connected", multiply, sums.int8_only, cycles, sums.fully_connected, roundings=ROUNDINGS
        ),
    ],
)
