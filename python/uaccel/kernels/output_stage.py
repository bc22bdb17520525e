"""Computes the output stage constants of hand-written kernels, and refuses layers where they would not be exact.

An output stage turns a sum of 32 bits into an element. TFLite rounds twice: high = round(sum * multiplier / 2**31),
halves upwards, then high / 2**shift, halves away from zero. The second step equals
(high + half + sign) >> shift with half = 2**(shift - 1) and sign = -1 for negative ``high``, else 0: a tie -k - 1/2
then falls to -k - 1. The zero point, shifted left, and ``half`` are one constant, the ``offset``.

``sign`` costs an instruction and is left out where the lower bound is the zero point or above it, as behind a ReLU. It
decides negative ties alone, between -k and -k - 1 for k >= 0, and both end at the bound. A shift of 0 has no ties, so
with ``sign`` shifts must be 1 or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.registry import DeclinedError, OtherTypeError, check_type
from uaccel.model import Array
from uaccel.ops.conv import folded_constants
from uaccel.ops.exact import FLOAT32, limits
from uaccel.ops.fixedpoint import RESTS, multiply_by_quantized_multiplier
from uaccel.ops.operator import Site
from uaccel.ops.windows import geometry_fields, plane_fields, window_fields

# The zero point, 2**7 at most, times 2**shift is 2**29 at most. With a product below 2**30 and a half it fits 32 bits.
LARGEST_SHIFT: Final = 22
SUM_LIMIT: Final = 1 << 30  # Sums are doubled in 32 bits, so that the high word of a product is what TFLite takes.
ONE: Final = 1 << 30  # With this multiplier and a shift of 1 the result is the zero point and a quarter of the sum.

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OutputStage:
    """Holds constants by channel: ``((sum * multiplier >> 31, rounded) + sign + offset) >> shift``, then clamped.

    ``sign``: whether -1 is added to what is negative. A channel whose result does not depend on the input has
    multiplier 0, shift 1 and twice its value as the offset.

    With ``single``, ``multiplier`` and ``shift`` are the operator's own, for single precision, and ``offset`` is the
    zero point.
    """

    bias: Ints
    multiplier: Ints
    offset: Ints
    shift: Ints
    sign: bool
    clamp_min: int
    clamp_max: int
    zero_point: int
    single: bool = False

    @property
    def scale_bits(self) -> Ints:
        """Returns the bits of the float32 scales; 0 for channels with a multiplier of 0. A multiplier m in [2**30,
        2**31) stands for m * 2**(shift - 31), whose biased exponent is shift + 126. Its upper 24 bits, m >> 7, are the
        mantissa with its leading one, which adds one to the exponent: hence 125."""
        return np.where(self.multiplier == 0, 0, ((self.shift + 125) << 23) + (self.multiplier >> 7))

    @property
    def rest_bits(self) -> Ints:
        """Returns the bits of the float32 that single precision adds to each sum: the multiplier's low 7 bits."""
        rests = (self.multiplier % RESTS / RESTS).astype(np.float32)
        return rests.view(np.int32).astype(np.int64)

    @property
    def way(self) -> int:
        """Numbers the way of rounding: 0 and 1 are TFLite's without and with ``sign``, 2 and 3 are single precision
        without and with rests."""
        return 2 + bool(self.rest_bits.any()) if self.single else int(self.sign)

    @property
    def clamps(self) -> bool:
        """Whether the bounds are narrower than the type."""
        return (self.clamp_min, self.clamp_max) != (-128, 127)

    def parameters(self) -> dict[str, int]:
        """Returns the fields of ``struct uaccel_dsp_finish``."""
        low, high = ((bound & 0xFF) * 0x01010101 for bound in (self.clamp_min, self.clamp_max))
        return {
            "finish.sign": int(self.sign),
            "finish.clamp": int(self.clamps),
            "finish.lowest": low,
            "finish.highest": high,
        }

    def bounds(self) -> dict[str, int]:
        """Returns the fields of ``struct uaccel_rvv_finish``, with which its like begin."""
        return {"finish.sign": int(self.sign), "finish.clamp_min": self.clamp_min, "finish.clamp_max": self.clamp_max}

    def table(self) -> NDArray[np.int32]:
        """Returns a row of bias, multiplier, offset and shift a channel, as ``uaccel_rvv.h`` reads them."""
        return np.stack([self.bias, self.multiplier, self.offset, self.shift], axis=1).astype(np.int32)

    def _each(self, change: Callable[[Ints], Ints]) -> OutputStage:
        """Applies a change to the constants of all channels."""
        by_channel = ("bias", "multiplier", "offset", "shift")
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in by_channel}
        return replace(self, **changed)

    def taken(self, order: Ints) -> OutputStage:
        """Returns the stage for channels in this order."""
        return self._each(lambda constants: constants[order])

    def computed(self, rows: Array) -> tuple[Array, OutputStage]:
        """Returns rows and stage with channels of a constant result computed as others are: from a bias alone. With
        ``ONE`` and a shift of 1 a sum of 4 * (value - zero point) gives the value. No tie arises."""
        known = self.multiplier == 0
        stage = replace(
            self,
            bias=np.where(known, 4 * (self.offset // 2 - self.zero_point), self.bias),
            multiplier=np.where(known, ONE, self.multiplier),
            shift=np.where(known, 1, self.shift),
        )
        return np.where(known[:, np.newaxis], 0, rows).astype(np.int8), stage

    def filled(self, channels: int) -> OutputStage:
        """Appends channels of zeros, to ``channels`` in all."""
        return self._each(lambda constants: np.pad(constants, (0, channels - len(constants))))


def output_stage_of(site: Site[Any], weights: Array, *, rests: bool = False, dtype: str = "int8") -> OutputStage:
    """Computes the stage of an operator with weights, one row a channel; declines where kernels would not be exact.
    ``rests``: whether the kernels add what a bias is above a whole number. ``dtype``: the elements that they take."""
    check_type(site, dtype)
    if weights.dtype != np.int8:
        raise OtherTypeError(weights.dtype.name, "int8")
    furthest = -limits(dtype)[0]
    attrs = site.attrs
    multiplier, shift = (np.broadcast_to(operand.value, len(weights)) for operand in site.operands[3:5])
    multiplier, shift = multiplier.astype(np.int64), shift.astype(np.int64)
    bias = folded_constants(site, weights)["bias"].astype(np.int64)
    if attrs.rounding == FLOAT32:
        if (multiplier % RESTS).any() and not rests:
            raise DeclinedError(
                "biases in single precision lie between whole numbers", "convert with TFLite's rounding"
            )
        return _single_precision(attrs, _reach(weights, bias, furthest), bias, multiplier, shift)
    sign = bool(attrs.clamp_min < attrs.output_zero_point)
    known, values = _known_values(attrs, weights, bias, multiplier, shift, furthest)
    bias, multiplier, right = np.where(known, 0, bias), np.where(known, 0, multiplier), np.where(known, 1, -shift)
    _check_reach(_reach(weights, bias, furthest))
    _check_scales(multiplier, right, 1 if sign else 0)
    half = np.where(right > 0, 1 << np.maximum(right - 1, 0), 0)
    offset = np.where(known, 2 * values, half + (attrs.output_zero_point << right))
    zero_point = attrs.output_zero_point
    return OutputStage(bias, multiplier, offset, right, sign, attrs.clamp_min, attrs.clamp_max, zero_point)


def _single_precision(attrs: Any, reach: int, bias: Ints, multiplier: Ints, shift: Ints) -> OutputStage:
    _check_reach(reach)
    offset = np.full(len(bias), attrs.output_zero_point, np.int64)
    bounds = (attrs.clamp_min, attrs.clamp_max)
    return OutputStage(bias, multiplier, offset, shift, False, *bounds, attrs.output_zero_point, single=True)


def _check_reach(reach: int) -> None:
    if reach >= SUM_LIMIT:
        raise DeclinedError(
            f"a sum may reach {reach:,}, and {SUM_LIMIT:,} is too much", "give it smaller biases or weights"
        )


def _check_scales(multiplier: Ints, right: Ints, least: int) -> None:
    """Declines channels whose scale is too large, or too small, for the shift that follows the product."""
    for beyond, bound, remedy in (
        (right < least, f"below {2.0**-least:g}", "a larger output scale"),
        (right > LARGEST_SHIFT, f"{2.0 ** -(LARGEST_SHIFT + 1):.2g} at least", "larger weight scales"),
    ):
        if beyond.any():
            channel = int(beyond.argmax())
            scale = float(multiplier[channel]) * 2.0 ** -(31 + int(right[channel]))
            raise DeclinedError(
                f"channel {channel} scales its sums by {scale:.3g}, and {bound} is taken", f"quantise with {remedy}"
            )


def _reach(weights: Array, bias: Ints, furthest: int) -> int:
    """Bounds how far from zero a sum can be; an element is ``furthest`` from zero at most."""
    return int((_span(weights, furthest) + np.abs(bias)).max(initial=0))


def _span(weights: Array, furthest: int) -> Ints:
    """Bounds by channel how far products of the elements can move a sum from the bias."""
    spans: Ints = furthest * np.abs(weights.astype(np.int64)).sum(axis=1)
    return spans


def _known_values(
    attrs: Any, weights: Array, bias: Ints, multiplier: Ints, shift: Ints, furthest: int
) -> tuple[NDArray[np.bool_], Ints]:
    """Says which channels have one result whatever the input, and which; meaningless for others. As results rise with
    the sum, those of the smallest and the largest decide: a trained channel may be too weak to move half a step."""
    span = _span(weights, furthest)
    ends = (multiply_by_quantized_multiplier(bias + side * span, multiplier, shift) for side in (-1, 1))
    low, high = ((end + attrs.output_zero_point).clip(attrs.clamp_min, attrs.clamp_max) for end in ends)
    rises = (shift <= 0) & (span + np.abs(bias) < SUM_LIMIT)  # so far nothing wraps around
    return (low == high) & (rises | (span == 0) | (multiplier == 0)), low


def pad_axis(array: Array, axis: int, multiple: int) -> Array:
    """Appends zeros to an axis, up to a multiple."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths)


def interleave_channels(rows: Array, block: int) -> NDArray[np.int8]:
    """Lays weights out by (block of channels, input, channel of the block); ``rows`` has one row a channel."""
    filled = pad_axis(rows, 0, block)
    return np.ascontiguousarray(filled.reshape(-1, block, rows.shape[1]).transpose(0, 2, 1), dtype=np.int8)


def geometry(site: Site[Any], kernel: tuple[int, int], *, depthwise: bool = False) -> dict[str, int]:
    """Returns the other parameters of a portable convolution; a depthwise one here has its ``channels`` once."""
    shapes, attrs = (site.operands[0].info.shape, site.output.shape), site.attrs
    fields = plane_fields(*shapes) | window_fields(attrs, kernel) if depthwise else geometry_fields(site, kernel)
    return fields | {"input_zero_point": attrs.input_zero_point}
