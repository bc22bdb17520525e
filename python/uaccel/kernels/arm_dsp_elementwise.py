"""Offers addition, subtraction, multiplication and dot products for Arm's DSP extension."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.arm_dsp_conv import REQUIRES, WORD, arm_dsp
from uaccel.kernels.arm_dsp_conv import fully_connected as rows_of_units
from uaccel.kernels.arm_helium_elementwise import Sum, check_factors, offer_sums
from uaccel.kernels.dot_products import ROWS, Dots, check_product, offer_dots
from uaccel.kernels.output_stage import LARGEST_SHIFT, pad_axis
from uaccel.kernels.registry import DeclinedError, check_type, made, offers
from uaccel.kernels.weight_packing import IN_HALVES, concat_words, pack_int16_pairs
from uaccel.ops.binary import AddAttrs, Mul, MulAttrs, Sub
from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier
from uaccel.ops.kernel import Kernel, KernelCall, Output, ParameterValue, Scratch, dtype_suffix, same
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, FullyConnected, FullyConnectedAttrs, matrix
from uaccel.ops.operator import Site, get, operand_arguments
from uaccel.util.favour import Favour

# Addition and subtraction as TFLite rounds them: both inputs on a common scale, then their sum on the output's.

LOOPS: Final = ("extents", "strides1", "strides2")
HALF: Final = 1 << 30  # The multiplier that stands for one half.
# An input less its zero point is below 2**8 from zero: raised by 20 bits and doubled, below 2**29; so a sum fits.
LARGEST_RAISE: Final = 20


def sum_kernel(family: str, requires: tuple[str, ...], operator: Sum, site: Site[AddAttrs]) -> Kernel | None:
    """Makes the kernel of ``family`` that adds or subtracts; declines where it would not be exact.

    The DSP extension's has loops for inputs that broadcast, and doubles inputs on the common scale. The RISC-V one
    takes inputs of one shape."""
    arm = family == "arm_dsp"
    portable = get(operator).kernels(site)[0]
    same_shape = all(operand.info.elements == site.output.elements for operand in site.operands)
    subtract = int(operator is Sub)
    if not arm and not same_shape:
        raise DeclinedError("its inputs have different shapes", "give them one shape")
    call = _call(site, family.removeprefix("arm_"), subtract, doubled=arm)
    given = portable.calls[0].parameters
    loops = {field: given[field] for field in LOOPS} if arm else {"elements": site.output.elements}
    own = replace(call, parameters={**loops, **call.parameters})
    return replace(portable, family=family, calls=(own,), requires=requires)


offer_sums(REQUIRES, partial(sum_kernel, "arm_dsp", REQUIRES), 200, 200)


def _call(site: Site[AddAttrs], family: str, subtract: int, *, doubled: bool) -> KernelCall:
    """Makes the call of ``uaccel_add_<family>_s8``, but for its loops; declines where it would not be exact."""
    attrs = site.attrs
    shifts = (attrs.shift1, attrs.shift2, attrs.output_shift)
    exact = (
        all(-LARGEST_SHIFT <= shift <= 0 for shift in shifts)
        and attrs.output_shift < 0
        and 1 <= attrs.left_shift <= LARGEST_RAISE
    )
    check_type(site, "int8")
    if not exact:
        raise DeclinedError(
            "the scales of its inputs and its output lie too far apart", "quantise them with closer scales"
        )
    shift = -attrs.output_shift
    parameters: dict[str, ParameterValue] = {
        **_side("first", attrs.left_shift + doubled, attrs.zero_point1, attrs.multiplier1, attrs.shift1),
        **_side("second", attrs.left_shift + doubled, attrs.zero_point2, attrs.multiplier2, attrs.shift2),
        "multiplier": attrs.output_multiplier,
        "offset": (1 << shift - 1) + (attrs.output_zero_point << shift),
        "shift": shift,
        **same(attrs, "clamp_min", "clamp_max"),
        "subtract": subtract,
    }
    arguments = operand_arguments(site.operands, ("first", "second"))
    name = f"uaccel_add_{family}"
    header = f"uaccel_{'add' if family == 'rvv' else 'binary'}_{family}.h"
    return KernelCall(f"{name}_s8", header, name, parameters, (*arguments, Output(0)))


def _side(name: str, raise_by: int, zero_point: int, multiplier: int, shift: int) -> dict[str, int]:
    """Returns the fields of ``struct uaccel_add_dsp_side`` and its like. A multiplier of one half needs no product: the
    value is raised by one bit less."""
    halved = multiplier == HALF and shift == 0
    raise_by -= halved
    return {
        f"{name}.shift": raise_by,
        f"{name}.offset": -(zero_point << raise_by),
        f"{name}.multiplier": 0 if halved else multiplier,
        f"{name}.exponent": -shift,
    }


# Addition and subtraction as one linear form, rounded once: (start + x * first + y * second) >> 21, saturated.
#
# TFLite rounds three times, so the results of a linear form differ from it for some pairs, unless ``start`` makes up
# for it. `linear_form` tries all 256 * 256 pairs: each that does not saturate bounds ``start`` from below and above.
# Any number that meets all bounds makes the form exact; the middle is taken. A factor of 2**21 leaves ten bits before
# the point. SMLAW multiplies by 16 bits, in which a byte stands times 256, and drops the product's low 16 bits: that is
# value * weight >> 8, so weights may be finer by 8 bits.

FRACTION: Final = 21  # Bits of a sum behind the point.
FINER: Final = 8  # Bits that weights have behind those.
BOUND: Final = 1 << 31  # Weights and sums fit 32 bits.
VALUES: Final = np.arange(-128, 128)


def _kernel(operator: Sum, site: Site[AddAttrs]) -> Kernel | None:
    shapes = {operand.info.shape for operand in site.operands} | {site.output.shape}
    form = linear_form(site.attrs, operator.sign) if site.output.dtype == "int8" and len(shapes) == 1 else None
    if form is None:
        return None
    first, second, start = form
    parameters = {"first": first, "second": second, "start": start, "elements": site.output.elements}
    arguments = (*operand_arguments(site.operands, ("first", "second")), Output(0))
    name = "uaccel_add_linear_dsp"
    return arm_dsp(f"{name}_s8", name, parameters, arguments, inplace=get(operator).kernels(site)[0].inplace)


offer_sums(REQUIRES, _kernel, 210, 210)


@lru_cache(maxsize=64)
def linear_form(attrs: AddAttrs, sign: int) -> tuple[int, int, int] | None:
    """Returns both weights and the start; None where no start gives every result. A result that saturates bounds
    ``start`` on one side alone: anything beyond gives it, too. The initial bounds keep every sum within 32 bits."""
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
    """Returns how many steps of the output a step of each input is."""
    output = attrs.output_multiplier * 2.0 ** (attrs.output_shift - 31 + attrs.left_shift)
    first = attrs.multiplier1 * 2.0 ** (attrs.shift1 - 31)
    return first * output, sign * attrs.multiplier2 * 2.0 ** (attrs.shift2 - 31) * output


def _results(attrs: AddAttrs, sign: int) -> NDArray[np.int64]:
    """Returns the operator's exact results for all pairs of values."""

    def rescaled(zero_point: int, multiplier: int, shift: int) -> NDArray[Any]:
        return multiply_by_quantized_multiplier((VALUES - zero_point) << attrs.left_shift, multiplier, shift)

    first = rescaled(attrs.zero_point1, attrs.multiplier1, attrs.shift1)
    second = rescaled(attrs.zero_point2, attrs.multiplier2, attrs.shift2)
    total = first[:, np.newaxis] + sign * second
    scaled = multiply_by_quantized_multiplier(total, attrs.output_multiplier, attrs.output_shift)
    return np.clip(scaled + attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max)


# Multiplication.

# The product of -2**15 by itself. Doubled it does not fit 32 bits: QADD saturates it to 2**31 - 1, one less.
LARGEST_PRODUCT: Final = 1 << 30


@offers(Mul, REQUIRES, rank=200)
def mul(site: Site[MulAttrs]) -> Kernel | None:
    """Multiplies four elements at a time, of inputs that broadcast."""
    attrs, shift = site.attrs, -site.attrs.shift
    check_factors(site)
    if not 1 <= shift <= LARGEST_SHIFT or _largest_shows(attrs):
        raise DeclinedError(
            "the scales of its factors and its output lie too far apart", "quantise them with closer scales"
        )
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
    function = f"{name}_{dtype_suffix(site.output.dtype)}"
    return portable.by("arm_dsp", REQUIRES, function=function, struct=name, parameters=parameters)


def _largest_shows(attrs: MulAttrs) -> bool:
    """Says whether saturating the double of ``LARGEST_PRODUCT`` would change its result, after rounding and clamp."""
    right = multiply_by_quantized_multiplier(LARGEST_PRODUCT, attrs.multiplier, attrs.shift)
    doubled = np.int64((1 << 31) - 1) * attrs.multiplier + (1 << 31) >> 32
    saturated = (doubled + (1 << -attrs.shift - 1)) >> -attrs.shift
    return bool(np.minimum(right, attrs.clamp_max) != np.minimum(saturated, attrs.clamp_max))


# Dot products, and the layers that begin with them. The second family below packs all rows in pairs: it has less code,
# which is worth it where a fully connected layer has few units.


APART: Final = 512  # UACCEL_DOTS_APART


def _pack(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Packs eight rows, or four; the others are a pair, rows by themselves, or a pair beside a row by itself."""
    count, depth = rows.shape
    if count == 1:
        return _apart(rows)
    if count == 2 and depth >= APART:
        return _side_by_side(_apart(rows[:1]), _apart(rows[1:]))
    if count == 3:
        return _side_by_side(_pack_pairs(rows[:2]), _apart(rows[2:]))
    block = ROWS if count == ROWS else 4 if count > 4 else count
    words = pack_int16_pairs(rows[:block], np.zeros(block, np.int64), block)
    others = _pack(rows[block:]) if count > block else np.zeros(0, np.int32)
    return np.append(concat_words(words), others)


def _apart(row: NDArray[np.int8]) -> NDArray[np.int32]:
    """Packs a row by itself: for each four inputs a word of number 0 and 2, and one of 1 and 3."""
    return row.reshape(-1, 4)[:, IN_HALVES].astype("<i2").reshape(-1).view(np.int32)


def _side_by_side(*words: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.stack(words, axis=1).reshape(-1)


def _pack_pairs(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    filled = pad_axis(rows, 0, 2)
    return concat_words(pack_int16_pairs(filled, np.zeros(len(filled), np.int64), 2)).reshape(-1)


def _pack_deep(rows: NDArray[np.int8]) -> NDArray[np.int32]:
    """Packs ``PART`` inputs of all rows after the other, whose sums fit whatever the weights are; one or two rows
    behind fours have all of their inputs together."""
    rest = len(rows) % 4
    others = len(rows) - (rest if rest < 3 and rows.shape[1] >= APART else 0)
    parts = [rows[:others, first : first + PART] for first in range(0, rows.shape[1], PART)]
    return np.concatenate([_pack(part) for part in (*parts, rows[others:]) if len(part)])


PART: Final = 512  # UACCEL_DOTS_PART
_PAIRS: Final = Dots("arm_dsp", "pairs", REQUIRES, 4, _pack_pairs, element=2, rank=230)


def _better(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    """Makes the kernel of deep rows that would be copied, as they begin amid words; and of two units that are a pair
    in either family, the one with less code."""
    units, depth = site.operands[1].value.shape
    if _PAIRS.filled(depth) < APART:
        return _PAIRS.fully_connected(site) if units == 2 else None
    return rows_of_units(site) if site.operands[0].info.shape[0] > 1 and depth % WORD else None


def _in_eights(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    return made(_better, site) or _DOTS.fully_connected(site)


_DOTS: Final = Dots("arm_dsp", "dsp", REQUIRES, 4, _pack, element=2, rank=220, better=_better)
_DEEP: Final = Dots("arm_dsp", "dsp_deep", REQUIRES, 4, _pack_deep, element=2, rank=225, better=_in_eights)
offer_dots(_DOTS)
offers(FullyConnected, REQUIRES, rank=_DEEP.rank)(_DEEP.fully_connected)


@offers(FullyConnected, REQUIRES, rank=_PAIRS.rank)
def in_pairs(site: Site[FullyConnectedAttrs], least: bool = False) -> Kernel | None:
    """Makes the kernel of pairs; two units of many inputs are a pair only where ``least`` flash is wanted."""
    units, depth = site.operands[1].value.shape
    return _PAIRS.fully_connected(site) if least or units != 2 or _PAIRS.filled(depth) < APART else None


@offers(FullyConnected, REQUIRES, favour=Favour.size, rank=_PAIRS.rank + 1)
def two_in_pairs(site: Site[FullyConnectedAttrs]) -> Kernel | None:
    return None if in_pairs(site) else in_pairs(site, least=True)


FEW_ROWS: Final = 7  # For more rows the right side is packed: that takes as long as so many.


@offers(BatchMatmul, REQUIRES, rank=215)
def few_rows(site: Site[BatchMatmulAttrs]) -> Kernel | None:
    """Reads the right side where it lies, once for each row of the left side."""
    rows, depth = matrix(site.operands[0].info.shape, site.attrs.adj_x)
    if rows > FEW_ROWS:
        return None
    check_product(site)
    (portable,) = BatchMatmul().kernels(site)
    name, arguments = "uaccel_batch_matmul_rows_dsp", (*portable.calls[0].arguments, Scratch())
    scratch = 2 * depth
    return portable.by("arm_dsp", REQUIRES, scratch, function=f"{name}_s8", header=f"{name}.h", arguments=arguments)
