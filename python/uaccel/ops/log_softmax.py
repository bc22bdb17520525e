"""Logarithm of softmax along the last axis of 8-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.ops import exact
from uaccel.ops.base import Attributes, Site, register
from uaccel.ops.exact import const, high_mul, rounding_divide_by_power
from uaccel.ops.kernel import Constant, Input, Kernel, Output, portable, same
from uaccel.ops.softmax_steps import (
    SUM_BITS,
    OfRows,
    differences,
    exponential_sums,
    leading_zeros,
    reciprocal_of,
    row_parameters,
    shift_left,
    used_part,
)
from uaccel.ops.softmax_tables import DIFF_BITS, input_radius
from uaccel.tvm_api import te, tirx

LN_2 = 1488522236  # * 2**31, as are the next five
ROOT_HALF = 1518500250
CENTRE = 1805811301  # 2**-0.25, in the middle of the interval that the series serves
NUMERATOR, DENOMINATOR = 117049297, 127690142
CONSTANT, LINEAR = 1057819769, 638450708


@dataclass(frozen=True)
class LogSoftmaxAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is the input scale in units of 2**-26."""

    multiplier: int
    shift: int


@register
class LogSoftmax(OfRows[LogSoftmaxAttrs]):
    """ln(softmax) of int8; the output's -128..127 stand for about -16..0. The table is softmax's."""

    name = "log_softmax"

    def meaning(self, inputs: Sequence[Any], attrs: LogSoftmaxAttrs) -> Any:
        data, table = inputs
        difference = differences(data)
        logarithm = _logarithm(exponential_sums(difference, table))

        def output(*index: Any) -> Any:
            distance = exact.i64(difference(*index))
            scaled = high_mul(-(distance << const(attrs.shift)), const(attrs.multiplier))
            rounded = rounding_divide_by_power(scaled - logarithm(*index[:-1]), const(22))
            inside = distance <= const(input_radius(attrs.shift))
            return tirx.Select(inside, exact.clamp(rounded + const(127), -128, 127), const(-128)).astype("int8")

        return te.compute(data.shape, output, name="log_softmax")

    def kernels(self, site: Site[LogSoftmaxAttrs]) -> Sequence[Kernel]:
        attrs, data, table = site.attrs, site.operands[0].info, used_part(site.operands[1].value)
        parameters = {
            **row_parameters(data, table),
            "radius": _radius(attrs),
            **same(attrs, "multiplier", "shift"),
        }
        arguments = (Input(0), Constant("exponentials", table), Output(0))
        return [portable("uaccel_log_softmax_s8", "uaccel_log_softmax", parameters, arguments, inplace=(0,))]


def _radius(attrs: LogSoftmaxAttrs) -> int:
    """The largest distance below 16: the outputs of larger ones are the lowest, and their difference may overflow."""
    return max(d for d in range(256) if (d << attrs.shift) * attrs.multiplier >> 31 < 16 << DIFF_BITS)


def _logarithm(sums: Any) -> Any:
    """ln(x) for sums x of 1 and more, 19 bits after the point; 26 bits after the point.

    x = r * 2**z with r near 2**-0.25; ln(r) is a fraction of two polynomials in r - 2**-0.25.
    """
    shape = sums.shape
    zeros = te.compute(shape, lambda *row: leading_zeros(sums(*row)), name="zeros")

    root = te.compute(shape, lambda *row: high_mul(sums(*row), const(ROOT_HALF)), name="root")
    root_zeros = te.compute(shape, lambda *row: leading_zeros(root(*row)), name="root_zeros")

    def mantissa(*row: Any) -> Any:
        down = high_mul(sums(*row) << (zeros(*row) - const(1)), const(ROOT_HALF))
        up = sums(*row) << (root_zeros(*row) - const(1))
        return tirx.min(shift_left(down, 1), up)

    def exponent(*row: Any) -> Any:
        down = ((const(SUM_BITS) - zeros(*row)) << const(25)) + const(1 << 23)
        up = ((const(SUM_BITS + 1) - root_zeros(*row)) << const(25)) - const(1 << 23)
        return tirx.max(down, up)

    r = te.compute(shape, mantissa, name="mantissa")
    q = te.compute(shape, lambda *row: (r(*row) - const(CENTRE)) << const(1), name="offset")
    square = te.compute(shape, lambda *row: high_mul(q(*row), q(*row)), name="square")

    def denominator(*row: Any) -> Any:
        middle = (r(*row) + const(CENTRE + 1)) >> const(1)
        factor = const(CONSTANT) + q(*row) + high_mul(square(*row), const(DENOMINATOR))
        return high_mul(middle, factor) + high_mul(q(*row), const(LINEAR)) + const(1 << 31)

    def numerator(*row: Any) -> Any:
        cubic = high_mul(high_mul(q(*row), square(*row)), const(NUMERATOR))
        return high_mul(q(*row), r(*row)) + cubic

    top = te.compute(shape, numerator, name="numerator")
    inverse = reciprocal_of(te.compute(shape, denominator, name="denominator"))

    def logarithm(*row: Any) -> Any:
        fraction = high_mul(rounding_divide_by_power(top(*row), const(6)), inverse(*row))
        return shift_left(high_mul(exponent(*row), const(LN_2)) + fraction, 1)

    return te.compute(shape, logarithm, name="logarithm")
