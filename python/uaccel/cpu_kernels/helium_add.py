"""Addition with Arm Helium."""

from __future__ import annotations

from typing import Final

import numpy as np

from uaccel.cpu_kernels.helium_call import REQUIRES, finish_parameters, helium_kernel
from uaccel.cpu_kernels.registry import offers
from uaccel.model import Array
from uaccel.ops.add import Add, AddAttrs
from uaccel.ops.base import Site, operand_arguments
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier, rounding_doubling_high_mul
from uaccel.ops.kernel import Kernel, Output, ParameterValue

INPUT_LIMIT: Final = 1 << 29
"""On the common scale; below it nothing wraps around."""
BYTES: Final = np.arange(-128, 128, dtype=np.int64)


@offers(Add, REQUIRES)
def add(site: Site[AddAttrs]) -> Kernel | None:
    """Eight elements at a time, of inputs of one shape."""
    attrs, (first, second) = site.attrs, site.operands
    same = first.info == second.info == site.output and site.output.dtype == "int8"
    if not same or attrs.output_shift > 0 or attrs.output_multiplier < 0:
        return None
    inputs = [
        _input(attrs.left_shift, attrs.zero_point1, attrs.multiplier1, attrs.shift1),
        _input(attrs.left_shift, attrs.zero_point2, attrs.multiplier2, attrs.shift2),
    ]
    if inputs[0] is None or inputs[1] is None:
        return None
    sign = attrs.clamp_min < attrs.output_zero_point and attrs.output_shift < 0
    parameters: dict[str, ParameterValue] = {"count": site.output.elements}
    parameters |= {f"first.{name}": value for name, value in inputs[0].items()}
    parameters |= {f"second.{name}": value for name, value in inputs[1].items()}
    parameters |= {"multiplier": attrs.output_multiplier, "right": -attrs.output_shift}
    parameters |= finish_parameters(attrs.output_zero_point, sign, attrs.clamp_min, attrs.clamp_max)
    arguments = operand_arguments(site.operands, ("first", "second"))
    inplace = tuple(index for index in site.input_indices() if index is not None)
    return helium_kernel("add", parameters, (*arguments, Output(0)), inplace=inplace)


def _input(left: int, zero_point: int, multiplier: int, shift: int) -> dict[str, ParameterValue] | None:
    """The fields of ``struct uaccel_add_helium_input``; None where it would not be exact."""
    factor = 1 << (left + max(0, shift))
    raised, right = (BYTES - zero_point) * factor, max(0, -shift)
    if np.abs(raised).max() >= INPUT_LIMIT or multiplier < 0:
        return None
    exact = multiply_by_quantized_multiplier((BYTES - zero_point) << left, multiplier, shift)
    if np.abs(exact).max() >= INPUT_LIMIT:
        return None
    slope = int(exact[1] - exact[0])
    if (exact == (BYTES - zero_point) * slope).all():
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
