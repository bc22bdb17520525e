"""Rounding half to even in steps of which each is exact, whatever a library's function for it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uaccel.ops.base import constant, info_of
from uaccel.tvm_api import relax

Expr = Any


def half_even(emit: Callable[[Expr], Expr], data: Expr) -> Expr:
    """``emit`` binds an expression to a variable of its own."""
    value = emit(data)

    def number(given: float) -> Expr:
        return constant(np.asarray(given, info_of(value).dtype))

    below = emit(relax.op.floor(value))
    rest = emit(relax.op.subtract(value, below))
    half = emit(relax.op.multiply(below, number(0.5)))
    odd = relax.op.not_equal(relax.op.floor(half), half)
    middle = relax.op.logical_and(relax.op.equal(rest, number(0.5)), odd)
    up = relax.op.logical_or(relax.op.greater(rest, number(0.5)), middle)
    return relax.op.where(up, relax.op.add(below, number(1.0)), below)
