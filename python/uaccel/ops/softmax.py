"""Softmax along the last axis of 8-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Site, register
from uaccel.ops.exact import const, high_mul, rounding_divide_by_power
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.softmax_steps import (
    SUM_BITS,
    OfRows,
    differences,
    exponential_sums,
    leading_zeros,
    reciprocal_of,
    row_parameters,
    used_part,
)
from uaccel.tvm_api import te


@dataclass(frozen=True)
class SoftmaxAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is beta * input scale in units of 2**-26: what the table was made from."""

    multiplier: int
    shift: int
    output_dtype: str


@register
class Softmax(OfRows[SoftmaxAttrs]):
    """Softmax of int8 along the last axis; the output covers 0..1 with the whole range of int8 or int16.

    ``exponentials[d]`` is exp(-d * beta * input scale) * 2**31 as the reference computes it in fixed point: there
    are only 256 differences to the largest element of a row.
    """

    name = "softmax"

    def meaning(self, inputs: Sequence[Any], attrs: SoftmaxAttrs) -> Any:
        data, table = inputs
        difference = differences(data)
        sums = exponential_sums(difference, table)
        headroom = te.compute(sums.shape, lambda *row: leading_zeros(sums(*row)), name="headroom")
        normal = te.compute(sums.shape, lambda *row: sums(*row) << headroom(*row), name="normal")
        scale = reciprocal_of(normal)
        low, high = exact.limits(attrs.output_dtype)
        bits = 8 * TensorInfo((), attrs.output_dtype).itemsize

        def share(*index: Any) -> Any:
            return high_mul(scale(*index[:-1]), exact.i64(table(difference(*index))))

        shares = te.compute(data.shape, share, name="shares")

        def output(*index: Any) -> Any:
            exponent = const(SUM_BITS + 31 - bits) - headroom(*index[:-1])
            rounded = rounding_divide_by_power(shares(*index), exponent)
            return exact.finish(rounded, low, low, high, attrs.output_dtype)

        return te.compute(data.shape, output, name="softmax")

    def kernels(self, site: Site[SoftmaxAttrs]) -> Sequence[Kernel]:
        """A table instead of fixed-point exponentials at run time.

        It takes at most 1 KB of flash and usually half of it; the code that it replaces takes as much and would
        run a dozen 64-bit multiplications for every element, twice.
        """
        data, table = site.operands[0].info, used_part(site.operands[1].value)
        parameters = row_parameters(data, table)
        function = f"uaccel_softmax_s8_{dtype_suffix(site.output.dtype)}"
        arguments = (Input(0), Constant("exponentials", table), Output(0))
        inplace = (0,) if site.output.dtype == data.dtype else ()
        return [portable(function, "uaccel_softmax", parameters, arguments, inplace=inplace)]
