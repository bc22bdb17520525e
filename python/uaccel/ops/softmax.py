"""Softmax along the last axis of 8-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const, high_mul, rounding_divide_by_power
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable
from uaccel.ops.softmax_tables import (
    BIT_EXPONENTS,
    BIT_FACTORS,
    DIFF_BITS,
    EIGHTH,
    THIRD,
    exponentials,
    input_radius,
)
from uaccel.tvm_api import te, tirx

SUM_BITS = 12  # integer bits of the sum of exponentials


@dataclass(frozen=True)
class SoftmaxAttrs(Attributes):
    """``multiplier * 2**(shift - 31)`` is beta * input scale in units of 2**-26."""

    multiplier: int
    shift: int
    output_dtype: str


@register
class Softmax(IntegerOperator[SoftmaxAttrs]):
    """Softmax of int8 along the last axis; the output covers 0..1 with the whole range of int8 or int16."""

    name = "softmax"
    attributes = SoftmaxAttrs
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: SoftmaxAttrs) -> TensorInfo:
        (data,) = inputs
        require(len(data.shape) > 0, "softmax: the input is a scalar")
        require(data.dtype == "int8", f"softmax: input is {data.dtype}, wanted int8")
        return TensorInfo(data.shape, attrs.output_dtype)

    def meaning(self, inputs: Sequence[Any], attrs: SoftmaxAttrs) -> Any:
        (data,) = inputs
        table = _exponential_table(attrs)
        difference = differences(data)
        k = te.reduce_axis((0, int(data.shape[-1])), name="k")

        def exponential(*index: Any) -> Any:
            return table(difference(*index))

        def total(*row: Any) -> Any:
            return te.sum(rounding_divide_by_power(exponential(*row, k), const(SUM_BITS)), axis=k)

        sums = te.compute(data.shape[:-1], total, name="sums")
        headroom = te.compute(data.shape[:-1], lambda *row: leading_zeros(sums(*row)), name="headroom")
        scale = _reciprocal(sums, headroom)
        low, high = exact.limits(attrs.output_dtype)
        bits = 8 * TensorInfo((), attrs.output_dtype).itemsize

        def output(*index: Any) -> Any:
            exponent = const(SUM_BITS + 31 - bits) - headroom(*index[:-1])
            share = high_mul(scale(*index[:-1]), exponential(*index))
            return exact.finish(rounding_divide_by_power(share, exponent), low, low, high, attrs.output_dtype)

        return te.compute(data.shape, output, name="softmax")

    def kernels(self, site: Site[SoftmaxAttrs]) -> Sequence[Kernel]:
        """A table instead of fixed-point exponentials at run time.

        It takes at most 1 KB of flash and usually half of it; the code that it replaces takes as much and would
        run a dozen 64-bit multiplications for every element, twice.
        """
        data = site.operands[0].info
        table = exponentials(site.attrs.multiplier, site.attrs.shift)
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


def _exponential_table(attrs: SoftmaxAttrs) -> Any:
    """exp(-d) * 2**31 for the differences d = 0..255."""
    quarter = 1 << (DIFF_BITS - 2)
    shape = (256,)
    shift = const(attrs.shift)

    def scaled_difference(d: Any) -> Any:
        inside = exact.i64(d) <= const(input_radius(attrs.shift))
        return tirx.Select(inside, high_mul(-(exact.i64(d) << shift), const(attrs.multiplier)), const(0))

    scaled = _stage("scaled", shape, scaled_difference)
    rest = _stage("rest", shape, lambda d: (scaled(d) & const(quarter - 1)) - const(quarter))
    x = _stage("x", shape, lambda d: (rest(d) << const(31 - DIFF_BITS)) + const(1 << 28))
    x2 = _stage("x2", shape, lambda d: high_mul(x(d), x(d)))

    def series(d: Any) -> Any:
        fourth = rounding_divide_by_power(high_mul(x2(d), x2(d)), const(2))
        thirds = high_mul(fourth + high_mul(x2(d), x(d)), const(THIRD))
        return x(d) + rounding_divide_by_power(thirds + x2(d), const(1))

    terms = _stage("series", shape, series)
    result = _stage("exp_quarter", shape, lambda d: const(EIGHTH) + high_mul(const(EIGHTH), terms(d)))
    for exponent, factor in zip(BIT_EXPONENTS, BIT_FACTORS, strict=True):
        result = _times_factor(result, scaled, rest, DIFF_BITS + exponent, factor)

    def whole(d: Any) -> Any:
        inside = exact.i64(d) <= const(input_radius(attrs.shift))
        value = tirx.Select(scaled(d) == const(0), const((1 << 31) - 1), result(d))
        return tirx.Select(inside, value, const(0))

    return _stage("exponentials", shape, whole)


def _times_factor(result: Any, scaled: Any, rest: Any, bit: int, factor: int) -> Any:
    """The result times the factor where that bit of the difference is set."""

    def element(d: Any) -> Any:
        is_set = ((rest(d) - scaled(d)) & const(1 << bit)) != const(0)
        return tirx.Select(is_set, high_mul(result(d), const(factor)), result(d))

    return _stage(f"exp_bit_{bit}", result.shape, element)


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
