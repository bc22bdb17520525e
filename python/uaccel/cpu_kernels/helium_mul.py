"""Multiplication with Arm Helium."""

from __future__ import annotations

from uaccel.cpu_kernels.helium_add import broadcasting
from uaccel.cpu_kernels.helium_call import REQUIRES, finish_parameters
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site, get
from uaccel.ops.kernel import Kernel, ParameterValue, same
from uaccel.ops.mul import Mul, MulAttrs


@offers(Mul, REQUIRES, rank=100)
def mul(site: Site[MulAttrs]) -> Kernel | None:
    """Eight elements at a time, of inputs that broadcast."""
    attrs, dtype = site.attrs, site.output.dtype
    if not fits(site) or attrs.shift > 0:
        return None
    sign = attrs.clamp_min < attrs.output_zero_point and attrs.shift < 0
    parameters: dict[str, ParameterValue] = {
        **same(attrs, "zero_point1", "zero_point2", "multiplier"),
        "right": -attrs.shift,
        **finish_parameters(attrs.output_zero_point, sign, attrs.clamp_min, attrs.clamp_max, dtype),
    }
    return broadcasting("mul", site, get(Mul), parameters)


def fits(site: Site[MulAttrs]) -> bool:
    """Whether differences from the zero points fit 16 bits, and products 31."""
    attrs = site.attrs
    zero_points = (attrs.zero_point1, attrs.zero_point2, attrs.output_zero_point)
    small = all(-128 <= zero_point <= 127 for zero_point in zero_points)
    return (site.output.dtype == "int8" and small) or (site.output.dtype == "int16" and not any(zero_points))
