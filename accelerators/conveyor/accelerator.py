"""conveyor: int8 layers one after the other, played from a command stream without the CPU between them.

Nothing is called per layer. A region becomes a stream of commands that lies in flash beside its packed weights
(``packed.py`` has its format, ``readable.py`` the same as JSON); the driver checks the stream, says where inputs,
outputs and scratch memory lie, and starts it.
"""

from __future__ import annotations

from uaccel.accelerator import Accelerator, Operation, Region, pattern, sums

from .commands import FILTER_BYTES, LARGEST_COUNT, LARGEST_EXTENT, LARGEST_WINDOW, ROW_BYTES, Fields, filter_bytes
from .commands import row_bytes as rows_needed
from .encode import POOLS, encode, fields_of
from .stream import lower_region

LARGEST = {
    **dict.fromkeys(("batch", "in_height", "in_width", "in_channels"), LARGEST_EXTENT),
    **dict.fromkeys(("out_height", "out_width", "out_channels"), LARGEST_EXTENT),
    **dict.fromkeys(("kernel_height", "kernel_width", "stride_height", "stride_width"), LARGEST_WINDOW),
    **dict.fromkeys(("dilation_height", "dilation_width", "pad_top", "pad_left"), LARGEST_WINDOW),
    "elements": LARGEST_COUNT,
}


def can_convolve(region: Region) -> str | None:
    data, weights = region.root.operands[:2]
    if data.constant is not None:
        return "its input is a constant"
    if weights.constant is None:
        return "its weights are computed at run time, and the belt takes them from flash"
    reason = sums.int8_only(region)
    if reason is not None:
        return reason
    fields = fields_of(region.root)
    if filter_bytes(fields) > FILTER_BYTES:
        return f"one filter has {filter_bytes(fields)} bytes, and the filter memory {FILTER_BYTES}"
    return _too_large("convolve", fields)


def can_pool(region: Region) -> str | None:
    (data,) = region.root.operands
    if data.constant is not None:
        return "its input is a constant"
    if data.info.dtype != "int8":
        return f"its input is {data.info.dtype}, wanted int8"
    return _too_large(POOLS[region.root.op], fields_of(region.root))


def can_add(region: Region) -> str | None:
    for number, operand in enumerate(region.root.operands, 1):
        if operand.info.dtype != "int8":
            return f"its operand {number} is {operand.info.dtype}, wanted int8"
        if operand.constant is None and operand.info.shape != region.output.shape:
            return f"its operand {number}, {operand.info}, would have to be repeated, and the belt repeats nothing"
    if all(operand.constant is not None for operand in region.root.operands):
        return "both of its operands are constants"
    return _too_large("add", fields_of(region.root))


def _too_large(operation: str, fields: Fields) -> str | None:
    for name, value in fields.items():
        if value > LARGEST.get(name, value):
            return f"its {name.replace('_', ' ')} is {value}, and {LARGEST[name]} the largest in a command"
    needed = 0 if operation == "add" else rows_needed(operation, fields)
    if needed > ROW_BYTES:
        return f"a row of its output needs {needed} bytes of its input at once, and the row memory has {ROW_BYTES}"
    return None


def cost(region: Region) -> float:
    return encode(region.root).cycles


CHECKS = {
    "conv2d": can_convolve,
    "depthwise_conv2d": can_convolve,
    "fully_connected": can_convolve,
    "add": can_add,
    "average_pool2d": can_pool,
    "max_pool2d": can_pool,
}
VIEW = pattern("relax.reshape")
"""No command: the next one reads the same bytes. Taken with what follows; alone the CPU does it for nothing."""

ACCELERATOR = Accelerator(
    name="conveyor",
    description="int8 engine that plays a command stream: whole regions without the CPU between the layers",
    headers=["conveyor.h"],
    page="../../docs/bring-your-accelerator.md#ways-to-call-the-hardware",
    operations=[
        *(Operation(name, name, check=check, cost=cost) for name, check in CHECKS.items()),
        *(Operation(f"{name}_of_view", pattern(name, VIEW), check=check, cost=cost) for name, check in CHECKS.items()),
    ],
    stream=lower_region,
    alignment=1,
    memories={"rows": ROW_BYTES, "filters": FILTER_BYTES},
)
