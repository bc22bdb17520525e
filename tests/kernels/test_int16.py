"""Kernels of int16 activations, and means by multiplication: exact at the ends, too, where they are offered."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.c_function import shared
from support.device.hostlib import include_flags
from uaccel.kernels import Target, candidates
from uaccel.kernels.conv_forms import wide_stage_of
from uaccel.model import TensorInfo
from uaccel.ops.binary import Mul, MulAttrs
from uaccel.ops.conv import Conv2d, Conv2dAttrs
from uaccel.ops.exact import FLOAT32
from uaccel.ops.matmul import FullyConnected, FullyConnectedAttrs
from uaccel.ops.operator import Operand, Site, get

M4, M55 = Target.of("cortex-m4", ["dsp"]), Target.of("cortex-m55", ["dsp", "helium"])
ATTRS = FullyConnectedAttrs(0, 0, -32768, 32767)


def dense(
    weights: Any, bias: Any, attrs: FullyConnectedAttrs = ATTRS, shift: int = -9, bits: str = "int64"
) -> Site[FullyConnectedAttrs]:
    rows, units = np.array(weights, np.int8), len(weights)
    arrays = (rows, np.array(bias, bits), np.full(units, 3 << 29, np.int32), np.full(units, shift, np.int32))
    constants = [Operand(TensorInfo(array.shape, str(array.dtype)), array) for array in arrays]
    given = Operand(TensorInfo((1, rows.shape[1]), "int16"))
    return Site(attrs, (given, *constants), (TensorInfo((1, units), "int16"),))


def families(operator: Any, site: Site[Any], target: Target) -> list[str]:
    return [kernel.family for kernel in candidates(get(operator), site, target)]


# 516 weights whose absolute values add up to 65535
FULL = [[127] * 516 + [3]]


@pytest.mark.parametrize(
    ("site", "offered"),
    [
        (dense(FULL, [32767]), True),
        (dense(FULL, [32768]), False),
        (dense(FULL, [-32768]), False),
        (dense([[1, 2]], [-(2**31) + 3 * 32768 + 1]), True),
        (dense([[1, 2]], [2**40]), False),
        (dense([[1, 2]], [0], shift=-2), True),
        (dense([[1, 2]], [0], shift=-1), False),
        (dense([[1, 2]], [0], bits="int32"), False),
        (dense([[1, 2]], [0], replace(ATTRS, input_zero_point=1)), False),
        (dense([[1, 2]], [0], replace(ATTRS, output_zero_point=1)), False),
        (dense([[1, 2]], [0], replace(ATTRS, rounding=FLOAT32)), False),
    ],
)
def test_sums_of_32_bits_are_a_condition(site: Site[FullyConnectedAttrs], offered: bool) -> None:
    assert families(FullyConnected, site, M4) == ["arm_dsp"] * offered + ["portable"]
    assert families(FullyConnected, site, M55) == ["arm_helium", "arm_dsp"] * offered + ["portable"]


@pytest.mark.parametrize("shift", [-2, -3, -9, -18, -19, -31])
def test_the_output_stage_rounds_as_the_operator_does(shift: int) -> None:
    generator = np.random.default_rng(-shift)
    multipliers = np.array([0, 1, 1 << 15, 1 << 30, 2**31 - 1, *generator.integers(2**30, 2**31, 20)])
    ends = np.array([-(2**31) + 1, -1, 0, 1, 2**31 - 1])
    sums = np.concatenate([ends, generator.integers(-(2**31), 2**31, 1000), generator.integers(-3000, 3000, 1000)])
    for multiplier in multipliers:
        site = dense([[1, 2]], [0], shift=shift)
        operands = (*site.operands[:3], replace(site.operands[3], constant=np.array([multiplier], np.int32)))
        stage = wide_stage_of(replace(site, operands=(*operands, site.operands[4])), site.operands[1].value)
        assert stage is not None
        given, right = int(stage.multiplier[0]), int(stage.shift[0])
        assert 0 <= given < 2**31
        reduced = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
        wanted = (sums * reduced + (1 << (14 - shift))) >> (15 - shift)
        assert np.array_equal(((sums * given >> 32) + (1 << (right - 1))) >> right, wanted), multiplier


def test_a_padded_window_is_no_row() -> None:
    """Its only place is not where the input lies."""
    weights = np.ones((4, 2, 2, 8), np.int8)
    arrays = (weights, np.zeros(4, np.int64), np.full(4, 1 << 30, np.int32), np.full(4, -9, np.int32))
    constants = [Operand(TensorInfo(array.shape, str(array.dtype)), array) for array in arrays]
    given = Operand(TensorInfo((1, 2, 2, 8), "int16"))
    for padding, name in (((0, 0, 0, 0), "fully_connected"), ((1, 0, 0, 0), "conv2d")):
        attrs = Conv2dAttrs((2, 2), padding, (1, 1), 1, 0, 0, -32768, 32767)
        site = Site(attrs, (given, *constants), (TensorInfo((1, 1, 1, 4), "int16"),))
        for target, family in ((M4, "dsp"), (M55, "helium")):
            function = candidates(get(Conv2d), site, target)[0].calls[0].function
            assert function == f"uaccel_{name}_{family}_s16"


@pytest.mark.parametrize(
    ("multiplier", "shift", "low", "offered"),
    [
        (0x4000FFFF, -16, -32768, False),
        (0x4000FFFD, -16, -32768, True),
        (0x4000FFFF, -6, -32768, True),
        (0x4000FFFF, 0, -32768, False),
    ],
)
def test_the_largest_product_must_not_show(multiplier: int, shift: int, low: int, offered: bool) -> None:
    """-32768 times itself, doubled, has 33 bits: the DSP extension's saturated one is one less."""
    info = TensorInfo((1, 8), "int16")
    site = Site(MulAttrs(0, 0, 0, multiplier, shift, low, 32767), (Operand(info), Operand(info)), (info,))
    assert families(Mul, site, M4) == ["arm_dsp"] * offered + ["portable"]
    assert families(Mul, site, M55)[0] == "arm_helium"


def test_means_by_multiplication_are_those_by_division(tmp_path: Path) -> None:
    """Around every half, for every count and every mean of bytes; for int16 for those next to the ends and to zero."""
    source = """
#include "uaccel_pool_mean.h"
int wrong(void);
static int differs(int32_t sum, struct uaccel_pool_count c)
{
    const int64_t product = (int64_t)sum * c.multiplier;
    return (int32_t)((product + (INT64_C(1) << 30)) >> 31) != uaccel_rounded_mean(sum, c.count);
}
int wrong(void)
{
    int found = 0;
    for (int bits = 8; bits <= 16; bits += 8) {
        const int32_t limit = 1 << (bits - 1);
        for (int32_t count = 1; count <= UACCEL_POOL_MOST(bits); ++count) {
            const struct uaccel_pool_count c = uaccel_pool_count(count, UACCEL_POOL_MOST(bits));
            for (int32_t i = -128; i < 128; ++i) {
                const int32_t mean = bits == 8 ? i : (i < -40 ? i + 128 - limit : (i > 40 ? i - 127 + limit - 1 : i));
                for (int32_t rest = count / 2 - 2; rest <= count / 2 + 2; ++rest) {
                    const int32_t up = mean * count + rest, down = mean * count - rest;
                    found += up <= (limit - 1) * count && differs(up, c);
                    found += down >= -limit * count && differs(down, c);
                }
            }
        }
        found += uaccel_pool_count(UACCEL_POOL_MOST(bits) + 1, UACCEL_POOL_MOST(bits)).multiplier != 0;
    }
    return found;
}
"""
    library: ctypes.CDLL = shared(tmp_path, source, *include_flags())
    assert library.wrong() == 0
