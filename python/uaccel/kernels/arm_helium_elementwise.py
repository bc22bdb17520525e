"""Offers addition, multiplication, lookup tables, dot products and float layers for Arm Helium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_helium_conv import REQUIRES, finish_parameters, helium_kernel
from uaccel.kernels.dot_products import ROWS, Dots, offer_dots
from uaccel.kernels.output_stage import pad_axis
from uaccel.kernels.registry import DeclinedError, Maker, check_type, offers
from uaccel.kernels.weight_packing import VECTOR
from uaccel.model import Array
from uaccel.ops import conv_float
from uaccel.ops.binary import Add, AddAttrs, Mul, MulAttrs, Sub
from uaccel.ops.exact import limits
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier, rounding_doubling_high_mul
from uaccel.ops.kernel import Kernel, Output, ParameterValue, dtype_suffix, same
from uaccel.ops.lookup import Lookup, LookupAttrs
from uaccel.ops.operator import IntegerOperator, Site, get, operand_arguments
from uaccel.util.favour import Favour

# Addition and subtraction. What the instructions compute is compared with TFLite's result for every value of an input,
# so that cheaper forms are used where they give the same: a factor alone, or no correction of negative ties.

Sum = type[Add] | type[Sub]

INPUT_LIMIT: Final = 1 << 30  # Inputs on the common scale are below it, so that their sum does not wrap around.
RAISED_LIMIT: Final = 1 << 31  # Raised inputs are below it: they fit 32 bits.


@offers(Add, REQUIRES, rank=100)
def add(site: Site[AddAttrs]) -> Kernel | None:
    """Adds eight elements at a time, of inputs of one shape."""
    first, second = site.operands
    check_type(site, "int8")
    if not first.info == second.info == site.output:
        return None
    parameters = _parameters(site)
    arguments = operand_arguments(site.operands, ("first", "second"))
    inplace = tuple(index for index in site.input_indices() if index is not None)
    return helium_kernel("add", {"count": site.output.elements, **parameters}, (*arguments, Output(0)), inplace=inplace)


def _sum(operator: Sum, site: Site[AddAttrs]) -> Kernel | None:
    """Adds or subtracts eight elements at a time, of inputs that broadcast."""
    attrs = site.attrs
    check_type(site, "int8", "int16")
    if site.output.dtype == "int16" and any((attrs.zero_point1, attrs.zero_point2, attrs.output_zero_point)):
        raise DeclinedError(*ZERO_POINTS)
    return broadcasting("sum", site, get(operator), _parameters(site) | {"subtract": int(operator is Sub)})


def offer_sums(requires: tuple[str, ...], make: Callable[[Sum, Site[AddAttrs]], Kernel | None], *ranks: int) -> None:
    """Offers what ``make`` gives for additions and for subtractions, at a rank each."""
    offers(Add, requires, rank=ranks[0])(lambda site: make(Add, site))
    offers(Sub, requires, rank=ranks[1])(lambda site: make(Sub, site))


offer_sums(REQUIRES, _sum, 110, 100)


def broadcasting(
    name: str, site: Site[Any], operator: IntegerOperator[Any], parameters: dict[str, ParameterValue]
) -> Kernel:
    """Makes a kernel of ``uaccel_binary_helium.h``, with the loops and in-place inputs of the portable one."""
    portable = operator.kernels(site)[0]
    (call,) = portable.calls
    loops = {field: call.parameters[field] for field in ("extents", "strides1", "strides2")}
    arguments = tuple(argument for argument in call.arguments if not isinstance(argument, (int, float)))
    suffix = dtype_suffix(site.output.dtype)
    return helium_kernel(name, loops | parameters, arguments, inplace=portable.inplace, suffix=suffix)


def _parameters(site: Site[AddAttrs]) -> dict[str, ParameterValue]:
    """Returns the parameters that both kernels share; declines where they would not be exact."""
    attrs, dtype = site.attrs, site.output.dtype
    if attrs.output_shift > 0 or attrs.output_multiplier < 0:
        raise DeclinedError("its sums are scaled up", "quantise with a larger output scale")
    low, high = limits(dtype)
    values = np.arange(low, high + 1, dtype=np.int64)
    parameters = {
        **_input("first", values, attrs.left_shift, attrs.zero_point1, attrs.multiplier1, attrs.shift1),
        **_input("second", values, attrs.left_shift, attrs.zero_point2, attrs.multiplier2, attrs.shift2),
        "multiplier": attrs.output_multiplier,
        "right": -attrs.output_shift,
    }
    sign = attrs.clamp_min < attrs.output_zero_point and attrs.output_shift < 0
    return parameters | finish_parameters(attrs.output_zero_point, sign, attrs.clamp_min, attrs.clamp_max, dtype)


def _input(
    side: str, values: Array, left: int, zero_point: int, multiplier: int, shift: int
) -> dict[str, ParameterValue]:
    """Returns the fields of ``struct uaccel_add_helium_input``; declines where it would not be exact for some value.
    ``linear`` where the exact result is the value times one factor. ``sign`` where rounding halves upwards would be
    wrong for some value: then -1 is added to what is negative before the shift, which costs instructions."""
    values = values - zero_point
    factor = 1 << (left + max(0, shift))
    raised, right = values * factor, max(0, -shift)
    fits = np.abs(raised).max() < RAISED_LIMIT and multiplier >= 0
    exact = multiply_by_quantized_multiplier(values << left, multiplier, shift) if fits else None
    if exact is None or np.abs(exact).max() >= INPUT_LIMIT:
        raise DeclinedError(
            "an input on the common scale does not fit 30 bits", "quantise its inputs with closer scales"
        )
    slope = int(exact[1] - exact[0])
    sign = bool((_rounded_up(rounding_doubling_high_mul(raised, multiplier), right) != exact).any())
    fields = (factor, -zero_point * factor, 0, multiplier, right, int(sign))
    if (exact == values * slope).all():
        fields = (slope, -zero_point * slope, 1, 0, 0, 0)
    names = ("factor", "offset", "linear", "multiplier", "right", "sign")
    return {f"{side}.{name}": value for name, value in zip(names, fields, strict=True)}


def _rounded_up(values: Array, right: int) -> Array:
    """Shifts right and rounds halves upwards."""
    return (values + ((1 << right) >> 1)) >> right


# Multiplication.


@offers(Mul, REQUIRES, rank=100)
def mul(site: Site[MulAttrs]) -> Kernel | None:
    """Multiplies eight elements at a time, of inputs that broadcast."""
    attrs, dtype = site.attrs, site.output.dtype
    check_factors(site)
    if attrs.shift > 0:
        raise DeclinedError("its products are scaled up", "quantise with a larger output scale")
    sign = attrs.clamp_min < attrs.output_zero_point and attrs.shift < 0
    parameters: dict[str, ParameterValue] = {
        **same(attrs, "zero_point1", "zero_point2", "multiplier"),
        "right": -attrs.shift,
        **finish_parameters(attrs.output_zero_point, sign, attrs.clamp_min, attrs.clamp_max, dtype),
    }
    return broadcasting("mul", site, get(Mul), parameters)


ZERO_POINTS: Final = ("its int16 elements have a zero point", "quantise int16 tensors symmetrically")


def check_factors(site: Site[MulAttrs]) -> None:
    """Declines factors that may be too far from their zero points for 16 bits, so that products might not fit 32."""
    attrs = site.attrs
    check_type(site, "int8", "int16")
    zero_points = (attrs.zero_point1, attrs.zero_point2, attrs.output_zero_point)
    if site.output.dtype == "int16" and any(zero_points):
        raise DeclinedError(*ZERO_POINTS)
    if not all(-128 <= zero_point <= 127 for zero_point in zero_points):
        raise DeclinedError("a zero point lies beyond int8", "quantise it again")


# Lookup tables of functions.


@offers(Lookup, REQUIRES, rank=100)
def lookup(site: Site[LookupAttrs]) -> Kernel:
    name = "uaccel_lookup_helium"
    return Lookup().kernels(site)[0].by("arm_helium", REQUIRES, function=name, header="uaccel_lookup_helium.h")


# Dot products, and the layers that begin with them.


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Packs up to eight rows: vector by vector, in each the bytes of all rows."""
    vectors = pad_axis(rows, 0, ROWS).reshape(ROWS, -1, VECTOR).transpose(1, 0, 2)
    return np.ascontiguousarray(vectors).reshape(-1).view(np.int32)


offer_dots(Dots("arm_helium", "helium", REQUIRES, VECTOR, _pack, element=1, rank=110))


# Float layers: a vector is four output channels, so that every sum is added up in the portable kernel's order.

FLOAT_REQUIRES: Final = ("helium", "fpu")


def offer_floats(requires: tuple[str, ...], make: Maker, favour: Favour | None, rank: int) -> None:
    """Offers what ``make`` gives for convolutions of floats, and for fully connected layers as such."""
    offered = offers(conv_float.Conv2dFloat, requires, favour=favour, rank=rank)
    offered(lambda site: make(site) if conv_float.is_kernels(site) else None)
    offered = offers(conv_float.FullyConnectedFloat, requires, favour=favour, rank=rank)
    offered(lambda site: make(conv_float.as_pixels(site)) if conv_float.is_kernels(site) else None)


offer_floats(FLOAT_REQUIRES, lambda site: _with_helium(conv_float.wide_kernel(site)), Favour.speed, 100)
offer_floats(FLOAT_REQUIRES, lambda site: _with_helium(conv_float.float_kernel(site)), None, 110)


def _with_helium(kernel: Kernel | None) -> Kernel | None:
    """Returns the same call of the function for Helium."""
    if kernel is None:
        return None
    (call,) = kernel.calls
    name, header = call.function.removesuffix(f"_{conv_float.SINGLE}"), call.header.removesuffix(".h")
    return kernel.by("arm_helium", FLOAT_REQUIRES, function=f"{name}_helium", header=f"{header}_helium.h")
