"""Softmax along the last axis whose real result is rounded once, half to even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.ratio import LONGEST_SHIFT, fixed_ratios, scale_fraction
from uaccel.ops.softmax_steps import OfRows, differences, row_parameters, used_part
from uaccel.tvm_api import te, tirx

ENTRIES = 256
EXPONENTIAL_BITS = 30  # after the point; the largest is one
RECIPROCAL_BITS = 31
INVERSE_BITS = 31


@dataclass(frozen=True)
class SoftmaxOnceAttrs(Attributes):
    """``inverse / 2**shift`` is 1 / output scale."""

    inverse: int
    shift: int
    output_zero_point: int
    output_dtype: str


@register
class SoftmaxOnce(OfRows[SoftmaxOnceAttrs]):
    """Softmax along the last axis; ``exponentials[d]`` is exp(-d * input scale) * 2**30, rounded.

    Of int16 those of 256 * d come first, and behind them those of d.

    The sum of a row is exact. One division a row gives its reciprocal, with 30 bits and more.
    """

    name = "softmax_once"

    def infer(self, inputs: Sequence[TensorInfo], attrs: SoftmaxOnceAttrs) -> TensorInfo:
        data, table = inputs
        if data.dtype != "int16":
            return super().infer(inputs, attrs)
        wanted = TensorInfo((2 * ENTRIES,), "int32")
        require(len(data.shape) > 0 and table == wanted, f"softmax_once: {data} and {table}, wanted rows and {wanted}")
        return TensorInfo(data.shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: SoftmaxOnceAttrs) -> Any:
        data, table = inputs
        exponential = _exponentials(differences(data), table, wide=str(data.dtype) == "int16")
        k = te.reduce_axis((0, int(data.shape[-1])), name="k")
        rows = data.shape[:-1]
        sums = te.compute(rows, lambda *row: te.sum(exponential(*row, k), axis=k), name="sums")
        excess = te.compute(rows, lambda *row: _excess(sums(*row)), name="excess")

        def reciprocal(*row: Any) -> Any:
            return tirx.truncdiv(const(attrs.inverse << RECIPROCAL_BITS), sums(*row) >> excess(*row))

        reciprocals = te.compute(rows, reciprocal, name="reciprocals")
        low, high = exact.limits(attrs.output_dtype)

        def output(*index: Any) -> Any:
            shift = const(RECIPROCAL_BITS + attrs.shift) + excess(*index[:-1])
            share = exponential(*index) * reciprocals(*index[:-1])
            shortest = tirx.min(shift, const(LONGEST_SHIFT))
            rounded = tirx.Select(shift > shortest, const(0), exact.round_half_even(share, shortest))
            return exact.finish(rounded, attrs.output_zero_point, low, high, attrs.output_dtype)

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[SoftmaxOnceAttrs]) -> Sequence[Kernel]:
        attrs, data, table = site.attrs, site.operands[0].info, site.operands[1].value
        table = used_part(table) if data.dtype == "int8" else table
        parameters = {
            **row_parameters(data, table),
            "inverse": attrs.inverse,
            "shift": RECIPROCAL_BITS + attrs.shift,
            "output_zero_point": attrs.output_zero_point,
        }
        function = f"uaccel_softmax_once_{dtype_suffix(data.dtype)}_{dtype_suffix(site.output.dtype)}"
        arguments = (Input(0), Constant("exponentials", table), Output(0))
        inplace = (0,) if site.output.dtype == data.dtype else ()
        return [portable(function, "uaccel_softmax_once", parameters, arguments, inplace=inplace)]


def _exponentials(difference: Any, table: Any, *, wide: bool) -> Any:
    def element(*index: Any) -> Any:
        distance = difference(*index)
        if not wide:
            return exact.i64(table(distance))
        upper, lower = table(distance >> 8), table(ENTRIES + (distance & 255))
        return (exact.i64(upper) * exact.i64(lower) + const(1 << (EXPONENTIAL_BITS - 1))) >> const(EXPONENTIAL_BITS)

    return te.compute(difference.shape, element, name="exponentials")


def _excess(total: Any) -> Any:
    """By how many bits a sum is longer than 31; the largest exponential alone has that many."""
    longer = (tirx.Select(total >= const(1 << bits), const(1), const(0)) for bits in range(31, LONGEST_SHIFT))
    return sum(longer, start=const(0))


def softmax_once_operands(
    given: Quantisation, wanted: Quantisation, output_dtype: str = "int8", input_dtype: str = "int8"
) -> tuple[SoftmaxOnceAttrs, NDArray[np.int32]]:
    """Attributes and the table of exponentials."""
    inverse = fixed_ratios([Fraction(1) / scale_fraction(wanted.scale)], INVERSE_BITS)
    places = np.arange(ENTRIES)
    places = places if input_dtype == "int8" else np.concatenate([places * ENTRIES, places])
    differences = places * float(scale_fraction(given.scale))
    table = np.rint(np.exp(-differences) * (1 << EXPONENTIAL_BITS)).astype(np.int32)
    return SoftmaxOnceAttrs(inverse.multipliers[0], inverse.shift, wanted.zero_point, output_dtype), table
