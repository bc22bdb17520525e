"""Converts TFLite's operators that few models have: one-hot vectors, reversed sequences, buckets, StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_dtype, need_output, need_same_type, need_shape
from uaccel.frontend.tflite.converter import Context, Expr, constant_value, converts, need_known, need_numbers
from uaccel.frontend.tflite.floats import ARITHMETIC, ELEMENTWISE, FLOATS, OF_REALS, is_stepped
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops import pointwise
from uaccel.ops.operator import constant, info_of
from uaccel.tvm_api import relax

NUMBERS = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint32")
INDEX_TYPES = ("int32", "int64")


@converts("ONE_HOT", when=always)
def one_hot(context: Context, operator: Operator) -> Expr:
    """Gives ``on`` where the position along the new axis is the index, else ``off``."""
    indices, _, on, off = (operator.required_input(number) for number in range(4))
    output, shape = operator.outputs[0], indices.info.shape
    need_dtype(indices, INDEX_TYPES, "indices")
    (depth,) = need_numbers(context, operator.required_input(1), "depth", 1)
    need(depth > 0, f"depth {depth} must be positive")
    axis = need_axis(operator.option("Axis"), len(shape) + 1)
    need_shape(output, [*shape[:axis], depth, *shape[axis:]])
    values = []
    for tensor in (on, off):
        need_same_type(tensor, output)
        need(tensor.info.elements == 1, f'"{tensor.name}" has {tensor.info.elements} elements, wanted 1')
        values.append(relax.op.reshape(context.expr(tensor), ()))
    positions = np.arange(depth, dtype=indices.info.dtype).reshape([depth, *[1] * (len(shape) - axis)])
    same = relax.op.equal(relax.op.expand_dims(context.expr(indices), axis), constant(positions))
    return relax.op.where(same, *values)


@converts("SCATTER_ND", when=always)
def scatter_nd(context: Context, operator: Operator) -> Expr:
    """Adds the updates to zeros at their indices, those of one place up, as the reference does."""
    indices, updates, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(indices, INDEX_TYPES, "indices")
    need_same_type(updates, output)
    need(output.info.dtype != "bool", "updates are bool; wanted numbers")
    shape, rank = output.info.shape, len(indices.info.shape)
    need_shape(output, need_known(context, operator.required_input(2), "shape").reshape(-1).tolist())
    count = indices.info.shape[-1] if rank else 0
    need(0 < count <= len(shape), f"indices {indices.info} do not fit output {output.info}")
    wanted = (*indices.info.shape[:-1], *shape[count:])
    need(updates.info.shape == wanted, f"updates {updates.info} do not fit indices {indices.info} of {output.info}")
    known = constant_value(context, indices)
    inside = known is None or bool(((known >= 0) & (known < shape[:count])).all())
    need(inside, f"an index lies outside of output {output.info}")
    context.budget.bytes(output.info.size)
    zeros = constant(np.zeros(shape, output.info.dtype))
    return relax.op.scatter_nd(zeros, context.expr(indices), context.expr(updates), "add")


@converts("REVERSE_SEQUENCE", when=always)
def reverse_sequence(context: Context, operator: Operator) -> Expr:
    """Turns the first elements of each sequence round; a length that is too large at run time turns all of them."""
    data, lengths, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    shape = data.info.shape
    along, batch = (need_axis(operator.option(name), len(shape)) for name in ("SeqDim", "BatchDim"))
    need(along != batch, f"sequences and batches lie both along axis {along}")
    need_dtype(lengths, INDEX_TYPES, "lengths")
    fits = lengths.info.shape == shape[batch : batch + 1]
    need(fits, f"lengths {lengths.info} do not fit the {shape[batch]} sequences of {data.info}")
    need_output(data, output, shape)
    known = constant_value(context, lengths)
    if known is not None:
        inside = bool(((known >= 0) & (known <= shape[along])).all())
        need(inside, f"lengths {known.tolist()} are not between 0 and the {shape[along]} elements of axis {along}")
    low, high = (constant(np.array(bound, lengths.info.dtype)) for bound in (0, shape[along]))
    counts = relax.op.minimum(relax.op.maximum(context.expr(lengths), low), high)
    return relax.op.reverse_sequence(context.expr(data), counts, along, batch)


@converts("DILATE", when=always)
def dilate(context: Context, operator: Operator) -> Expr:
    """Puts copies of one value between the elements along each axis."""
    data, filling, output = operator.required_input(0), operator.required_input(2), operator.outputs[0]
    need_same_type(data, output)
    need_same_type(filling, output)
    need(filling.info.elements == 1, f'"{filling.name}" has {filling.info.elements} elements, wanted 1')
    shape = list(data.info.shape)
    steps = need_numbers(context, operator.required_input(1), "dilations", len(shape))
    need(all(step > 0 for step in steps), f"dilations {steps} must be positive")
    need_shape(output, [(extent - 1) * step + 1 for extent, step in zip(shape, steps, strict=True)])
    expr, value = context.expr(data), relax.op.reshape(context.expr(filling), ())
    for axis, (extent, step) in enumerate(zip(data.info.shape, steps, strict=True)):
        if step == 1 or extent == 1:
            continue
        wide = relax.op.expand_dims(expr, axis + 1)
        between = relax.op.broadcast_to(value, (*shape[: axis + 1], step - 1, *shape[axis + 1 :]))
        spread = relax.op.concat([wide, between], axis=axis + 1)
        spread = relax.op.reshape(spread, (*shape[:axis], extent * step, *shape[axis + 1 :]))
        shape[axis] = (extent - 1) * step + 1
        expr = relax.op.strided_slice(spread, axes=[axis], begin=[0], end=[shape[axis]])
    return expr


@converts("BUCKETIZE", when=always)
def bucketize(context: Context, operator: Operator) -> Expr:
    """Counts for each element the boundaries that it has reached."""
    data, output, options = operator.required_input(0), operator.outputs[0], operator.options
    need_dtype(data, ("float32", "float64", *INDEX_TYPES), "input")
    need_dtype(output, ("int32",), "output")
    need_shape(output, data.info.shape)
    ends = np.array([options.Boundaries(number) for number in range(options.BoundariesLength())], np.float32)
    need(len(ends) > 0 and bool((np.diff(ends) >= 0).all()), "its boundaries are missing, or not in ascending order")
    context.budget.bytes(4 * data.info.elements * len(ends))
    wide = relax.op.expand_dims(relax.op.astype(context.expr(data), "float32"), -1)
    reached = relax.op.greater_equal(wide, constant(ends))
    return relax.op.sum(relax.op.astype(reached, "int32"), axis=-1)


# StableHLO's elementwise operators, which have no options: most compute what one of TFLite's does.

SAME_AS: Mapping[str, str] = {f"STABLEHLO_{row.hlo}": row.tflite for row in pointwise.ROWS if row.hlo}


def _cube_root(x: Expr) -> Expr:
    third = relax.op.power(relax.op.abs(x), constant(np.asarray(1 / 3, info_of(x).dtype)))
    return relax.op.multiply(relax.op.sign(x), third)


def _remainder(one: Expr, other: Expr) -> Expr:
    """Has the sign of the dividend, as C's ``%`` and ``fmod``."""
    rest = relax.op.mod(relax.op.abs(one), relax.op.abs(other))
    return relax.op.multiply(relax.op.sign(one), rest)


OWN: Mapping[str, tuple[int, Callable[..., Expr]]] = {
    "STABLEHLO_CBRT": (1, _cube_root),
    "STABLEHLO_REMAINDER": (2, _remainder),
    "STABLEHLO_CLAMP": (3, lambda low, x, high: relax.op.minimum(relax.op.maximum(x, low), high)),
}
ONLY_FLOATS = (*OF_REALS, "POW", "STABLEHLO_CBRT")


@converts(*SAME_AS, *OWN, when=always)
def stable_hlo(context: Context, operator: Operator) -> Expr:
    given, output = [operator.required_input(number) for number in range(len(operator.inputs))], operator.outputs[0]
    same = SAME_AS.get(operator.name, operator.name)
    meanings = {**dict.fromkeys(ARITHMETIC, 2), **dict.fromkeys((*ELEMENTWISE, *OF_REALS), 1)}
    functions: Mapping[str, Callable[..., Expr]] = {**ARITHMETIC, **ELEMENTWISE, **OF_REALS}
    wanted, compute = OWN[same] if same in OWN else (meanings[same], functions[same])
    need(len(given) == wanted, f"it has {len(given)} inputs, wanted {wanted}")
    for tensor in given:
        need(not is_stepped(tensor), f'"{tensor.name}" has a scale; wanted plain numbers')
        need_dtype(tensor, FLOATS if same in ONLY_FLOATS else NUMBERS, "input")
        need_output(tensor, output, tensor.info.shape)
    exprs = [context.expr(tensor) for tensor in given]
    if same == "NEG" and output.info.dtype == "uint32":  # It wraps around; TFLite's own operator takes none.
        return relax.op.subtract(constant(np.array(0, "uint32")), *exprs)
    result: Expr = compute(*exprs)
    return result


@converts("STABLEHLO_AND", "STABLEHLO_OR", when=always)
def stable_hlo_bits(context: Context, operator: Operator) -> Expr:
    """Works on truths, or on each bit of integers."""
    first, second, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    both = operator.name == "STABLEHLO_AND"
    for tensor in (first, second):
        need(not is_stepped(tensor), f'"{tensor.name}" has a scale; wanted plain numbers')
        need_dtype(tensor, ("bool", *NUMBERS[len(FLOATS) :]), "input")
        need_output(tensor, output, tensor.info.shape)
    given = (context.expr(first), context.expr(second))
    if output.info.dtype == "bool":
        return (relax.op.logical_and if both else relax.op.logical_or)(*given)
    return (relax.op.bitwise_and if both else relax.op.bitwise_or)(*given)


@converts("STABLEHLO_SELECT", when=always)
def stable_hlo_select(context: Context, operator: Operator) -> Expr:
    picks, output = operator.required_input(0), operator.outputs[0]
    chosen = [operator.required_input(number) for number in (1, 2)]
    need_dtype(picks, ("bool",), "condition")
    fits = picks.info.shape in ((), output.info.shape)
    need(fits, f"condition {picks.info} does not fit output {output.info}")
    for tensor in chosen:
        need(not is_stepped(tensor), f'"{tensor.name}" has a scale; wanted plain numbers')
        need_output(tensor, output, tensor.info.shape)
    return relax.op.where(context.expr(picks), *map(context.expr, chosen))
