"""Converts elementwise operators that TVM's converters get wrong, or write as TIR that later stages cannot analyse."""

from __future__ import annotations

import functools

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_type
from uaccel.frontend.onnx import blocks, functions
from uaccel.frontend.onnx.converter import Context, Expr, converts, real, round_half_even
from uaccel.frontend.onnx.graph import DTYPES, Node, onnx_package
from uaccel.frontend.onnx.schema import dtype_name
from uaccel.ops import pointwise
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import BitCast, BitCastAttrs
from uaccel.tvm_api import of_relax, relax

ROWS = {row.onnx: row for row in pointwise.ROWS if row.onnx}


@converts(*ROWS)
def elementwise(context: Context, node: Node) -> Expr:
    """An operator of one or two inputs, and without options."""
    row = ROWS[node.op]
    return of_relax(row.relax)(*(context.expr(node.required_input(place)) for place in range(row.arity)))


@converts("Clip")
def clip(context: Context, node: Node) -> Expr:
    """Clamp to bounds, the upper one last: it holds where it lies below the lower one.

    A bound that is left out is the extreme of the type, also for infinities; one that is NaN does not bound.
    """
    data, info = context.operand(node)
    real_type = info.dtype.startswith("float")
    limits = np.finfo(info.dtype) if real_type else np.iinfo(info.dtype)
    low, high = (
        _bound(context, node.optional_input(place), float(limit) if real_type else int(limit))
        for place, limit in ((1, limits.min), (2, limits.max))
    )
    small = real_type or info.itemsize < 4 or info.dtype == "int32"
    if small and isinstance(low, float | int) and isinstance(high, float | int) and low <= high:
        bounds = (low, high) != (limits.min, limits.max) or real_type
        return relax.op.clip(data, low, high) if bounds else data
    for bound, limit, operator in ((low, limits.min, relax.op.maximum), (high, limits.max, relax.op.minimum)):
        if bound is None or bound != limit:
            place = 1 if operator is relax.op.maximum else 2
            given = (
                context.expr(node.required_input(place)) if bound is None else constant(np.asarray(bound, info.dtype))
            )
            data = operator(data, given)
    return data


def _bound(context: Context, name: str, limit: float) -> float | int | None:
    """A bound, ``limit`` where there is none; None where it is known at run time only."""
    known = context.known(name) if name else None
    if name and known is None:
        return None
    value = context.need_number(name, "bound") if name else limit
    return limit if value != value else value


@converts("Elu", "Selu", "Celu")
def exponential(context: Context, node: Node) -> Expr:
    """Scaled exponentials below 0. TVM's converters compute them in float32, and of NaN they make 0."""
    data = context.expr(node.required_input(0))
    given = {"Selu": 1.67326319217681884765625}.get(node.op, 1.0)
    alpha = float(node.attributes.get("alpha", given))
    grown = relax.op.divide(data, real(alpha, context, data)) if node.op == "Celu" and alpha != 1.0 else data
    below = relax.op.subtract(relax.op.exp(grown), real(1.0, context, data))
    below = below if alpha == 1.0 else relax.op.multiply(below, real(alpha, context, data))
    result = relax.op.where(relax.op.less(data, real(0.0, context, data)), below, data)
    gamma = float(node.attributes.get("gamma", 1.05070102214813232421875))
    return relax.op.multiply(result, real(gamma, context, data)) if node.op == "Selu" else result


@converts("PRelu")
def sloped(context: Context, node: Node) -> Expr | list[Expr]:
    """A slope below 0. Relax's operator takes floats alone."""
    (data, info), (slope, _) = context.operand(node), context.operand(node, 1)
    if info.dtype.startswith("float"):
        return functions.convert(context, node)
    below = relax.op.less(data, constant(np.zeros((), info.dtype)))
    return relax.op.where(below, relax.op.multiply(data, slope), data)


@converts("Shrink")
def shrunk(context: Context, node: Node) -> Expr | list[Expr]:
    """Nearer to 0 by a bias, or 0. Integers are shrunk as real numbers and cut off, as in ONNX Runtime."""
    data, info = context.operand(node)
    if info.dtype.startswith("float"):
        return functions.convert(context, node)
    wide = relax.op.astype(data, "float32")
    return relax.op.astype(context.compute("Shrink", [wide], **node.attributes)[0], info.dtype)


@converts("Sign")
def sign(context: Context, node: Node) -> Expr:
    """The sign, which for unsigned numbers is whether they are not 0."""
    data, info = context.operand(node)
    if not info.dtype.startswith("uint"):
        return relax.op.sign(data)
    return relax.op.minimum(data, constant(np.ones((), info.dtype)))


@converts("ThresholdedRelu")
def thresholded(context: Context, node: Node) -> Expr:
    """What lies above the threshold, else 0: chosen and not multiplied, as infinity times 0 is no number."""
    data = context.expr(node.required_input(0))
    above = relax.op.greater(data, real(float(node.attributes.get("alpha", 1.0)), context, data))
    return relax.op.where(above, data, real(0.0, context, data))


@converts("Equal")
def equal(context: Context, node: Node) -> Expr:
    """Equality. Truths are equal where not just one of them holds: LLVM has no comparison of them."""
    left, right = (context.expr(node.required_input(place)) for place in (0, 1))
    if context.info(node.inputs[0]).dtype != "bool":
        return relax.op.equal(left, right)
    return relax.op.logical_not(relax.op.logical_xor(left, right))


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
    data, info = context.operand(node)
    outputs = [data]
    if len(node.outputs) > 1:
        context.budget.array(info.shape, 1)
        outputs.append(constant(np.ones(info.shape, np.bool_)))
    return outputs


@converts("Identity")
def identity(context: Context, node: Node) -> Expr:
    return context.expr(node.required_input(0))


@converts("IsInf")
def is_infinite(context: Context, node: Node) -> Expr:
    data, info = context.operand(node)
    positive, negative = (node.attributes.get(f"detect_{sign}", 1) for sign in ("positive", "negative"))
    if positive and negative:
        return relax.op.isinf(data)
    if not positive and not negative:
        context.budget.array(info.shape, 1)
        return constant(np.zeros(info.shape, np.bool_))
    return relax.op.equal(data, real(np.inf if positive else -np.inf, context, data))


@converts("BitShift")
def bit_shift(context: Context, node: Node) -> Expr:
    """Shift by constants. Amounts below 0 or of all bits, undefined in C, leave 0, or the sign on the way right."""
    data, info = context.operand(node)
    bits, signed = 8 * info.itemsize, info.dtype.startswith("int")
    shift = context.need_known(node.required_input(1), "shift")
    inside = (shift >= 0) & (shift < bits)
    given = constant(np.where(inside, shift, bits - 1).astype(info.dtype))
    right = node.attributes["direction"] == "RIGHT"
    shifted = (relax.op.right_shift if right else relax.op.left_shift)(data, given)
    if inside.all() or (right and signed):
        return shifted
    return relax.op.where(constant(np.asarray(inside)), shifted, constant(np.zeros((), info.dtype)))


@converts("Mod")
def modulo(context: Context, node: Node) -> Expr:
    """The remainder. Without ``fmod`` it has the divisor's sign: for float the divisor is added where signs differ."""
    (left, info), (right, _) = context.operand(node), context.operand(node, 1)
    if not info.dtype.startswith("float"):
        return (relax.op.mod if node.attributes.get("fmod", 0) else relax.op.floor_mod)(left, right)
    rest = context.block.builder.emit(relax.op.mod(left, right))
    if node.attributes.get("fmod", 0):
        return rest
    zero = real(0.0, context, rest)
    unlike = relax.op.logical_xor(relax.op.less(rest, zero), relax.op.less(right, zero))
    turned = relax.op.logical_and(relax.op.not_equal(rest, zero), unlike)
    return relax.op.where(turned, relax.op.add(rest, right), rest)


@converts("Gemm")
def scaled_product(context: Context, node: Node) -> Expr | list[Expr]:
    """A product with factors. The products of integers are real numbers, and their sum is cut off: TVM's converter cuts
    them.

    Such sums are computed in float64, which holds products of 32 bits."""
    factors = [float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta")]
    name = node.required_input(0)
    dtype = context.info(name).dtype
    if factors == [1.0, 1.0] and not node.attributes.get("transA", 0):
        turned = bool(node.attributes.get("transB", 0))
        made = blocks.product(context, node, turned=turned, bias=node.optional_input(2))
        if made is not None:
            return made
    if dtype.startswith("float") or all(factor.is_integer() for factor in factors):
        return functions.convert(context, node)
    left, right = (
        relax.op.permute_dims(operand) if node.attributes.get(turned, 0) else operand
        for operand, turned in zip(map(context.expr, node.inputs), ("transA", "transB"), strict=False)
    )
    total = relax.op.multiply(
        relax.op.astype(relax.op.matmul(left, right), "float64"), constant(np.asarray(factors[0]))
    )
    if node.optional_input(2):
        more = relax.op.astype(context.expr(node.inputs[2]), "float64")
        total = relax.op.add(total, relax.op.multiply(more, constant(np.asarray(factors[1]))))
    return relax.op.astype(total, dtype)


@converts("BitCast")
def bit_cast(context: Context, node: Node) -> Expr:
    name, dtype = node.required_input(0), dtype_name(onnx_package(), node.attributes["to"])
    info = context.info(name)
    need_type(dtype, DTYPES, "its result")
    need(info.itemsize == np.dtype(dtype).itemsize, f"{info.dtype} and {dtype} differ in width")
    if "bool" in (info.dtype, dtype):
        return relax.op.astype(context.expr(name), dtype)
    return get(BitCast)(context.expr(name), attrs=BitCastAttrs(dtype))
