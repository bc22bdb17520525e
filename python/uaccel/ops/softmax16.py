"""Softmax along the last axis of 16-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Constant, Input, Kernel, Output, portable, same
from uaccel.ops.softmax_steps import differences, leading_zeros
from uaccel.tvm_api import te


@dataclass(frozen=True)
class Softmax16Attrs(Attributes):
    """``multiplier * 2**(shift - 31)`` turns input differences into steps of the exponential's table."""

    multiplier: int
    shift: int


def interpolated(table: Any, value: Any) -> Any:
    """A table of 513 points read at a 16-bit value: 9 bits choose the segment, 7 the place in it."""
    index = const(256, "int32") + (value >> const(7, "int32"))
    base = exact.i32(table(index))
    slope = exact.i32(table(index + const(1, "int32"))) - base
    place = value & const(127, "int32")
    return base + ((slope * place + const(64, "int32")) >> const(7, "int32"))


@register
class Softmax16(IntegerOperator[Softmax16Attrs]):
    """Softmax of int16 along the last axis; 0..32767 stands for 0..1. Both tables hold 513 points."""

    name = "softmax16"
    hides_differences = True
    arguments = ("input", "exponential", "reciprocal")

    def infer(self, inputs: Sequence[TensorInfo], attrs: Softmax16Attrs) -> TensorInfo:
        data, *tables = inputs
        require(len(data.shape) > 0, "softmax16: the input is a scalar")
        require(data.dtype == "int16", f"softmax16: input is {data.dtype}, wanted int16")
        for table in tables:
            require(table == TensorInfo((513,), "int16"), f"softmax16: a table is {table}, wanted int16 [513]")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: Softmax16Attrs) -> Any:
        data, exponential_table, reciprocal_table = inputs
        difference = differences(data)

        def exponential(*index: Any) -> Any:
            scaled = exact.requantize_const(-difference(*index), attrs.multiplier, attrs.shift)
            centred = exact.clamp(scaled + const(32767), -32768, 32767)
            return interpolated(exponential_table, exact.i32(centred))

        rows = data.shape[:-1]
        k = te.reduce_axis((0, int(data.shape[-1])), name="k")
        exponentials = te.compute(data.shape, exponential, name="exponentials")
        sums = te.compute(rows, lambda *row: te.sum(exact.i64(exponentials(*row, k)), axis=k), name="sums")
        headroom = te.compute(rows, lambda *row: leading_zeros(sums(*row)), name="headroom")

        def reciprocal(*row: Any) -> Any:
            """1 / (1 + x) for the x in 0..1 that the sum's bits below its leading one make."""
            fraction = ((sums(*row) << (headroom(*row) - const(1))) + const(1 << 13)) >> const(14)
            centred = exact.clamp(fraction - const((1 << 15) + (1 << 16)), -32768, 32767)
            return exact.i64(interpolated(reciprocal_table, exact.i32(centred)))

        reciprocals = te.compute(rows, reciprocal, name="reciprocals")

        def output(*index: Any) -> Any:
            shift = const(31) - headroom(*index[:-1])
            product = exact.i64(exponentials(*index)) * reciprocals(*index[:-1])
            share = (product + (const(1) << (shift - const(1)))) >> shift
            return exact.clamp(share, 0, 32767).astype("int16")

        return te.compute(data.shape, output, name="softmax")

    def kernels(self, site: Site[Softmax16Attrs]) -> Sequence[Kernel]:
        data, exponential, reciprocal = site.operands
        depth = data.info.shape[-1]
        parameters = {
            "rows": data.info.elements // depth,
            "depth": depth,
            **same(site.attrs, "multiplier", "shift"),
        }
        tables = (Constant("exponential", exponential.value), Constant("reciprocal", reciprocal.value))
        arguments = (Input(0), *tables, Output(0))
        return [portable("uaccel_softmax_s16", "uaccel_softmax16", parameters, arguments, inplace=(0,))]
