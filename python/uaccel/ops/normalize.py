"""Defines normalisations in integers: rows divided by their Euclidean length, and layer, group and instance norms.

Both need an inverse square root, which Newton's method computes without a division.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError, need
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.exact import const, high_mul
from uaccel.ops.fixedpoint import scale_fraction
from uaccel.ops.kernel import Kernel, same
from uaccel.ops.operator import Attributes, IntegerOperator, Site, require
from uaccel.ops.softmax import HIGHEST, leading_zeros, row_fields, row_sums, shift_left
from uaccel.tvm_api import te, tirx

# L2 normalisation of 8-bit activations: rows divided by their Euclidean length, as in TFLite's reference.

ROOT_HALF = 1518500250  # 2**-0.5 * 2**31
OUTPUT_BITS = 7  # the output's scale is 1/128


class L2NormalizeAttrs(Attributes):
    """The output's quantisation is fixed; the input's scale cancels out."""

    input_zero_point: int


class L2Normalize(IntegerOperator[L2NormalizeAttrs]):
    """Normalises along the last axis; the output's scale is 1/128, its zero point 0. A row of zeros stays zero."""

    name = "l2_normalize"

    def infer(self, attrs: L2NormalizeAttrs, data: TensorInfo) -> TensorInfo:
        require(len(data.shape) > 0, "l2_normalize: the input is a scalar")
        require(data.dtype == "int8", f"l2_normalize: input is {data.dtype}, wanted int8")
        return data

    def meaning(self, attrs: L2NormalizeAttrs, data: Any) -> Any:

        def centred(value: Any) -> Any:
            return exact.i64(value) - const(attrs.input_zero_point)

        multiplier, shift = inverse_root(row_sums(data, lambda value: centred(value) * centred(value)))

        def output(*index: Any) -> Any:
            row = index[:-1]
            value = exact.requantize(
                exact.i32(centred(data(*index))), multiplier(*row), shift(*row) + const(OUTPUT_BITS)
            )
            return exact.clamp(value, -128, 127).astype("int8")

        return te.compute(data.shape, output, name="normalized")

    def kernels(self, site: Site[L2NormalizeAttrs]) -> Sequence[Kernel]:
        parameters = row_fields(site.operands[0].info) | same(site.attrs, "input_zero_point")
        return self.one_call(site, parameters, inplace=(0,))


def inverse_root(squares: Any) -> tuple[Any, Any]:
    """Multiplier and shift that stand for x**-0.5, 0 <= x < 2**31, by five steps of Newton's method.

    x is first brought to 2**27..2**29 by an even number of bits, ``2 * pairs`` to the left or two to the right, since
    half as many bits shift the root. ``_inverse_square_root`` in ``lookup`` explains the rest, the shift by 11 too.
    Numbers have 3 bits before the point, so that the root's cube, up to 8, only just saturates. x of 0 and 1 give one.
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
        x = _newton_step_of_norm(half, x, step)

    def multiplier(*row: Any) -> Any:
        root = high_mul(x(*row), const(ROOT_HALF)) << tirx.max(pairs(*row) - const(11), const(0))
        return tirx.Select(squares(*row) > const(1), root, const(HIGHEST))

    def shift(*row: Any) -> Any:
        right = tirx.max(const(11) - pairs(*row), const(0))
        return tirx.Select(squares(*row) > const(1), -right, const(0))

    return te.compute(shape, multiplier, name="multiplier"), te.compute(shape, shift, name="shift")


def _newton_step_of_norm(half: Any, x: Any, step: int) -> Any:
    """x * (1.5 - half * x**2), where a product of two numbers with 28 bits after the point has 25 and is shifted up."""

    def cube(*row: Any) -> Any:
        return shift_left(high_mul(high_mul(x(*row), x(*row)), x(*row)), 6)

    cubes = te.compute(half.shape, cube, name=f"cube_{step}")

    def element(*row: Any) -> Any:
        three_halves = const((1 << 28) + (1 << 27))
        return shift_left(high_mul(three_halves, x(*row)) - high_mul(half(*row), cubes(*row)), 3)

    return te.compute(half.shape, element, name=f"root_{step}")


# Layer, group and instance normalisation of rows in integers: (x - mean) / sqrt(variance + epsilon) * gamma + beta.
#
# With n elements a row, and x as it is stored, ``d = n * x - sum(x)`` and ``v = n * sum(x * x) - sum(x)**2`` are exact.
# The scale of the input is left in the epsilon beside v alone, the zero point nowhere: the normalised element is
# ``t = d / sqrt(v + epsilon)``, and the result ``(t * gamma + beta) / output scale``, rounded once, half to even.

# int8: the sum of squares, 2**16 * 2**14, fits the kernel's 32-bit sum. int16: a distance from the mean, n * 2**16, has
# 30 bits, so that its product with an inverse root of 31 bits fits 64.
LONGEST_ROW = {"int8": 1 << 16, "int16": 1 << 14}
SPREAD = {"int8": 14, "int16": 30}  # bits of the largest variance: half the range squared
WIDE = 62  # bits of v with its fraction
STEPS = 5  # of Newton's method, see ``_inverse_root``
SEED = (0x95555555, 1431655765)  # 7/3 and 4/3, both with 30 bits after the point


class LayerNormAttrs(Attributes):
    """Bits after the point are: ``fraction`` (even) of v and ``epsilon``, ``normal`` of t, ``shift`` of the result,
    ``shift - normal`` of gamma, ``shift - beta_shift`` of beta. Gamma and beta begin anew after ``groups`` rows, and
    ``inner`` elements side by side share one of each."""

    epsilon: int
    fraction: int
    normal: int
    shift: int
    beta_shift: int
    output_zero_point: int
    clamp_min: int = -128
    clamp_max: int = 127
    groups: int = 1
    inner: int = 1


class LayerNorm(IntegerOperator[LayerNormAttrs]):
    """Normalises rows of int8 or int16; gamma and beta are divided by the output's scale."""

    name = "layer_norm"
    arguments = ("input", "gamma", "beta")

    def infer(self, attrs: LayerNormAttrs, data: TensorInfo, gamma: TensorInfo, beta: TensorInfo) -> TensorInfo:
        require(len(data.shape) > 0, "layer_norm: the input is a scalar")
        require(data.dtype in LONGEST_ROW, f"layer_norm: input is {data.dtype}, wanted int8 or int16")
        depth, most = data.shape[-1], LONGEST_ROW[data.dtype]
        require(depth <= most, f"layer_norm: rows of {depth} elements of {data.dtype}, at most {most} are possible")
        require(attrs.groups == 1 or len(data.shape) == 2, f"layer_norm: {data} has no rows, wanted those of groups")
        wanted = TensorInfo((attrs.groups * depth // attrs.inner,), "int32")
        require(gamma == beta == wanted, f"layer_norm: gamma is {gamma} and beta {beta}, wanted {wanted}")
        return data

    def meaning(self, attrs: LayerNormAttrs, data: Any, gamma: Any, beta: Any) -> Any:
        depth = int(data.shape[-1])
        sums, spread = row_sums(data), row_sums(data, lambda value: exact.i64(value) * exact.i64(value))

        def variance(*row: Any) -> Any:
            exactly = const(depth) * spread(*row) - sums(*row) * sums(*row)
            return tirx.max((exactly << const(attrs.fraction)) + const(attrs.epsilon), const(1))

        pairs, root = _inverse_root(te.compute(sums.shape, variance, name="variance"))

        def output(*index: Any) -> Any:
            row, k = index[:-1], index[-1]
            distance = const(depth) * exact.i64(data(*index)) - sums(*row)
            # root is 2**61 / (2**pairs * sqrt(v * 2**fraction)). Where the shift would be negative, v is zero and so
            # is every distance.
            right = const(WIDE - 1 - attrs.fraction // 2 - attrs.normal) - pairs(*row)
            normal = (distance * root(*row)) >> tirx.max(right, const(0))
            channel = tirx.floordiv(k, attrs.inner)
            if attrs.groups > 1:
                channel += tirx.floormod(row[0], attrs.groups) * (depth // attrs.inner)
            total = normal * exact.i64(gamma(channel)) + (exact.i64(beta(channel)) << const(attrs.beta_shift))
            return exact.rounded_once(total, attrs, str(data.dtype))

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[LayerNormAttrs]) -> Sequence[Kernel]:
        attrs = site.attrs
        parameters = {
            **row_fields(site.operands[0].info),
            **same(attrs, "epsilon", "fraction"),
            "right": WIDE - 1 - attrs.fraction // 2 - attrs.normal,
            **same(attrs, "shift", "beta_shift", "output_zero_point", "clamp_min", "clamp_max", "groups", "inner"),
        }
        return self.one_call(site, parameters, inplace=(0,))


def _inverse_root(value: Any) -> tuple[Any, Any]:
    """How many pairs of bits a value falls short of 62 bits, and 1 / sqrt(w) with 30 bits after the point.

    w is the value raised by these pairs and cut to 31 bits, as a number from 1/4 to 1; its root's inverse is 1 to 2.
    The seed 7/3 - 4/3 * w is right at both ends and 19 % too large at most, at w = 7/12. A step makes about
    -1.5 * e**2 of a relative error e: 2**-29 after four, and after five what rounding leaves. With x <= 2**31 as stored
    and w * x**2 < 1.5, no product reaches 2**63.
    """
    shape = value.shape

    def short(*row: Any) -> Any:
        steps = (tirx.Select(value(*row) < const(1 << (WIDE - 2 * k)), const(1), const(0)) for k in range(1, WIDE // 2))
        return sum(steps, start=const(0))

    pairs = te.compute(shape, short, name="pairs")
    half = WIDE // 2
    w = te.compute(shape, lambda *row: (value(*row) << (pairs(*row) * const(2))) >> const(half), name="w")
    x = te.compute(shape, lambda *row: const(SEED[0]) - ((w(*row) * const(SEED[1])) >> const(half)), name="seed")
    for step in range(STEPS):
        x = _newton_step(w, x, step)
    return pairs, x


def _newton_step(w: Any, x: Any, step: int) -> Any:
    """x * (3 - w * x**2) / 2, x with 30 bits after the point and w with 31."""

    def element(*row: Any) -> Any:
        square = (x(*row) * x(*row)) >> const(30)
        return (x(*row) * (const(3 << 30) - ((w(*row) * square) >> const(31)))) >> const(31)

    return te.compute(x.shape, element, name=f"root_{step}")


def layer_norm_operands(
    given: Quantisation,
    wanted: Quantisation,
    gamma: NDArray[np.float32],
    beta: NDArray[np.float32],
    epsilon: float,
    *,
    groups: int = 1,
    inner: int = 1,
    dtype: str = "int8",
    clamp: tuple[int, int] = (-128, 127),
) -> tuple[LayerNormAttrs, NDArray[np.int32], NDArray[np.int32]]:
    """Attributes, gamma and beta in fixed point, each with as many bits after the point as 64-bit sums allow.

    v with its epsilon takes at most ``WIDE`` bits. |t| is below sqrt(depth), so ``normal`` bits keep it below 2**30.
    The result, at most sqrt(depth) * |gamma| + |beta| with ``finest`` bits, stays below 2**61; gamma and beta fit an
    int32 each.
    """
    depth, scale = len(gamma) // groups * inner, float(scale_fraction(wanted.scale))
    real_epsilon = Fraction(float(np.float32(epsilon))) / scale_fraction(given.scale) ** 2 * depth**2
    fraction = (WIDE - ((depth**2 << SPREAD[dtype]) + math.ceil(real_epsilon)).bit_length()) // 2 * 2
    need(fraction >= 0, f"epsilon {epsilon:.6g} is too large beside the input's scale {given.scale:.6g}")
    slopes, offsets = gamma.astype(np.float64) / scale, beta.astype(np.float64) / scale
    steepest, furthest = float(np.abs(slopes).max()), float(np.abs(offsets).max())
    normal = 30 - _bits(math.sqrt(depth))
    finest = WIDE - 1 - _bits(math.sqrt(depth) * steepest + furthest + 1)
    if not (math.isfinite(steepest + furthest) and finest > normal):
        raise ModelError(f"gamma and beta reach {max(steepest, furthest):.6g} steps of the output's scale, too far")
    slope_bits = min(31 - _bits(steepest), finest - normal)
    shift = normal + slope_bits
    offset_bits = min(31 - _bits(furthest), shift)
    attrs = LayerNormAttrs(
        epsilon=round(real_epsilon * (1 << fraction)),
        fraction=fraction,
        normal=normal,
        shift=shift,
        beta_shift=shift - offset_bits,
        output_zero_point=wanted.zero_point,
        clamp_min=clamp[0],
        clamp_max=clamp[1],
        groups=groups,
        inner=inner,
    )
    return attrs, _fixed(slopes, slope_bits), _fixed(offsets, offset_bits)


def _bits(real: float) -> int:
    """The least n with real < 2**n; -40 for anything smaller than 2**-40."""
    return math.frexp(real)[1] if real > 2.0**-40 else -40


def _fixed(values: NDArray[np.float64], bits: int) -> NDArray[np.int32]:
    scaled = np.rint(np.ldexp(values, bits))
    return np.clip(scaled, -(2**31) + 1, 2**31 - 1).astype(np.int32)
