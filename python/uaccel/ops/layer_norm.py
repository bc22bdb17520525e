"""Layer, group and instance normalisation of rows in integers: (x - mean) / sqrt(variance + epsilon) * gamma + beta.

With n elements a row, and x as it is stored, ``d = n * x - sum(x)`` and ``v = n * sum(x * x) - sum(x)**2`` are exact.
The scale of the input is left in the epsilon beside v alone, the zero point nowhere: the normalised element is
``t = d / sqrt(v + epsilon)``, and the result ``(t * gamma + beta) / output scale``, rounded once, half to even.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, Site, register, require
from uaccel.ops.exact import const
from uaccel.ops.kernel import Constant, Input, Kernel, Output, dtype_suffix, portable, same
from uaccel.ops.ratio import scale_fraction
from uaccel.tvm_api import te, tirx

LONGEST_ROW = {"int8": 1 << 16, "int16": 1 << 14}
SPREAD = {"int8": 14, "int16": 30}  # bits of the largest variance
WIDE = 62  # bits of v with its fraction
STEPS = 5  # of Newton's method: from 18 % to 2**-30
SEED = (0x95555555, 1431655765)  # 7/3 with 30 bits after the point, 4/3 with 30


@dataclass(frozen=True)
class LayerNormAttrs(Attributes):
    """Bits after the point: ``fraction`` (even) of v and ``epsilon``, ``normal`` of t, ``shift`` of the result,
    ``shift - normal`` of gamma, ``shift - beta_shift`` of beta. Gamma and beta begin anew after ``groups`` rows, and
    ``inner`` elements side by side have one of each."""

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


@register
class LayerNorm(IntegerOperator[LayerNormAttrs]):
    """Rows of int8 or int16 normalised; gamma and beta are divided by the output's scale."""

    name = "layer_norm"
    arguments = ("input", "gamma", "beta")

    def infer(self, inputs: Sequence[TensorInfo], attrs: LayerNormAttrs) -> TensorInfo:
        data, gamma, beta = inputs
        require(len(data.shape) > 0, "layer_norm: the input is a scalar")
        require(data.dtype in LONGEST_ROW, f"layer_norm: input is {data.dtype}, wanted int8 or int16")
        depth, most = data.shape[-1], LONGEST_ROW[data.dtype]
        require(depth <= most, f"layer_norm: rows of {depth} elements of {data.dtype}, at most {most} are possible")
        require(attrs.groups == 1 or len(data.shape) == 2, f"layer_norm: {data} has no rows, wanted those of groups")
        wanted = TensorInfo((attrs.groups * depth // attrs.inner,), "int32")
        require(gamma == beta == wanted, f"layer_norm: gamma is {gamma} and beta {beta}, wanted {wanted}")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: LayerNormAttrs) -> Any:
        data, gamma, beta = inputs
        depth = int(data.shape[-1])
        sums = _row_sums(data, lambda value: value)
        spread = _row_sums(data, lambda value: value * value)

        def variance(*row: Any) -> Any:
            exactly = const(depth) * spread(*row) - sums(*row) * sums(*row)
            return tirx.max((exactly << const(attrs.fraction)) + const(attrs.epsilon), const(1))

        pairs, root = _inverse_root(te.compute(sums.shape, variance, name="variance"))

        def output(*index: Any) -> Any:
            row, k = index[:-1], index[-1]
            distance = const(depth) * exact.i64(data(*index)) - sums(*row)
            right = const(WIDE - 1 - attrs.fraction // 2 - attrs.normal) - pairs(*row)
            normal = (distance * root(*row)) >> tirx.max(right, const(0))
            channel = tirx.floordiv(k, attrs.inner)
            if attrs.groups > 1:
                channel += tirx.floormod(row[0], attrs.groups) * (depth // attrs.inner)
            total = normal * exact.i64(gamma(channel)) + (exact.i64(beta(channel)) << const(attrs.beta_shift))
            rounded = exact.round_half_even(total, attrs.shift)
            return exact.finish(rounded, attrs.output_zero_point, attrs.clamp_min, attrs.clamp_max, str(data.dtype))

        return te.compute(data.shape, output, name=self.name)

    def kernels(self, site: Site[LayerNormAttrs]) -> Sequence[Kernel]:
        attrs, data = site.attrs, site.operands[0].info
        depth = data.shape[-1]
        parameters = {
            "rows": data.elements // depth,
            "depth": depth,
            **same(attrs, "epsilon", "fraction"),
            "right": WIDE - 1 - attrs.fraction // 2 - attrs.normal,
            **same(attrs, "shift", "beta_shift", "output_zero_point", "clamp_min", "clamp_max", "groups", "inner"),
        }
        tables = (Constant("gamma", site.operands[1].value), Constant("beta", site.operands[2].value))
        arguments = (Input(0), *tables, Output(0))
        function = f"uaccel_layer_norm_{dtype_suffix(data.dtype)}"
        return [portable(function, "uaccel_layer_norm", parameters, arguments, inplace=(0,))]


def _row_sums(data: Any, convert: Any) -> Any:
    k = te.reduce_axis((0, int(data.shape[-1])), name="k")
    return te.compute(data.shape[:-1], lambda *row: te.sum(convert(exact.i64(data(*row, k))), axis=k), name="sums")


def _inverse_root(value: Any) -> tuple[Any, Any]:
    """By how many pairs of bits a value falls short of 62 bits, and 1 / sqrt of what it is then, from 1 to 2, with 30
    bits after the point."""
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
    """x * (3 - w * x**2) / 2"""

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
    """Attributes, gamma and beta in fixed point."""
    depth, scale = len(gamma) // groups * inner, float(scale_fraction(wanted.scale))
    real_epsilon = Fraction(float(np.float32(epsilon))) / scale_fraction(given.scale) ** 2 * depth**2
    fraction = (WIDE - ((depth**2 << SPREAD[dtype]) + math.ceil(real_epsilon)).bit_length()) // 2 * 2
    if fraction < 0:
        raise ModelError(f"epsilon {epsilon:.6g} is too large beside the input's scale {given.scale:.6g}")
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
    """The least n with real < 2**n, for what is well above nothing."""
    return math.frexp(real)[1] if real > 2.0**-40 else -40


def _fixed(values: NDArray[np.float64], bits: int) -> NDArray[np.int32]:
    scaled = np.rint(np.ldexp(values, bits))
    return np.clip(scaled, -(2**31) + 1, 2**31 - 1).astype(np.int32)
