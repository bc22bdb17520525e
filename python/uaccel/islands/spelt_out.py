"""Quantisation steps for which no integers are held, in floats: scales along an axis, int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from uaccel.islands.emitter import Emitter
from uaccel.islands.known import along_axis
from uaccel.model import Array
from uaccel.ops.base import constant, info_of
from uaccel.tvm_api import relax


def quantized(emitter: Emitter, real: Any, scale: Array, zero_point: Array, axis: int, dtype: str) -> Any:
    """round(real / scale) + zero_point, halves to even, saturated."""
    rank, limits = len(info_of(real).shape), np.iinfo(dtype)
    steps = _bound(emitter, relax.op.divide(real, _constant(scale, axis, rank, np.float32)))
    shifted = relax.op.add(_half_even(emitter, steps), _constant(zero_point, axis, rank, np.float32))
    clipped = relax.op.clip(_bound(emitter, shifted), float(limits.min), float(limits.max))
    return relax.op.astype(_bound(emitter, clipped), dtype)


def dequantized(emitter: Emitter, stored: Any, scale: Array, zero_point: Array, axis: int) -> Any:
    """(stored - zero_point) * scale."""
    rank = len(info_of(stored).shape)
    wide = _bound(emitter, relax.op.astype(stored, "int32"))
    if zero_point.any():
        wide = _bound(emitter, relax.op.subtract(wide, _constant(zero_point, axis, rank, np.int32)))
    real = _bound(emitter, relax.op.astype(wide, "float32"))
    return relax.op.multiply(real, _constant(scale, axis, rank, np.float32))


def _half_even(emitter: Emitter, value: Any) -> Any:
    """Every step is exact."""
    below = _bound(emitter, relax.op.floor(value))
    rest = _bound(emitter, relax.op.subtract(value, below))
    half = _bound(emitter, relax.op.multiply(below, _number(0.5)))
    odd = _bound(emitter, relax.op.not_equal(_bound(emitter, relax.op.floor(half)), half))
    middle = _bound(emitter, relax.op.logical_and(_bound(emitter, relax.op.equal(rest, _number(0.5))), odd))
    up = _bound(emitter, relax.op.logical_or(_bound(emitter, relax.op.greater(rest, _number(0.5))), middle))
    above = _bound(emitter, relax.op.add(below, _number(1.0)))
    return _bound(emitter, relax.op.where(up, above, below))


def _bound(emitter: Emitter, expr: Any) -> Any:
    return emitter.bind(expr, suffix="_step")


def _number(value: float) -> Any:
    return constant(np.asarray(value, np.float32))


def _constant(values: Array, axis: int, rank: int, dtype: Any) -> Any:
    return constant(along_axis(np.asarray(values), axis, rank).astype(dtype))
