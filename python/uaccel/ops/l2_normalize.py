"""Rows divided by their Euclidean length, 8-bit activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const, high_mul
from uaccel.ops.kernel import Input, Kernel, Output, portable
from uaccel.ops.softmax_steps import HIGHEST, leading_zeros, shift_left
from uaccel.tvm_api import te, tirx

ROOT_HALF = 1518500250  # 2**-0.5 * 2**31
OUTPUT_BITS = 7  # the output's scale is 1/128


@dataclass(frozen=True)
class L2NormalizeAttrs(Attributes):
    input_zero_point: int


@register
class L2Normalize(IntegerOperator[L2NormalizeAttrs]):
    """Along the last axis; the output's scale is 1/128, its zero point 0. A row of zeros stays zero."""

    name = "l2_normalize"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: L2NormalizeAttrs) -> TensorInfo:
        (data,) = inputs
        require(len(data.shape) > 0, "l2_normalize: the input is a scalar")
        require(data.dtype == "int8", f"l2_normalize: input is {data.dtype}, wanted int8")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: L2NormalizeAttrs) -> Any:
        (data,) = inputs
        k = te.reduce_axis((0, int(data.shape[-1])), name="k")

        def centred(*index: Any) -> Any:
            return exact.i64(data(*index)) - const(attrs.input_zero_point)

        def square(*row: Any) -> Any:
            return te.sum(centred(*row, k) * centred(*row, k), axis=k)

        squares = te.compute(data.shape[:-1], square, name="squares")
        multiplier, shift = inverse_root(squares)

        def output(*index: Any) -> Any:
            row = index[:-1]
            value = exact.requantize(exact.i32(centred(*index)), multiplier(*row), shift(*row) + const(OUTPUT_BITS))
            return exact.clamp(value, -128, 127).astype("int8")

        return te.compute(data.shape, output, name="normalized")

    def kernels(self, site: Site[L2NormalizeAttrs]) -> Sequence[Kernel]:
        data = site.operands[0].info
        depth = data.shape[-1]
        parameters = {
            "rows": data.elements // depth,
            "depth": depth,
            "input_zero_point": site.attrs.input_zero_point,
        }
        function, struct = "uaccel_l2_normalize_s8", "uaccel_l2_normalize"
        return [portable(function, struct, parameters, (Input(0), Output(0)), inplace=(0,))]


def inverse_root(squares: Any) -> tuple[Any, Any]:
    """Multiplier and shift that stand for x**-0.5: five steps of Newton's method on numbers below 8.

    x is first brought to 2**27..2**29 by an even number of bits, ``2 * pairs`` to the left.
    """
    shape = squares.shape

    def pair(*row: Any) -> Any:
        zeros = leading_zeros(squares(*row))
        return tirx.Select(squares(*row) >= const(1 << 29), const(-1), ((zeros - const(1)) >> const(1)) - const(1))

    pairs = te.compute(shape, pair, name="pairs")

    def half_input(*row: Any) -> Any:
        left = squares(*row) << (tirx.max(pairs(*row), const(0)) * const(2))
        normal = tirx.Select(pairs(*row) < const(0), squares(*row) >> const(2), left)
        return exact.rounding_divide_by_power(normal >> const(1), const(1))

    half = te.compute(shape, half_input, name="half_input")
    x = te.compute(shape, lambda *row: const(1 << 28), name="one")
    for step in range(5):
        x = _newton_step(half, x, step)

    def multiplier(*row: Any) -> Any:
        root = high_mul(x(*row), const(ROOT_HALF)) << tirx.max(pairs(*row) - const(11), const(0))
        return tirx.Select(squares(*row) > const(1), root, const(HIGHEST))

    def shift(*row: Any) -> Any:
        right = tirx.max(const(11) - pairs(*row), const(0))
        return tirx.Select(squares(*row) > const(1), -right, const(0))

    return te.compute(shape, multiplier, name="multiplier"), te.compute(shape, shift, name="shift")


def _newton_step(half: Any, x: Any, step: int) -> Any:
    """x * (1.5 - half * x**2)"""

    def cube(*row: Any) -> Any:
        return shift_left(high_mul(high_mul(x(*row), x(*row)), x(*row)), 6)

    cubes = te.compute(half.shape, cube, name=f"cube_{step}")

    def element(*row: Any) -> Any:
        three_halves = const((1 << 28) + (1 << 27))
        return shift_left(high_mul(three_halves, x(*row)) - high_mul(half(*row), cubes(*row)), 3)

    return te.compute(half.shape, element, name=f"root_{step}")
