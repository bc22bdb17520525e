"""The steps that softmax and its logarithm share, as TE tensors: one value a row, one a stage.

Each step is a stage of its own, since an expression would be copied into each of its uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, require
from uaccel.ops.exact import const, high_mul, rounding_divide_by_power
from uaccel.tvm_api import te, tirx

SUM_BITS = 12  # integer bits of the sum of exponentials
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


A = TypeVar("A", bound=Attributes)


class OfRows(IntegerOperator[A]):
    """An operator on rows of int8, along the last axis, with a table of exponentials for all differences in a row."""

    hides_differences = True
    arguments = ("input", "exponentials")

    def infer(self, inputs: Sequence[TensorInfo], attrs: A) -> TensorInfo:
        data, table = inputs
        require(len(data.shape) > 0, f"{self.name}: the input is a scalar")
        require(data.dtype == "int8", f"{self.name}: input is {data.dtype}, wanted int8")
        wanted = TensorInfo((256,), "int32")
        require(table == wanted, f"{self.name}: the table is {table}, wanted {wanted}")
        return TensorInfo(data.shape, getattr(attrs, "output_dtype", data.dtype))


def row_parameters(data: TensorInfo, table: Array) -> dict[str, int]:
    """The fields that the kernels' structures share."""
    return {"rows": data.elements // data.shape[-1], "depth": data.shape[-1], "entries": len(table)}


def used_part(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """The exponentials up to the last that counts: what a kernel needs to hold."""
    return table[: 1 + np.flatnonzero(table)[-1]]


def differences(data: Any) -> Any:
    """How far each element lies below the largest of its row, as int32."""
    k = te.reduce_axis((0, int(data.shape[-1])), name="k")
    rows = data.shape[:-1]
    largest = te.compute(rows, lambda *row: te.max(exact.i32(data(*row, k)), axis=k), name="largest")
    return te.compute(data.shape, lambda *i: largest(*i[:-1]) - exact.i32(data(*i)), name="differences")


def exponential_sums(difference: Any, table: Any) -> Any:
    """Each row's sum, 19 bits after the point."""
    k = te.reduce_axis((0, int(difference.shape[-1])), name="k")

    def total(*row: Any) -> Any:
        exponential = exact.i64(table(difference(*row, k)))
        return te.sum(rounding_divide_by_power(exponential, const(SUM_BITS)), axis=k)

    return te.compute(difference.shape[:-1], total, name="sums")


def leading_zeros(value: Any) -> Any:
    """Of a 32-bit number held in 64 bits."""
    return sum(
        (tirx.Select(value < const(1 << bit), const(1), const(0)) for bit in range(1, 32)),
        start=tirx.Select(value < const(1), const(1), const(0)),
    )


def shift_left(value: Any, bits: int) -> Any:
    """Saturated to 32 bits."""
    return exact.clamp(value << const(bits), LOWEST, HIGHEST)


def reciprocal_of(normal: Any) -> Any:
    """2**62 / x for x from 2**31 to 2**32: three steps of Newton's division."""
    shape = normal.shape
    half = te.compute(shape, lambda *row: normal(*row) >> const(1), name="half")

    def first(*row: Any) -> Any:
        """48/17 - 32/17 * half"""
        return const(1515870810) + high_mul(half(*row), const(-1010580540))

    estimate = te.compute(shape, first, name="estimate")
    for step in range(3):
        estimate = _newton_step(half, estimate, step)
    return te.compute(shape, lambda *row: shift_left(estimate(*row), 1), name="reciprocal")


def _newton_step(half: Any, estimate: Any, step: int) -> Any:
    def element(*row: Any) -> Any:
        error = const(1 << 29) - high_mul(half(*row), estimate(*row))
        return estimate(*row) + shift_left(high_mul(estimate(*row), error), 2)

    return te.compute(half.shape, element, name=f"newton_{step}")
