"""starter: multiplies int8 rows with a matrix and adds up; what comes after that in a layer is the CPU's.

As it stands this accelerator works. Change what it computes here, how it is called in driver/, and what the hardware
does in device/. 'uaccel explain MODEL --accelerator ./starter' tells what a change leads to.
"""

from uaccel.accelerator import (
    ROUNDINGS,
    Accelerator,
    Constant,
    Input,
    KernelCall,
    Operation,
    Output,
    Region,
    library_call,
    sums,
)

LARGEST = 1024  # of rows, units, and what a row holds


def can_multiply(region: Region) -> str | None:
    """Why the device cannot compute this layer, in words that 'uaccel explain' shows; None where it can."""
    (rows, depth), units = region.operands[0].info.shape, region.output.shape[1]
    if max(rows, depth, units) > LARGEST:
        return f"{rows} rows of {depth} for {units} units, and the device takes {LARGEST} of each"
    return sums.int8_only(region)


def multiply(region: Region) -> KernelCall:
    """The call of the driver's function: where its tensors lie, then numbers, in the order of its parameters."""
    data, weights = region.operands
    (rows, depth), units = data.info.shape, region.output.shape[1]
    kept = Constant("weights", weights.value)  # in flash, as the device reads it: re-order it here if it wants that
    return library_call("starter_multiply", Input(0), kept, Output(0), rows, depth, units)


def cycles(region: Region) -> float:
    """How long the device takes: a multiplication a cycle, and some to begin."""
    return 50 + region.macs


ACCELERATOR = Accelerator(
    name="starter",
    description="int8 matrix multiplication; the rest of a layer is the CPU's",
    headers=["starter.h"],
    operations=[
        # A name; which operator it is about; the call; what it cannot do; the cost; and what of the layer is the
        # device's: sums.fully_connected leaves it int32 sums of products, and the CPU bias, scale and clamp, in
        # whichever way the model rounds.
        Operation(
            "multiply", "fully_connected", multiply, can_multiply, cycles, sums.fully_connected, roundings=ROUNDINGS
        ),
    ],
)
