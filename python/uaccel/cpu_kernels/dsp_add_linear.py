"""Addition and subtraction with Arm's DSP extension, rounded once, where all pairs of values show that it is exact."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.dsp_add import LARGEST_RAISE, REQUIRES
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.add import Add, AddAttrs, Sub
from uaccel.ops.base import Site, get, operand_arguments
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier
from uaccel.ops.kernel import Kernel, KernelCall, Output

FRACTION: Final = 21
"""Bits of a sum behind the point."""
FINER: Final = 8
"""Bits that the weights have besides."""
BOUND: Final = 1 << 31
"""Of weights and of sums."""
VALUES: Final = np.arange(-128, 128)


@offers(Add, REQUIRES, rank=210)
def add(site: Site[AddAttrs]) -> Kernel | None:
    return _kernel(site, 1)


@offers(Sub, REQUIRES, rank=210)
def subtract(site: Site[AddAttrs]) -> Kernel | None:
    return _kernel(site, -1)


def _kernel(site: Site[AddAttrs], sign: int) -> Kernel | None:
    shapes = {operand.info.shape for operand in site.operands} | {site.output.shape}
    form = linear_form(site.attrs, sign) if site.output.dtype == "int8" and len(shapes) == 1 else None
    if form is None:
        return None
    first, second, start = form
    parameters = {"first": first, "second": second, "start": start, "elements": site.output.elements}
    arguments = (*operand_arguments(site.operands, ("first", "second")), Output(0))
    name = "uaccel_add_linear_dsp"
    call = KernelCall(f"{name}_s8", f"{name}.h", name, parameters, arguments)
    portable = get(Sub if sign < 0 else Add).kernels(site)[0]
    return Kernel("arm_dsp", (call,), inplace=portable.inplace, requires=REQUIRES)


@lru_cache(maxsize=64)
def linear_form(attrs: AddAttrs, sign: int) -> tuple[int, int, int] | None:
    """Both weights and the start; None where no start gives every result."""
    weights = [round(weight * 2 ** (FRACTION + FINER)) for weight in _real_weights(attrs, sign)]
    raised = max(attrs.shift1, attrs.shift2, attrs.output_shift) > 0 or attrs.left_shift > LARGEST_RAISE
    if raised or (attrs.clamp_min, attrs.clamp_max) != (-128, 127) or max(map(abs, weights)) >= BOUND:
        return None
    first, second = (weight * VALUES >> FINER for weight in weights)
    sums, wanted = first[:, np.newaxis] + second, _results(attrs, sign)
    least, most = wanted << FRACTION, (wanted + 1 << FRACTION) - 1
    low = int((least - sums)[wanted > -128].max(initial=-BOUND - int(sums.min())))
    high = int((most - sums)[wanted < 127].min(initial=BOUND - 1 - int(sums.max())))
    start = (low + high) // 2
    fits = min(start, start + int(sums.min())) >= -BOUND and max(start, start + int(sums.max())) < BOUND
    return (weights[0], weights[1], start) if low <= high and fits else None


def _real_weights(attrs: AddAttrs, sign: int) -> tuple[float, float]:
    """Of each input in the output's steps."""
    output = attrs.output_multiplier * 2.0 ** (attrs.output_shift - 31 + attrs.left_shift)
    first = attrs.multiplier1 * 2.0 ** (attrs.shift1 - 31)
    return first * output, sign * attrs.multiplier2 * 2.0 ** (attrs.shift2 - 31) * output


def _results(attrs: AddAttrs, sign: int) -> NDArray[np.int64]:
    """Of all pairs, as the operator means them."""

    def rescaled(zero_point: int, multiplier: int, shift: int) -> NDArray[Any]:
        return multiply_by_quantized_multiplier((VALUES - zero_point) << attrs.left_shift, multiplier, shift)

    first = rescaled(attrs.zero_point1, attrs.multiplier1, attrs.shift1)
    second = rescaled(attrs.zero_point2, attrs.multiplier2, attrs.shift2)
    total = first[:, np.newaxis] + sign * second
    scaled = multiply_by_quantized_multiplier(total, attrs.output_multiplier, attrs.output_shift)
    return np.clip(scaled + attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max)
