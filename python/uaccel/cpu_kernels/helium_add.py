"""Addition with Arm Helium."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.cpu_kernels.helium_call import REQUIRES, finish_parameters, helium_kernel
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.add import Add, AddAttrs, Sub
from uaccel.ops.base import IntegerOperator, Site, get, operand_arguments
from uaccel.ops.exact import limits
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier, rounding_doubling_high_mul
from uaccel.ops.kernel import Kernel, Output, ParameterValue, dtype_suffix

INPUT_LIMIT: Final = 1 << 30
"""On the common scale: below it sums do not wrap around."""
RAISED_LIMIT: Final = 1 << 31
"""Of inputs, raised: what 32 bits hold."""


@offers(Add, REQUIRES, rank=100)
def add(site: Site[AddAttrs]) -> Kernel | None:
    """Eight elements at a time, of inputs of one shape."""
    attrs, (first, second) = site.attrs, site.operands
    same = first.info == second.info == site.output and site.output.dtype == "int8"
    if not same or attrs.output_shift > 0 or attrs.output_multiplier < 0:
        return None
    parameters = _parameters(site)
    if parameters is None:
        return None
    arguments = operand_arguments(site.operands, ("first", "second"))
    inplace = tuple(index for index in site.input_indices() if index is not None)
    return helium_kernel("add", {"count": site.output.elements, **parameters}, (*arguments, Output(0)), inplace=inplace)


@offers(Add, REQUIRES, rank=110)
def broadcast_add(site: Site[AddAttrs]) -> Kernel | None:
    return _sum(site, get(Add), subtract=0)


@offers(Sub, REQUIRES, rank=100)
def subtract(site: Site[AddAttrs]) -> Kernel | None:
    return _sum(site, get(Sub), subtract=1)


def _sum(site: Site[AddAttrs], operator: IntegerOperator[AddAttrs], subtract: int) -> Kernel | None:
    """Eight elements at a time, of inputs that broadcast."""
    attrs, dtype = site.attrs, site.output.dtype
    zero_points = (attrs.zero_point1, attrs.zero_point2, attrs.output_zero_point)
    fits = dtype == "int8" or (dtype == "int16" and not any(zero_points))
    parameters = _parameters(site) if fits and attrs.output_shift <= 0 and attrs.output_multiplier >= 0 else None
    return None if parameters is None else broadcasting("sum", site, operator, parameters | {"subtract": subtract})


def broadcasting(
    name: str, site: Site[Any], operator: IntegerOperator[Any], parameters: dict[str, ParameterValue]
) -> Kernel:
    """A kernel of ``uaccel_binary_helium.h``: with the loops of the portable one, and in its places."""
    portable = operator.kernels(site)[0]
    (call,) = portable.calls
    loops = {field: call.parameters[field] for field in ("extents", "strides1", "strides2")}
    arguments = tuple(argument for argument in call.arguments if not isinstance(argument, (int, float)))
    suffix = dtype_suffix(site.output.dtype)
    return helium_kernel(name, loops | parameters, arguments, inplace=portable.inplace, suffix=suffix)


def _parameters(site: Site[AddAttrs]) -> dict[str, ParameterValue] | None:
    """What both kernels share; None where they would not be exact."""
    attrs, dtype = site.attrs, site.output.dtype
    low, high = limits(dtype)
    values = np.arange(low, high + 1, dtype=np.int64)
    inputs = [
        _input(values - attrs.zero_point1, attrs.left_shift, attrs.zero_point1, attrs.multiplier1, attrs.shift1),
        _input(values - attrs.zero_point2, attrs.left_shift, attrs.zero_point2, attrs.multiplier2, attrs.shift2),
    ]
    if inputs[0] is None or inputs[1] is None:
        return None
    sign = attrs.clamp_min < attrs.output_zero_point and attrs.output_shift < 0
    parameters: dict[str, ParameterValue] = {}
    parameters |= {f"first.{name}": value for name, value in inputs[0].items()}
    parameters |= {f"second.{name}": value for name, value in inputs[1].items()}
    parameters |= {"multiplier": attrs.output_multiplier, "right": -attrs.output_shift}
    return parameters | finish_parameters(attrs.output_zero_point, sign, attrs.clamp_min, attrs.clamp_max, dtype)


def _input(values: Array, left: int, zero_point: int, multiplier: int, shift: int) -> dict[str, ParameterValue] | None:
    """The fields of ``struct uaccel_add_helium_input``; None where it would not be exact for one of the values."""
    factor = 1 << (left + max(0, shift))
    raised, right = values * factor, max(0, -shift)
    if np.abs(raised).max() >= RAISED_LIMIT or multiplier < 0:
        return None
    exact = multiply_by_quantized_multiplier(values << left, multiplier, shift)
    if np.abs(exact).max() >= INPUT_LIMIT:
        return None
    slope = int(exact[1] - exact[0])
    if (exact == values * slope).all():
        return _fields(slope, zero_point, True, 0, 0, False)
    sign = bool((_rounded_up(rounding_doubling_high_mul(raised, multiplier), right) != exact).any())
    return _fields(factor, zero_point, False, multiplier, right, sign)


def _fields(
    factor: int, zero_point: int, linear: bool, multiplier: int, right: int, sign: bool
) -> dict[str, ParameterValue]:
    return {
        "factor": factor,
        "offset": -zero_point * factor,
        "linear": int(linear),
        "multiplier": multiplier,
        "right": right,
        "sign": int(sign),
    }


def _rounded_up(values: Array, right: int) -> Array:
    """Shifted right, halves upwards."""
    return (values + ((1 << right) >> 1)) >> right
