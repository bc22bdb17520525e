"""Multiplication for Arm's DSP extension."""

from __future__ import annotations

from typing import Final

import numpy as np

from uaccel.cpu_kernels.helium_mul import fits
from uaccel.cpu_kernels.output_stage import LARGEST_SHIFT
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site, get
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier
from uaccel.ops.kernel import Kernel, KernelCall, ParameterValue, dtype_suffix, same
from uaccel.ops.mul import Mul, MulAttrs

REQUIRES: Final = ("dsp",)
LARGEST_PRODUCT: Final = 1 << 30
"""Of two numbers of 16 bits. Doubled it overflows, and what saturates then is one less."""


@offers(Mul, REQUIRES, rank=200)
def mul(site: Site[MulAttrs]) -> Kernel | None:
    """Four elements at a time, of inputs that broadcast."""
    attrs, shift = site.attrs, -site.attrs.shift
    if not fits(site) or not 1 <= shift <= LARGEST_SHIFT or _largest_shows(attrs):
        return None
    portable = get(Mul).kernels(site)[0]
    (call,) = portable.calls
    loops = {field: call.parameters[field] for field in ("extents", "strides1", "strides2")}
    parameters: dict[str, ParameterValue] = {
        **loops,
        **same(attrs, "zero_point1", "zero_point2", "multiplier", "clamp_min", "clamp_max"),
        "offset": (1 << shift - 1) + (attrs.output_zero_point << shift),
        "shift": shift,
        "sign": int(attrs.clamp_min < attrs.output_zero_point),
    }
    name = "uaccel_mul_dsp"
    own = KernelCall(f"{name}_{dtype_suffix(site.output.dtype)}", f"{name}.h", name, parameters, call.arguments)
    return Kernel("arm_dsp", (own,), inplace=portable.inplace, requires=REQUIRES)


def _largest_shows(attrs: MulAttrs) -> bool:
    """Whether the result of the largest product differs from that of the largest doubled one that does not overflow."""
    right = multiply_by_quantized_multiplier(LARGEST_PRODUCT, attrs.multiplier, attrs.shift)
    doubled = np.int64((1 << 31) - 1) * attrs.multiplier + (1 << 31) >> 32
    saturated = (doubled + (1 << -attrs.shift - 1)) >> -attrs.shift
    return bool(np.minimum(right, attrs.clamp_max) != np.minimum(saturated, attrs.clamp_max))
