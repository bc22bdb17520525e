"""Expands quantised layers for accelerators that multiply and add, and leave the rest of a layer to the CPU.

A convolution becomes: layout change, padding with the zero point, sums on the accelerator, requantisation, layout
change back. Layout changes that meet between two such layers vanish. Zero points cost nothing at run time: they are
part of the bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from uaccel.accelerator.region import Region
from uaccel.model import Array
from uaccel.ops.accumulators import Conv2dSums, Conv2dSumsAttrs, FullyConnectedSums, RequantizeSums, RequantizeSumsAttrs
from uaccel.ops.operator import Attributes, constant, get
from uaccel.ops.reduce import ReduceMean, ReduceSumAttrs
from uaccel.ops.windows import SlidingWindow, window_of
from uaccel.tvm_api import relax

# What the accelerator computes of a match, and what the CPU does before and after: both are written in Relax.
#
# An operation's ``expand(expansion, region, inputs)`` gets the region's inputs as Relax variables and returns the
# result. ``expansion.cpu(expr, "pad")`` binds an expression that the CPU computes; ``expansion.engine(body, inputs,
# "sums")`` one that the accelerator does, where ``body`` makes the expression from the variables of its own function.
# All of it stays Relax: TVM executes the parts on this computer, so that their meaning is compared with the match's.


@dataclass(frozen=True)
class Expansion:
    """Adds bindings to the main function in place of one match. ``name`` is the layer's."""

    name: str
    bind: Callable[[Any, str], Any]
    call_engine: Callable[[str, list[Any], Callable[[list[Any]], Any]], Any]

    def cpu(self, expr: Any, part: str) -> Any:
        """The variable of a part that the CPU computes; ``part`` becomes part of its name."""
        return self.bind(expr, f"{self.name}_{part}")

    def engine(self, body: Callable[..., Any], inputs: Sequence[Any], part: str) -> Any:
        """The variable of what the accelerator computes: one expression over ``inputs``."""
        return self.call_engine(f"{self.name}_{part}", list(inputs), lambda variables: body(*variables))


def permuted(expansion: Expansion, value: Any, axes: Sequence[int], part: str) -> Any:
    """Adds a layout change on the CPU; where two opposite ones meet, both vanish later."""
    return expansion.cpu(relax.op.permute_dims(value, list(axes)), part)


TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)
DEPTHWISE = "uaccel.depthwise_conv2d"
SUMS_OF_ONE_CALL = 4096  # Fewer bytes of sums than these are not worth several calls.


def conv2d_nchw(expansion: Expansion, region: Region, inputs: list[Any], *, abreast: int = 0) -> Any:
    """Expands ``uaccel.conv2d`` or ``uaccel.depthwise_conv2d`` to NCHW sums with weights OIHW.

    The accelerator pads by itself where zeros are right: with a zero point of 0, and alike on both sides. With
    ``abreast``, the filters that it works on together, it makes a quarter of the sums at a time: a sum has 4 bytes and
    a result 1, so the sums take no more memory than the results. A dilated kernel becomes a larger one, with zeros
    between its weights.
    """
    attrs, weights = region.attrs, region.operands[1].value
    groups = region.operands[0].info.shape[3] if region.root.op == DEPTHWISE else attrs.groups
    kernel = spread(oihw(region), attrs.dilation)
    value = expansion.cpu(relax.op.permute_dims(inputs[0], TO_NCHW), "nchw")
    padding = attrs.padding
    if any(padding) and not pads_with_zeros(region):
        value = expansion.cpu(_padded(value, padding, attrs.input_zero_point), "padded")
        padding = (0, 0, 0, 0)
    channels_last = weights.reshape(-1, weights.shape[-1]).T if region.root.op == DEPTHWISE else weights
    parts, per_group = [], len(kernel) // groups
    for number, some in enumerate(_quarters(region, len(kernel), groups, abreast)):
        count = groups if groups == 1 else (some.stop - some.start) // per_group
        sums = Conv2dSumsAttrs(attrs.strides, padding, (1, 1), count, "NCHW")
        body = partial(_sums, filters=kernel[some], attrs=sums)
        suffix = f"_{number}" if some != slice(0, len(kernel)) else ""
        seen = value
        if count < groups:
            bounds = [bound // per_group * kernel.shape[1] for bound in (some.start, some.stop)]
            seen = expansion.cpu(relax.op.strided_slice(value, [1], bounds[:1], bounds[1:]), f"channels{suffix}")
        result = expansion.engine(body, [seen], f"sums{suffix}")
        requantized = _requantized(result, region, channels_last, 1, some)
        parts.append(expansion.cpu(requantized, f"requantized{suffix}"))
    output = parts[0] if len(parts) == 1 else expansion.cpu(relax.op.concat(parts, axis=1), "joined")
    return relax.op.permute_dims(output, TO_NHWC)


def _sums(x: Any, filters: Array, attrs: Conv2dSumsAttrs) -> Any:
    return get(Conv2dSums)(x, constant(filters), attrs=attrs)


def _quarters(region: Region, filters: int, groups: int, abreast: int) -> list[slice]:
    """The filters whose sums are made by one call: whole groups, or as many as are worked on together."""
    if abreast == 0 or region.output.shape[0] > 1 or 4 * region.output.size < SUMS_OF_ONE_CALL:
        return [slice(0, filters)]
    unit = abreast if groups == 1 else filters // groups
    step = max(unit, filters // 4 // unit * unit)
    return [slice(first, min(first + step, filters)) for first in range(0, filters, step)]


def window(region: Region) -> tuple[int, int]:
    """Rows and columns of a convolution's kernel, dilation included."""
    window = window_of(region.attrs, oihw(region).shape[2:])
    return window.extent(0, 1), window.extent(1, 1)


def spread(kernel: Array, dilation: tuple[int, ...]) -> Array:
    """The OIHW kernel without dilation, with zeros between its weights."""
    window = SlidingWindow(kernel.shape[2:], dilation=dilation)
    larger = np.zeros((*kernel.shape[:2], window.extent(0, 1), window.extent(1, 1)), kernel.dtype)
    larger[:, :, :: dilation[0], :: dilation[1]] = kernel
    return larger


def fully_connected(expansion: Expansion, region: Region, inputs: list[Any]) -> Any:
    """Expands ``uaccel.fully_connected`` to sums of rows with weights [units, depth]."""
    weights, operator = region.operands[1].value, get(FullyConnectedSums)
    result = expansion.engine(lambda x: operator(x, constant(weights), attrs=Attributes()), [inputs[0]], "sums")
    return _requantized(result, region, weights, axis=1)


def oihw(region: Region) -> Array:
    """The weights of a convolution, depthwise or not, as OIHW."""
    weights = region.operands[1].value
    if region.root.op == DEPTHWISE:
        return np.ascontiguousarray(weights.transpose(2, 0, 1)[:, None])
    return np.ascontiguousarray(weights.transpose(0, 3, 1, 2))


def pads_with_zeros(region: Region) -> bool:
    """Whether padding with zeros, the same on opposite sides, is what the layer means."""
    top, left, bottom, right = region.attrs.padding
    return bool(region.attrs.input_zero_point == 0 and top == bottom and left == right)


def mean_factor(attrs: ReduceSumAttrs, count: int) -> tuple[int, int]:
    """Multiplier and shift that make the mean of a sum of ``count`` elements, for ``uaccel.mean``."""
    return ReduceMean().factor(attrs, count)


def _padded(value: Any, padding: tuple[int, ...], zero_point: int) -> Any:
    top, left, bottom, right = padding
    return relax.op.nn.pad(value, (0, 0, 0, 0, top, bottom, left, right), pad_value=zero_point)


def _requantized(sums: Any, region: Region, weights: Array, axis: int, some: slice = slice(None)) -> Any:
    """Requantises the sums of ``some`` output channels, with the input's zero point in the bias.

    A sum of w * (x - zero) is the sum of w * x less zero * sum(w), which is known ahead of time.
    """
    attrs, numbers = region.attrs, (np.broadcast_to(o.value, len(weights))[some] for o in region.operands[2:5])
    (bias, multiplier, shift), weights = numbers, weights[some]
    correction = attrs.input_zero_point * weights.reshape(len(weights), -1).astype(np.int64).sum(axis=1)
    folded = (bias.astype(np.int64) - correction).astype(np.int32)
    clamps, dtype = (attrs.clamp_min, attrs.clamp_max), region.output.dtype
    after = RequantizeSumsAttrs(axis, attrs.output_zero_point, *clamps, dtype, attrs.rounding)
    return get(RequantizeSums)(sums, constant(folded), constant(multiplier), constant(shift), attrs=after)


def int8_only(region: Region) -> str | None:
    """Says why a layer is not int8 with constant weights and 32-bit sums; None where it is (for checks)."""
    data, weights, bias = region.operands[:3]
    for what, info in (("input", data.info), ("weights", weights.info), ("output", region.output)):
        if info.dtype != "int8":
            return f"its {what} is {info.dtype}, wanted int8"
    if bias.info.dtype != "int32":
        return f"its bias is {bias.info.dtype}, wanted int32"
    return None if weights.constant is not None else "its weights are computed at run time, wanted constants"
