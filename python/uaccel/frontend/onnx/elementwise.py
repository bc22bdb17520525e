"""Converts elementwise operators that TVM's converters get wrong, or write as TIR that later stages cannot analyse."""

from __future__ import annotations

import functools

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_type
from uaccel.frontend.onnx.converter import Context, Expr, converts, real, round_half_even
from uaccel.frontend.onnx.graph import DTYPES, Node, onnx_package
from uaccel.frontend.onnx.schema import dtype_name
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import BitCast, BitCastAttrs
from uaccel.tvm_api import relax


@converts("Clip")
def clip(context: Context, node: Node) -> Expr:
    """Clamp to bounds; one that is left out or NaN does not bound."""
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
    """A bound: infinity where there is none, None where it is known at run time only."""
    if not name:
        return float("inf")
    known = context.known(name)
    if known is None:
        return None
    value = context.need_number(name, "bound")
    return float("inf") if isinstance(value, float) and np.isnan(value) else value


@converts("Max", "Min")
def extreme(context: Context, node: Node) -> Expr:
    """Extremes of operands one after the other; TVM's converter copies all of them into one tensor first."""
    choose = relax.op.maximum if node.op == "Max" else relax.op.minimum
    return functools.reduce(choose, (context.normal(context.expr(name)) for name in node.inputs))


@converts("Round")
def rounded(context: Context, node: Node) -> Expr:
    return round_half_even(context, context.expr(node.required_input(0)))


@converts("Pow")
def power(context: Context, node: Node) -> Expr:
    """Small whole exponents are products, as ONNX Runtime computes squares and cubes; integers go through float64."""
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
    kind = info.dtype if info.dtype.startswith("float") else "float64"
    given = context.expr(exponent)
    cast = given if context.info(exponent).dtype == kind else relax.op.astype(given, kind)
    if kind == info.dtype:
        return relax.op.power(data, cast)
    return relax.op.astype(relax.op.power(relax.op.astype(data, kind), cast), info.dtype)


@converts("Dropout")
def dropout(context: Context, node: Node) -> list[Expr]:
    """The input itself: nothing is dropped unless training mode is on and the ratio is not 0. The mask says so."""
    switches = [name for place in (2, 1) if (name := node.optional_input(place))] if node.optional_input(2) else []
    off = any((known := context.known(name)) is not None and not known.any() for name in switches)
    need(off or not switches, "training mode is random; export the model for inference")
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
def bit_shift(context: Context, node: Node) -> Expr:
    """Shift by constants. Amounts below 0 or of all bits, undefined in C, leave 0, or the sign on the way right."""
    name = node.required_input(0)
    info = context.info(name)
    bits, signed = 8 * info.itemsize, info.dtype.startswith("int")
    shift = context.need_known(node.required_input(1), "shift")
    inside = (shift >= 0) & (shift < bits)
    data, given = context.expr(name), constant(np.where(inside, shift, bits - 1).astype(info.dtype))
    right = node.attributes["direction"] == "RIGHT"
    shifted = (relax.op.right_shift if right else relax.op.left_shift)(data, given)
    if inside.all() or (right and signed):
        return shifted
    return relax.op.where(constant(np.asarray(inside)), shifted, constant(np.zeros((), info.dtype)))


@converts("Mod")
def modulo(context: Context, node: Node) -> Expr:
    """The remainder. Without ``fmod`` it has the divisor's sign: for float the divisor is added where signs differ."""
    names = [node.required_input(place) for place in range(2)]
    left, right = map(context.expr, names)
    if not context.info(names[0]).dtype.startswith("float"):
        return (relax.op.mod if node.attributes.get("fmod", 0) else relax.op.floor_mod)(left, right)
    rest = context.block.builder.emit(relax.op.mod(left, right))
    if node.attributes.get("fmod", 0):
        return rest
    zero = real(0.0, context, rest)
    unlike = relax.op.logical_xor(relax.op.less(rest, zero), relax.op.less(right, zero))
    turned = relax.op.logical_and(relax.op.not_equal(rest, zero), unlike)
    return relax.op.where(turned, relax.op.add(rest, right), rest)


@converts("BitCast")
def bit_cast(context: Context, node: Node) -> Expr:
    name, dtype = node.required_input(0), dtype_name(onnx_package(), node.attributes["to"])
    info = context.info(name)
    need_type(dtype, DTYPES, "its result")
    need(info.itemsize == np.dtype(dtype).itemsize, f"{info.dtype} and {dtype} differ in width")
    if "bool" in (info.dtype, dtype):
        return relax.op.astype(context.expr(name), dtype)
    return get(BitCast)(context.expr(name), attrs=BitCastAttrs(dtype))
