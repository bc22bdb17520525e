"""Converts arithmetic, reductions and norms, operators on truth values, and operators on all pairs of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.frontend.torch.program import info_of_value
from uaccel.ops import pointwise
from uaccel.ops.operator import constant
from uaccel.tvm_api import of_relax, relax

# Arithmetic, reductions and norms whose arguments TVM's converter ignores, or that it lacks.

# Along axes; some give the indices of what they find as well.
REDUCTIONS: Final[Mapping[str, Sequence[Any]]] = {
    "aten.amax.default": [relax.op.max],
    "aten.amin.default": [relax.op.min],
    "aten.prod.dim_int": [relax.op.prod],
    "aten.max.dim": [relax.op.max, relax.op.argmax],
    "aten.min.dim": [relax.op.min, relax.op.argmin],
}


def _operand(context: Context, node: Any, value: Any) -> Expr:
    """An operand, a node or a number, in the type of the result: PyTorch promotes operands to it."""
    made = node.meta["val"]
    dtype = info_of_value(made[0] if isinstance(made, (list, tuple)) else made).dtype
    if not hasattr(value, "op"):
        return constant(np.array(value, dtype))
    same = info_of_value(value.meta["val"]).dtype == dtype
    expr = context.expr(value)
    return expr if same else context.emit(relax.op.astype(expr, dtype))


def _scaled(context: Context, node: Any, value: Any) -> Expr:
    """An operand times the factor ``alpha`` of addition and subtraction."""
    alpha = arguments(node).get("alpha", 1)
    operand = _operand(context, node, value)
    if alpha == 1:
        return operand
    return context.emit(relax.op.multiply(operand, _operand(context, node, alpha)))


def _compares(row: pointwise.Pointwise) -> bool:
    return row.gives_truths and row.takes == pointwise.NUMBERS


ROWS: Final = {f"aten.{row.aten}.default": row for row in pointwise.ROWS if row.aten and not _compares(row)}


@converts(*ROWS)
def elementwise(context: Context, node: Any) -> Expr:
    """An operator on the type of its result."""
    return of_relax(ROWS[str(node.target)].relax)(*(_operand(context, node, value) for value in node.args))


@converts("aten.add.Tensor", "aten.add.Scalar")
def add(context: Context, node: Any) -> Expr:
    """A sum; of truth values it is whether one of them holds."""
    if info_of_value(node.meta["val"]).dtype == "bool":
        one, other = (_operand(context, node, value) for value in node.args)
        return relax.op.logical_or(one, other) if arguments(node).get("alpha", 1) else one
    return relax.op.add(_operand(context, node, node.args[0]), _scaled(context, node, node.args[1]))


@converts(*(f"aten.{name}.{kind}" for name in ("sub", "rsub") for kind in ("Tensor", "Scalar")))
def subtract(context: Context, node: Any) -> Expr:
    one, other = node.args[:2] if "rsub" not in str(node.target) else node.args[1::-1]
    return relax.op.subtract(_operand(context, node, one), _scaled(context, node, other))


@converts("aten.div.Tensor_mode")
def divide_in_mode(context: Context, node: Any) -> Expr:
    """A quotient that may be cut off or rounded down, of operands in the type of the result."""
    mode = arguments(node)["rounding_mode"]
    one, other = (_operand(context, node, value) for value in node.args[:2])
    if mode == "floor" and info_of_value(node.meta["val"]).dtype.startswith("float"):
        return _floor_of_floats(context, node, one, other)
    if mode == "floor":
        return relax.op.floor_divide(one, other)
    quotient = relax.op.divide(one, other)
    return quotient if mode is None else relax.op.trunc(context.emit(quotient))


def _floor_of_floats(context: Context, node: Any, one: Expr, other: Expr) -> Expr:
    """PyTorch's way: what remains is taken off before the division, so that no rounding reaches the next integer."""
    zero, whole = (_operand(context, node, value) for value in (0, 1))
    rest = context.emit(relax.op.mod(one, other))
    quotient = context.emit(relax.op.divide(context.emit(relax.op.subtract(one, rest)), other))
    signs = [context.emit(relax.op.less(value, zero)) for value in (other, rest)]
    signs = [context.emit(relax.op.astype(sign, "int32")) for sign in signs]
    exact = context.emit(relax.op.equal(rest, zero))
    kept = context.emit(relax.op.logical_or(exact, context.emit(relax.op.equal(*signs))))
    quotient = context.emit(relax.op.where(kept, quotient, context.emit(relax.op.subtract(quotient, whole))))
    down = context.emit(relax.op.floor(quotient))
    far = context.emit(relax.op.greater(context.emit(relax.op.subtract(quotient, down)), _operand(context, node, 0.5)))
    down = context.emit(relax.op.where(far, context.emit(relax.op.add(down, whole)), down))
    by_zero = context.emit(relax.op.equal(other, zero))
    return relax.op.where(by_zero, context.emit(relax.op.divide(one, other)), down)


def _clamps_otherwise(node: Any) -> bool:
    """Whether it clamps integers, for which TVM's converter would need infinite bounds where one is left out, or has
    crossed bounds: then all becomes the upper one."""
    given = arguments(node)
    crossed = None not in (given["min"], given["max"]) and given["min"] > given["max"]
    return crossed or not node.args[0].meta["val"].dtype.is_floating_point


@converts("aten.clamp.Tensor")  # TVM's converter has infinite bounds where one is left out, which no integer is.
@converts("aten.clamp.default", when=_clamps_otherwise)
def clamp(context: Context, node: Any) -> Expr:
    """The larger of a value and its bound, then the smaller; of truths, which TVM does not compare, as numbers."""
    given, truths = arguments(node), info_of_value(node.meta["val"]).dtype == "bool"

    def operand(value: Any) -> Expr:
        made = _operand(context, node, value)
        return context.emit(relax.op.astype(made, "uint8")) if truths else made

    value = operand(given["self"])
    if given["min"] is not None:
        value = context.emit(relax.op.maximum(value, operand(given["min"])))
    if given["max"] is not None:
        value = context.emit(relax.op.minimum(value, operand(given["max"])))
    return relax.op.astype(value, "bool") if truths else value


@converts("aten.where.self", when=lambda node: len({arg.meta["val"].dtype for arg in node.args[1:3]}) > 1)
def either(context: Context, node: Any) -> Expr:
    """A choice between tensors of two types, both brought to the type of the result."""
    one, other = (_operand(context, node, arg) for arg in node.args[1:3])
    return relax.op.where(context.expr(node.args[0]), one, other)


@converts("aten.elu.default")
def elu(context: Context, node: Any) -> Expr:
    """scale * x where x is positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    given = arguments(node)
    value = below = context.expr(node.args[0])
    if given["input_scale"] != 1:
        below = context.emit(relax.op.multiply(below, _operand(context, node, given["input_scale"])))
    rise = context.emit(relax.op.subtract(context.emit(relax.op.exp(below)), _operand(context, node, 1)))
    rise = context.emit(relax.op.multiply(rise, _operand(context, node, given["alpha"])))
    negative = context.emit(relax.op.less(value, _operand(context, node, 0)))
    whole = context.emit(relax.op.where(negative, rise, value))
    return whole if given["scale"] == 1 else relax.op.multiply(whole, _operand(context, node, given["scale"]))


@converts("aten.pow.Tensor_Scalar")
def power(context: Context, node: Any) -> Expr:
    """Small whole powers as products: each bit of the exponent behind its first squares, and a 1 also multiplies."""
    base, exponent = node.args
    value = _operand(context, node, base)
    if exponent == 0.5:
        return relax.op.sqrt(value)
    if exponent not in (2, 3, 4, 5, 6, 7, 8):
        return _power(context, node, value, _operand(context, node, exponent))
    result = value
    for bit in bin(int(exponent))[3:]:
        result = context.emit(relax.op.multiply(result, result))
        result = context.emit(relax.op.multiply(result, value)) if bit == "1" else result
    return result


@converts("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def power_of_tensors(context: Context, node: Any) -> Expr:
    return _power(context, node, *(_operand(context, node, value) for value in node.args))


def _power(context: Context, node: Any, base: Expr, exponent: Expr) -> Expr:
    """A power; of integers by way of float64, as TVM has none of theirs."""
    dtype = info_of_value(node.meta["val"]).dtype
    if dtype.startswith("float"):
        return relax.op.power(base, exponent)
    wide = [context.emit(relax.op.astype(value, "float64")) for value in (base, exponent)]
    return relax.op.astype(context.emit(relax.op.power(*wide)), dtype)


@converts(*REDUCTIONS)
def reduction(context: Context, node: Any) -> Expr:
    """What is found along axes, and the indices of it. Several axes together count as one row."""
    value, (axes, keep) = context.expr(node.args[0]), _axes(node)
    of_values, *of_places = REDUCTIONS[str(node.target)]
    if not of_places:
        return of_values(value, axes, keep)
    values = context.emit(of_values(value, axes, keep))
    return [values, context.emit(of_places[0](value, axes[0] if axes else None, keep))]


@converts("aten.any.dim", "aten.any.dims")
def whether_any(context: Context, node: Any) -> Expr:
    """Whether any element is not 0, as NaN is. TVM's converter adds up numbers that are no truths."""
    value = context.expr(node.args[0])
    zero = constant(np.zeros((), info_of_value(node.args[0].meta["val"]).dtype))
    truths = zero.value.numpy().dtype == np.bool_
    there = value if truths else context.emit(relax.op.not_equal(value, zero))
    found = context.emit(relax.op.astype(there, "uint8"))
    if arguments(node).get("dim") != []:  # these are no dimensions here, and all of them elsewhere
        found = context.emit(relax.op.max(found, *_axes(node)))
    return relax.op.astype(found, info_of_value(node.meta["val"]).dtype)


@converts("aten.mean.dim")
def mean(context: Context, node: Any) -> Expr:
    """The mean. Without dimensions it is over all of them, which TVM's converter takes for over none."""
    return relax.op.mean(_operand(context, node, node.args[0]), *_axes(node))


@converts("aten.var_mean.correction", "aten.var_mean.dim")
def variance_and_mean(context: Context, node: Any) -> Expr:
    spread = context.emit(variance(context, node))
    return [spread, context.emit(relax.op.mean(context.expr(node.args[0]), *_axes(node)))]


@converts("aten.exp2.default")
def power_of_two(context: Context, node: Any) -> Expr:
    return relax.op.power(_operand(context, node, 2), _operand(context, node, node.args[0]))


@converts("aten.hypot.default")
def hypotenuse(context: Context, node: Any) -> Expr:
    """The root of the sum of squares; beside an infinity it is infinite, even if the other operand is NaN."""
    values = [_operand(context, node, arg) for arg in node.args]
    one, other = (context.emit(relax.op.multiply(value, value)) for value in values)
    root = context.emit(relax.op.sqrt(context.emit(relax.op.add(one, other))))
    endless = _operand(context, node, math.inf)
    there = [context.emit(relax.op.equal(context.emit(relax.op.abs(value)), endless)) for value in values]
    return relax.op.where(context.emit(relax.op.logical_or(*there)), endless, root)


@converts("aten.linalg_vector_norm.default")
def norm(context: Context, node: Any) -> Expr:
    """A vector norm. Order 0 counts what is not 0; infinite orders take the largest or the smallest magnitude."""
    order, (axes, keep) = float(arguments(node)["ord"]), _axes(node)
    value = _operand(context, node, node.args[0])
    if order == 2:
        return relax.op.sqrt(context.emit(relax.op.sum(context.emit(relax.op.multiply(value, value)), axes, keep)))
    value = context.emit(relax.op.abs(value))
    if math.isinf(order):
        return (relax.op.max if order > 0 else relax.op.min)(value, axes, keep)
    if order == 0:
        there = context.emit(relax.op.not_equal(value, _operand(context, node, 0)))
        return relax.op.sum(context.emit(relax.op.astype(there, info_of_value(node.meta["val"]).dtype)), axes, keep)
    if order == 1:
        return relax.op.sum(value, axes, keep)
    powers = context.emit(relax.op.power(value, _operand(context, node, order)))
    return relax.op.power(context.emit(relax.op.sum(powers, axes, keep)), _operand(context, node, 1 / order))


@converts("aten.var.dim", "aten.var.correction")
def variance(context: Context, node: Any) -> Expr:
    """The variance with a divisor of ``count - correction``, by a factor on Relax's, which divides by ``count``."""
    given = arguments(node)
    axes, keep = _axes(node)
    shape = node.args[0].meta["val"].shape
    count = math.prod(shape) if axes is None else math.prod(shape[axis] for axis in axes)
    correction = given["correction"] if "correction" in given else int(given["unbiased"])
    less = 1 if correction is None else correction
    need(count > less, f"it divides by {count} - {less}")
    spread = context.emit(relax.op.variance(context.expr(node.args[0]), axes, keep))
    return spread if less == 0 else relax.op.multiply(spread, _operand(context, node, count / (count - less)))


def _axes(node: Any) -> tuple[list[int] | None, bool]:
    """The dimensions to reduce, None for all, and whether they stay with extent 1."""
    given = arguments(node)
    dim, keep = given.get("dim"), bool(given.get("keepdim", False))
    if dim is None or dim == []:
        return None, keep
    rank = len(node.args[0].meta["val"].shape)
    return [axis % rank for axis in ([dim] if isinstance(dim, int) else dim)], keep


@converts("aten.layer_norm.default")
def layer_norm(context: Context, node: Any) -> Expr:
    given = arguments(node)
    shape = [int(extent) for extent in given["normalized_shape"]]
    axes = list(range(-len(shape), 0))
    return relax.op.nn.layer_norm(context.expr(node.args[0]), *_factors(context, given, shape), axes, given["eps"])


@converts("aten.group_norm.default")
def group_norm(context: Context, node: Any) -> Expr:
    """A group norm. Where there are channels alone, each gets an axis of one pixel for the time of the norm."""
    given, shape = arguments(node), [int(extent) for extent in node.meta["val"].shape]
    data, factors = context.expr(node.args[0]), _factors(context, given, shape[1:2])
    if len(shape) == 2:
        data = context.emit(relax.op.reshape(data, (*shape, 1)))
    axes = list(range(2, max(len(shape), 3)))
    result = relax.op.nn.group_norm(data, *factors, int(given["num_groups"]), 1, axes, given["eps"])
    return relax.op.reshape(context.emit(result), shape) if len(shape) == 2 else result


def _factors(context: Context, given: Mapping[str, Any], shape: list[int]) -> list[Expr]:
    """The scale and shift of a norm; 1 and 0 where the program has none."""
    missing = {"weight": np.ones(shape, np.float32), "bias": np.zeros(shape, np.float32)}
    return [constant(value) if given[name] is None else context.expr(given[name]) for name, value in missing.items()]


# Operators on truth values, which TVM's converter takes for numbers.

COMPARISONS: Final = {row.aten: of_relax(row.relax) for row in pointwise.ROWS if row.aten and _compares(row)}


def _of_truths(node: Any) -> bool:
    return all(_is_truth(value) for value in node.args[:2])


def _is_truth(value: Any) -> bool:
    return value in (0, 1) if not hasattr(value, "meta") else str(value.meta["val"].dtype) == "torch.bool"


def _of_a_fraction(node: Any) -> bool:
    """Whether integers are compared with a float, which TVM's converter cuts off to their type."""
    one, other = node.args[:2]
    return isinstance(other, float) and hasattr(one, "meta") and not one.meta["val"].dtype.is_floating_point


def _as_number(context: Context, value: Any, dtype: str = "int32") -> Expr:
    if not hasattr(value, "meta"):
        return constant(np.array(value, dtype))
    return context.emit(relax.op.astype(context.expr(value), dtype))


@converts("aten.mul.Tensor", when=lambda node: str(node.meta["val"].dtype) == "torch.bool")
def both(context: Context, node: Any) -> Expr:
    """A product of truth values, which is 1 where both are."""
    one, other = (_as_number(context, value) for value in node.args[:2])
    return relax.op.astype(context.emit(relax.op.multiply(one, other)), "bool")


@converts(
    *(f"aten.{name}" for name in ("maximum.default", "max.other", "minimum.default", "min.other")), when=_of_truths
)
def extreme_truths(context: Context, node: Any) -> Expr:
    largest = "max" in str(node.target)
    return (relax.op.logical_or if largest else relax.op.logical_and)(*map(context.expr, node.args))


@converts(
    *(f"aten.{name}.{kind}" for name in COMPARISONS for kind in ("Scalar", "Tensor")),
    when=lambda node: _of_truths(node) or _of_a_fraction(node),
)
def compared(context: Context, node: Any) -> Expr:
    dtype = "float32" if _of_a_fraction(node) else "int32"
    one, other = (_as_number(context, value, dtype) for value in node.args[:2])
    return COMPARISONS[str(node.target).split(".")[1]](one, other)


# Operators on pairs: sums of products, and distances of all rows from each other. Leaky ReLU with a drawn slope.


@converts("aten._trilinear.default")
def trilinear(context: Context, node: Any) -> Expr:
    """A sum of products of three tensors, broadcast along further dimensions, as ``nn.Bilinear`` computes."""
    given = arguments(node)
    total: Any = None
    for name, expand in (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")):
        factor = context.expr(given[name])
        if given[expand]:
            factor = context.emit(relax.op.expand_dims(factor, sorted(given[expand])))
        total = factor if total is None else context.emit(relax.op.multiply(total, factor))
    return relax.op.sum(total, list(given["sumdim"]))


@converts("aten._cdist_forward.default")
def distances(context: Context, node: Any) -> Expr:
    """The distance of each row of the first from each row of the second, by the norm of order ``p``."""
    given = arguments(node)
    order = float(given["p"])
    need(order in (1.0, 2.0, math.inf), f"p={order:g} is not supported; 1, 2 and infinity are")
    rank = len(given["x1"].meta["val"].shape)
    one = context.emit(relax.op.expand_dims(context.expr(given["x1"]), [rank - 1]))
    other = context.emit(relax.op.expand_dims(context.expr(given["x2"]), [rank - 2]))
    apart = context.emit(relax.op.subtract(one, other))
    if order == 2:
        squares = context.emit(relax.op.multiply(apart, apart))
        return relax.op.sqrt(context.emit(relax.op.sum(squares, [rank])))
    return (relax.op.sum if order == 1 else relax.op.max)(context.emit(relax.op.abs(apart)), [rank])


@converts("aten.rrelu_with_noise_functional.default", "aten.rrelu_with_noise.default")
def leaky(context: Context, node: Any) -> Expr:
    """Randomised leaky ReLU, which in inference has the mean of its slopes; only training draws one."""
    given = arguments(node)
    need(not given["training"], "it draws random numbers; call model.eval() before exporting")
    value = context.expr(node.args[0])
    slope, zero = (constant(np.array(number, np.float32)) for number in ((given["lower"] + given["upper"]) / 2, 0))
    below = context.emit(relax.op.multiply(context.emit(relax.op.minimum(value, zero)), slope))
    above = context.emit(relax.op.maximum(value, zero))
    result = relax.op.add(above, below)
    return result if not isinstance(node.meta["val"], (list, tuple)) else [context.emit(result)]
