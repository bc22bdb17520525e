"""Converts TFLite's reductions along axes, ARG_MAX and ARG_MIN, ADD_N and CUMSUM."""

from __future__ import annotations

from functools import reduce

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.converters import always, otherwise
from uaccel.frontend.tflite import checks
from uaccel.frontend.tflite.checks import is_int8, need_dtype, need_one_scale, need_same_type
from uaccel.frontend.tflite.converter import INTEGERS, Context, Expr, converts, need_numbers
from uaccel.frontend.tflite.elementwise import SUM_LEFT_SHIFT, fraction
from uaccel.frontend.tflite.floats import as_bytes, real, stored
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.ops import exact
from uaccel.ops import reduce as reductions
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.operator import constant, get
from uaccel.ops.quantize import Requantize, RequantizeAttrs
from uaccel.tvm_api import relax

# MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX and ARG_MIN on int8 and int16 activations.


def _axes(operator: Operator) -> tuple[int, ...]:
    """The axes in ascending order without duplicates, as the reference resolves them."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    axes = tuple(sorted(set(checks.axis_numbers(operator.required_input(1), data))))
    runs = len(reductions.loop_extents(data.info.shape, axes))
    need(runs <= reductions.LONGEST, f"axes {axes} of {data.info} are more than two separate runs; reduce in two steps")
    return axes


def _keep_dims(operator: Operator) -> bool:
    return bool(operator.option("KeepDims"))


@converts("MEAN", "SUM")
def mean_or_sum(context: Context, operator: Operator) -> Expr:
    data, output, axes = operator.required_input(0), operator.outputs[0], _axes(operator)
    checks.need_sum_in_32_bits(data, reductions.reduced_elements(data.info.shape, axes))
    multiplier, shift = quantize_multiplier(data.scale / output.scale)
    points = (data.zero_point, output.zero_point)
    attrs = reductions.ReduceSumAttrs(axes, _keep_dims(operator), *points, multiplier, shift)
    reduction = reductions.ReduceMean if operator.name == "MEAN" else reductions.ReduceSum
    return get(reduction)(context.expr(data), attrs=attrs)


@converts("REDUCE_MAX", "REDUCE_MIN")
def extreme(context: Context, operator: Operator) -> Expr:
    data = operator.required_input(0)
    attrs = reductions.ReduceAttrs(_axes(operator), _keep_dims(operator))
    checks.need_equal_quantisation(data, operator.outputs[0])
    reduction = reductions.ReduceMax if operator.name == "REDUCE_MAX" else reductions.ReduceMin
    return get(reduction)(context.expr(data), attrs=attrs)


@converts("ARG_MAX", "ARG_MIN", when=always)
def arg_extreme(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    checks.need_asked_type(operator, "OutputType")
    axes = checks.axis_numbers(operator.required_input(1), data)
    need(len(axes) == 1, f"{len(axes)} axes given, wanted 1")
    if data.info.dtype not in INTEGERS:
        search = relax.op.argmax if operator.name == "ARG_MAX" else relax.op.argmin
        return relax.op.astype(search(as_bytes(context, data), axes[0]), output.info.dtype)
    attrs = reductions.ArgExtremeAttrs(axes[0], output.info.dtype)
    return get(reductions.ArgMax if operator.name == "ARG_MAX" else reductions.ArgMin)(context.expr(data), attrs=attrs)


# Reductions of other types, and in float those of uint8.

REDUCTIONS = {
    "MEAN": relax.op.mean,
    "SUM": relax.op.sum,
    "REDUCE_MAX": relax.op.max,
    "REDUCE_MIN": relax.op.min,
    "REDUCE_PROD": relax.op.prod,
    "REDUCE_ALL": relax.op.min,
    "REDUCE_ANY": relax.op.max,
}


@converts(*REDUCTIONS, when=otherwise)
def reduction(context: Context, operator: Operator) -> Expr:
    """Reduces along each named axis once, however often it is named."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_same_type(data, output)
    truths = operator.name in ("REDUCE_ALL", "REDUCE_ANY")
    need(data.info.dtype == "bool" or not truths, f'input "{data.name}" is {data.info.dtype}, supported is bool')
    need(operator.name != "MEAN" or data.info.dtype != "bool", f'input "{data.name}" is bool, supported are numbers')
    axes = sorted(set(checks.axis_numbers(operator.required_input(1), data)))
    if not axes:
        return stored(real(context, data), output)
    result = REDUCTIONS[operator.name](as_bytes(context, data), axes, _keep_dims(operator))
    return relax.op.astype(result, "bool") if data.info.dtype == "bool" else stored(result, output)


# ADD_N and CUMSUM: sums of several tensors, and running sums.

# The reference adds as ADD does, at twice the inputs' common scale and 20 bits finer: a raise by 20 - 1 bits in all.
HALVED = SUM_LEFT_SHIFT["int8"] - 1


def _to_output(data: Tensor, output: Tensor) -> tuple[int, int]:
    """Multiplier and shift from a raised sum to the output."""
    real = 2.0 * data.scale / ((1 << SUM_LEFT_SHIFT["int8"]) * output.scale)
    return fraction(real, "relative scale of the sum")


@converts("ADD_N", when=is_int8)
def add_n(context: Context, operator: Operator) -> Expr:
    """Converts ADD_N; like the reference's, the sum takes the inputs' zero point off once more than it has inputs."""
    output = operator.outputs[0]
    tensors = [operator.required_input(number) for number in range(len(operator.inputs))]
    for tensor in (*tensors, output):
        need_dtype(tensor, ("int8",), "input")
        need_one_scale(tensor)
        need(tensor.info.shape == output.info.shape, f"{tensor.info} and {output.info} have different shapes")
    for tensor in tensors[1:]:
        checks.need_equal_quantisation(tensors[0], tensor)
    wide = [relax.op.astype(context.expr(tensor), "int32") for tensor in tensors]
    start = constant(np.array(-tensors[0].zero_point * (len(tensors) + 1), np.int32))
    total = relax.op.add(reduce(relax.op.add, wide), start)
    raised = relax.op.left_shift(total, constant(np.array(HALVED, np.int32)))
    scale = (*_to_output(tensors[0], output), *exact.limits("int8"))
    attrs = RequantizeAttrs(0, output.zero_point, *scale, output.info.dtype)
    return get(Requantize)(raised, attrs=attrs)


@converts("CUMSUM", when=always)
def cumsum(context: Context, operator: Operator) -> Expr:
    data, output, options = operator.required_input(0), operator.outputs[0], operator.options
    need_same_type(data, output)
    need_dtype(data, ("int8", "int32", "int64", "float32"), "input")
    (number,) = need_numbers(context, operator.required_input(1), "axis", 1)
    axis = need_axis(number, len(data.info.shape))
    if data.info.dtype != "int8":
        expr, reverse = context.expr(data), bool(options.Reverse())
        turned = relax.op.flip(expr, axis) if reverse else expr
        sums = relax.op.cumsum(turned, axis, exclusive=bool(options.Exclusive()))
        return relax.op.flip(sums, axis) if reverse else sums
    need_one_scale(data, output)
    flags, points = (int(options.Exclusive()), int(options.Reverse())), (data.zero_point, output.zero_point)
    scale = (*_to_output(data, output), *exact.limits("int8"))
    attrs = reductions.CumsumAttrs(axis, *flags, HALVED, *points, *scale)
    return get(reductions.Cumsum)(context.expr(data), attrs=attrs)
