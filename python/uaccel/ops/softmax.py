"""Softmax along the last axis of 8-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const, high_mul, rounding_divide_by_power
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable
from uaccel.tvm_api import te, tirx

SUM_BITS = 12  # integer bits of the sum of exponentials


@dataclass(frozen=True)
class SoftmaxAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is beta * input scale in units of 2**-26: what the table was made from."""

    multiplier: int
    shift: int
    output_dtype: str


@register
class Softmax(IntegerOperator[SoftmaxAttrs]):
    """Softmax of int8 along the last axis; the output covers 0..1 with the whole range of int8 or int16.

    ``exponentials[d]`` is exp(-d * beta * input scale) * 2**31 as the reference computes it in fixed point: there
    are only 256 differences to the largest element of a row.
    """

    name = "softmax"
    attributes = SoftmaxAttrs
    arguments = ("input", "exponentials")

    def infer(self, inputs: Sequence[TensorInfo], attrs: SoftmaxAttrs) -> TensorInfo:
        data, table = inputs
        require(len(data.shape) > 0, "softmax: the input is a scalar")
        require(data.dtype == "int8", f"softmax: input is {data.dtype}, wanted int8")
        require(table == TensorInfo((256,), "int32"), f"softmax: the table is {table}, wanted int32 [256]")
        return TensorInfo(data.shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: SoftmaxAttrs) -> Any:
        data, table = inputs
        difference = differences(data)
        k = te.reduce_axis((0, int(data.shape[-1])), name="k")

        def exponential(*index: Any) -> Any:
            return exact.i64(table(difference(*index)))

        def total(*row: Any) -> Any:
            return te.sum(rounding_divide_by_power(exponential(*row, k), const(SUM_BITS)), axis=k)

        sums = te.compute(data.shape[:-1], total, name="sums")
        headroom = te.compute(data.shape[:-1], lambda *row: leading_zeros(sums(*row)), name="headroom")
        scale = _reciprocal(sums, headroom)
        low, high = exact.limits(attrs.output_dtype)
        bits = 8 * TensorInfo((), attrs.output_dtype).itemsize

        def share(*index: Any) -> Any:
            return high_mul(scale(*index[:-1]), exponential(*index))

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
        data, table = site.operands[0].info, site.operands[1].value
        table = table[: 1 + np.flatnonzero(table)[-1]]
        depth = data.shape[-1]
        parameters = {"rows": data.elements // depth, "depth": depth, "entries": len(table)}
        function = f"uaccel_softmax_s8_{dtype_suffix(site.output.dtype)}"
        arguments = (Input(0), Constant("exponentials", table), Output(0))
        inplace = (0,) if site.output.dtype == data.dtype else ()
        header = "uaccel_softmax.h"
        return [portable(function, header, parameters, arguments, struct="uaccel_softmax", inplace=inplace)]


def differences(data: Any) -> Any:
    """How far each element lies below the largest of its row, as int32."""
    k = te.reduce_axis((0, int(data.shape[-1])), name="k")
    largest = te.compute(data.shape[:-1], lambda *row: te.max(exact.i32(data(*row, k)), axis=k), name="largest")
    return te.compute(data.shape, lambda *index: largest(*index[:-1]) - exact.i32(data(*index)), name="differences")


def leading_zeros(value: Any) -> Any:
    """Of a 32-bit number held in 64 bits."""
    return sum(
        (tirx.Select(value < const(1 << bit), const(1), const(0)) for bit in range(1, 32)),
        start=tirx.Select(value < const(1), const(1), const(0)),
    )


def _stage(name: str, shape: Any, element: Any) -> Any:
    """A step that later ones read several times; without it the expression would be copied into each use."""
    return te.compute(shape, element, name=name)


def _reciprocal(sums: Any, headroom: Any) -> Any:
    """2**62 / sum, with the sum's leading one shifted to the sign: three steps of Newton's division."""

    def half_denominator(*row: Any) -> Any:
        minus_one = (sums(*row) << headroom(*row)) - const(1 << 31)
        return (minus_one + const(1 << 31)) >> const(1)

    half = _stage("half_denominator", sums.shape, half_denominator)
    estimate = _stage("estimate", sums.shape, lambda *row: const(1515870810) + high_mul(half(*row), const(-1010580540)))
    for step in range(3):
        estimate = _newton_step(half, estimate, step)
    return _stage(
        "reciprocal", sums.shape, lambda *row: exact.clamp(estimate(*row) << const(1), -(1 << 31), (1 << 31) - 1)
    )


def _newton_step(half: Any, estimate: Any, step: int) -> Any:
    def element(*row: Any) -> Any:
        error = const(1 << 29) - high_mul(half(*row), estimate(*row))
        correction = high_mul(estimate(*row), error) << const(2)
        return estimate(*row) + exact.clamp(correction, -(1 << 31), (1 << 31) - 1)

    return _stage(f"newton_{step}", half.shape, element)
