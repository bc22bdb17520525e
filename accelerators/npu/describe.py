"""What the machine computes, what it refuses and why, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

import numpy as np

from uaccel.accelerator import ROUNDINGS, TFLITE, Accelerator, OpCall, Operation, Region, pattern, sums
from uaccel.streams import WORD, Effort, Layer, Shape, cycles_alone, why_not, window_of

from .layers import Windowed
from .machine import Npu
from .means import mean_of
from .network import PAD, VIEW, layer_of, padding_of
from .stream import lower_region

Check = Callable[[Region], "str | None"]
OPERATORS: Final = (
    *("conv2d", "depthwise_conv2d", "fully_connected", "average_pool2d", "max_pool2d", "mean", "add"),
    *("weighted_sum", "scaled_sum", "window_mean", "window_max", "lookup", "batch_matmul"),
)
LARGEST_ONCE: Final = 42
"""The shift of an addition that rounds once."""
LARGEST_EXTENT: Final = 65535
LARGEST_PADDING: Final = 32767
LARGEST_STRIDE: Final = 255
"""Of strides and dilations."""


def describe_machine(npu: Npu, objective: str) -> Accelerator:
    checks = {name: _check(npu, name) for name in OPERATORS}
    cost = _cost(npu, objective)
    view, pad = pattern(VIEW), pattern(PAD)
    return Accelerator(
        name=npu.name,
        description=f"{npu.rows}x{npu.columns} int8 array with scratchpads, DMA and three engines; whole regions",
        headers=[f"{npu.name}.h"],
        page="../../docs/reference/npu.md",
        operations=[
            *(
                Operation(name, name, check=check, cost=cost, roundings=_roundings(name))
                for name, check in checks.items()
            ),
            *(
                Operation(f"{name}_of_{word}", pattern(name, seen), check=check, cost=cost, roundings=_roundings(name))
                for word, seen in (("view", view), ("views", pattern(VIEW, view)))
                for name, check in checks.items()
            ),
            *(
                Operation(
                    f"{name}_of_pad", pattern(name, pad), check=_padded(checks[name]), cost=cost, roundings=ROUNDINGS
                )
                for name in ("conv2d", "depthwise_conv2d")
            ),
        ],
        stream=lambda region, played, sizes: lower_region(region, npu, objective, Effort(played, sizes == "all")),
        parameters={"played": (5, 12), "sizes": ("some", "all")},
        alignment=1,
        memories=npu.memories,
        macs_per_cycle=npu.rows * npu.columns,
        bytes_per_cycle=npu.bus_bytes,
    )


def _roundings(operator: str) -> Sequence[str]:
    """The output stage has both; additions round as TFLite's do."""
    return (TFLITE,) if operator == "add" else ROUNDINGS


def _cost(npu: Npu, objective: str) -> Callable[[Region], float]:
    found: dict[object, float] = {}

    def cost(region: Region) -> float:
        key = _key(region.root)
        if key not in found:
            found[key] = cycles_alone(npu.machine, layer_of(region.root, npu, {}), objective)
        return found[key]

    return cost


def _check(npu: Npu, operator: str) -> Check:
    first: dict[str, Check] = {"add": _why_not_added, "weighted_sum": _why_not_added, "lookup": _why_not_looked_up}
    first |= dict.fromkeys(("mean", "scaled_sum", "window_mean"), _why_not_mean)
    first |= dict.fromkeys(("average_pool2d", "max_pool2d"), _why_not_pooled) | {"window_max": _why_not_largest}
    first |= {"batch_matmul": _why_not_multiplied(npu)}
    reason_of = first.get(operator, _why_not_convolved)
    found: dict[object, str | None] = {}

    def check(region: Region) -> str | None:
        reason = reason_of(region)
        if reason is not None:
            return reason
        key = _key(region.root)
        if key not in found:
            layer = layer_of(region.root, npu, {})
            found[key] = _too_large(layer) or why_not(npu.machine, layer)
        return found[key]

    return check


def _padded(check: Check) -> Check:
    """A convolution of padding, if it is padding such as the machine does."""

    def checked(region: Region) -> str | None:
        pad, attrs = region.calls[0], region.calls[0].attrs
        if attrs.pad_mode != "constant" or not padding_of(pad)[1]:
            return "its input is padded in another way than with a border of rows and columns"
        value, wanted = float(attrs.pad_value), region.root.attrs.input_zero_point
        if value != wanted:
            return f"its input is padded with {value:g}, wanted its zero point, {wanted}"
        return check(region)

    return checked


def _key(call: OpCall) -> object:
    """What the size and time of a layer depend on."""
    return call.op, call.attrs, tuple(operand.info for operand in call.operands), call.output


def _why_not_convolved(region: Region) -> str | None:
    data, weights = region.root.operands[:2]
    if data.constant is not None:
        return "its input is a constant"
    if weights.constant is None:
        return "its weights are computed at run time, and they have to be packed ahead of time"
    return sums.int8_only(region)


def _why_not_mean(region: Region) -> str | None:
    reason = _why_not_pooled(region)
    found = mean_of(region.root) if reason is None else reason
    return found if isinstance(found, str) else None


def _why_not_largest(region: Region) -> str | None:
    (data,), window = region.root.operands, window_of(region.root.attrs, region.root.attrs.window)
    for axis, word in enumerate(("rows", "columns")):
        extent, count = data.info.shape[axis + 1], region.output.shape[axis + 1]
        taps = window.place(axis, np.arange(count)[:, None], np.arange(window.kernel[axis]))
        if not ((taps >= 0) & (taps < extent)).any(axis=1).all():
            return f"some of its windows lie in the padding of {word} alone"
    return _why_not_pooled(region)


def _why_not_looked_up(region: Region) -> str | None:
    data, table = region.root.operands
    if data.constant is not None:
        return "its input is a constant"
    return None if table.constant is not None else "its table is computed at run time"


def _why_not_pooled(region: Region) -> str | None:
    data = region.root.operands[0]
    if data.constant is not None:
        return "its input is a constant"
    return None if data.info.dtype == "int8" else f"its input is {data.info.dtype}, wanted int8"


def _why_not_added(region: Region) -> str | None:
    for number, operand in enumerate(region.root.operands, 1):
        if operand.info.dtype != "int8":
            return f"its operand {number} is {operand.info.dtype}, wanted int8"
        if operand.constant is None and operand.info.shape != region.output.shape:
            return f"its operand {number}, {operand.info}, would have to be repeated, which the machine cannot"
    if all(operand.constant is not None for operand in region.root.operands):
        return "both of its operands are constants"
    shift = getattr(region.root.attrs, "shift", 0)
    return f"it shifts by {shift}, and the machine by {LARGEST_ONCE} at most" if shift > LARGEST_ONCE else None


def _why_not_multiplied(npu: Npu) -> Check:
    def check(region: Region) -> str | None:
        sides, output = region.root.operands, region.output.shape
        if any(side.info.dtype != "int8" for side in sides):
            return f"its sides are {sides[0].info} and {sides[1].info}, wanted int8"
        if all(side.constant is not None for side in sides):
            return "both of its sides are constants"
        if any(prod(side.info.shape[:-2]) not in (1, prod(output[:-2])) for side in sides):
            return f"some matrices of {sides[0].info} or {sides[1].info} would have to be repeated"
        most = npu.sum_bytes // WORD // npu.columns * npu.columns
        return f"its result has {output[-1]} columns, and there are sums of {most}" if output[-1] > most else None

    return check


def _too_large(layer: Layer) -> str | None:
    """Whether a field of a command is too narrow."""
    if not isinstance(layer, Windowed):
        return None
    shapes: tuple[tuple[str, Shape], ...] = (("input", layer.shapes[0]), ("output", layer.shape))
    limits = [
        (f"{which} has {value} {name}", value, LARGEST_EXTENT)
        for which, shape in shapes
        for name, value in (("rows", shape.rows), ("columns", shape.columns), ("channels", shape.channels))
    ]
    window = layer.window
    limits += [(f"kernel has an extent of {value}", value, LARGEST_EXTENT) for value in window.kernel]
    limits += [(f"stride is {value}", value, LARGEST_STRIDE) for value in window.strides]
    limits += [(f"dilation is {value}", value, LARGEST_STRIDE) for value in window.dilation]
    limits += [(f"padding is {value}", value, LARGEST_PADDING) for value in window.padding[:2]]
    limits += [(f"sums have {layer.steps} steps", layer.steps, LARGEST_EXTENT)]
    return next(
        (f"its {what}, and a command holds {most} at most" for what, value, most in limits if value > most), None
    )
