"""Elementwise operators that TVM's converters get wrong, or write as TIR that no later stage could look into."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx import fallback
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.integer import real, round_half_even
from uaccel.ops.base import constant
from uaccel.tvm_api import relax


@converts("Clip")
def clip(context: Context, node: Node) -> Expr:
    """Bounds that are left out, or not a number, bound nothing."""
    name = node.required_input(0)
    info, data = context.info(name), context.expr(name)
    low, high = (_bound(context, node.optional_input(position)) for position in (1, 2))
    if isinstance(low, float | int) and isinstance(high, float | int):
        finite = info.dtype.startswith("float") or info.dtype in ("int8", "uint8", "int16", "uint16", "int32")
        if finite and np.isfinite(low) and np.isfinite(high):
            return relax.op.clip(data, low, high)
    for bound, position, operator in ((low, 1, relax.op.maximum), (high, 2, relax.op.minimum)):
        if not isinstance(bound, float | int):
            data = operator(data, context.expr(node.required_input(position)))
        elif np.isfinite(bound):
            data = operator(data, constant(np.asarray(bound, info.dtype)))
    return data


def _bound(context: Context, name: str) -> float | int | None:
    """An infinity where there is none, None where it is known at run time only."""
    if not name:
        return float("inf")
    known = context.known(name)
    if known is None:
        return None
    value = context.need_number(name, "bound")
    return float("inf") if isinstance(value, float) and np.isnan(value) else value


@converts("Round")
def rounded(context: Context, node: Node) -> Expr:
    return round_half_even(context, context.expr(node.required_input(0)))


@converts("Pow")
def power(context: Context, node: Node) -> Expr:
    """Small whole exponents are products, as ONNX Runtime computes squares and cubes."""
    name, exponent = node.required_input(0), node.required_input(1)
    info, data, known = context.info(name), context.expr(name), context.known(exponent)
    if known is not None and known.size == 1:
        value = float(known.reshape(-1)[0])
        ranks = known.ndim <= len(info.shape)
        if value in (1.0, 2.0, 3.0) and ranks:
            result = data
            for _ in range(int(value) - 1):
                result = relax.op.multiply(result, data)
            return result if value > 1.0 else relax.op.add(data, real(0, context, data))
        if value == 0.5 and ranks and info.dtype.startswith("float"):
            return relax.op.sqrt(data)
    need(info.dtype.startswith("float"), f"powers of {info.dtype} are supported for the exponents 1, 2 and 3")
    given = context.expr(exponent)
    cast = given if context.info(exponent).dtype == info.dtype else relax.op.astype(given, info.dtype)
    return relax.op.power(data, cast)


@converts("Dropout")
def dropout(context: Context, node: Node) -> list[Expr]:
    """At inference nothing is dropped, and the mask says so."""
    training = node.optional_input(2)
    need(
        not training or ((known := context.known(training)) is not None and not known.any()),
        "training mode is random; export the model for inference",
    )
    name = node.required_input(0)
    outputs = [context.expr(name)]
    if len(node.outputs) > 1:
        context.budget.array(context.info(name).shape, 1)
        outputs.append(constant(np.ones(context.info(name).shape, np.bool_)))
    return outputs


@converts("Identity")
def identity(context: Context, node: Node) -> Expr:
    return context.expr(node.required_input(0))


@converts("IsInf")
def is_infinite(context: Context, node: Node) -> Expr:
    data = context.expr(node.required_input(0))
    positive, negative = (node.attributes.get(f"detect_{sign}", 1) for sign in ("positive", "negative"))
    if positive and negative:
        return relax.op.isinf(data)
    if not positive and not negative:
        context.budget.array(context.info(node.required_input(0)).shape, 1)
        return constant(np.zeros(context.info(node.required_input(0)).shape, np.bool_))
    return relax.op.equal(data, real(np.inf if positive else -np.inf, context, data))


@converts("BitShift")
def bit_shift(context: Context, node: Node) -> list[Expr]:
    """C leaves open what other shifts give, and ONNX did for long."""
    name = node.required_input(0)
    bits = 8 * context.info(name).itemsize
    shift = context.need_known(node.required_input(1), "shift")
    need(bool(np.all((shift >= 0) & (shift < bits))), f"a shift is not within the {bits} bits of the type")
    return fallback.convert(context, node)
