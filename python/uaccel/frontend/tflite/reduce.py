"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX and ARG_MIN on int8 and int16 activations."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.tflite.checks import axis_numbers, need_equal_quantisation, need_sum_in_32_bits
from uaccel.frontend.tflite.convert import INTEGER_ACTIVATIONS, Context, Expr, converts, need_dtype
from uaccel.frontend.tflite.reader import Operator
from uaccel.ops.arg_extreme import ArgExtremeAttrs, ArgMax, ArgMin
from uaccel.ops.base import get
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.reduce import (
    LONGEST,
    ReduceAttrs,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceSum,
    ReduceSumAttrs,
    loop_extents,
    reduced_elements,
)
from uaccel.tvm_api import relax


def _axes(operator: Operator) -> tuple[int, ...]:
    """Ascending and each once, as the reference resolves them."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, (data.info.dtype,), "output")
    axes = tuple(sorted(set(axis_numbers(operator.required_input(1), data))))
    runs = len(loop_extents(data.info.shape, axes))
    need(runs <= LONGEST, f"axes {axes} of {data.info} are more than two separate runs; reduce in two steps")
    return axes


def _keep_dims(operator: Operator) -> bool:
    return bool(operator.option("KeepDims"))


@converts("MEAN", "SUM")
def mean_or_sum(context: Context, operator: Operator) -> Expr:
    data, output, axes = operator.required_input(0), operator.outputs[0], _axes(operator)
    need_sum_in_32_bits(data, reduced_elements(data.info.shape, axes))
    multiplier, shift = quantize_multiplier(data.scale / output.scale)
    points = (data.zero_point, output.zero_point)
    attrs = ReduceSumAttrs(axes, _keep_dims(operator), *points, multiplier, shift)
    reduction = ReduceMean if operator.name == "MEAN" else ReduceSum
    return get(reduction)(context.expr(data), attrs=attrs)


@converts("REDUCE_MAX", "REDUCE_MIN")
def extreme(context: Context, operator: Operator) -> Expr:
    data = operator.required_input(0)
    attrs = ReduceAttrs(_axes(operator), _keep_dims(operator))
    need_equal_quantisation(data, operator.outputs[0])
    reduction = ReduceMax if operator.name == "REDUCE_MAX" else ReduceMin
    return get(reduction)(context.expr(data), attrs=attrs)


def _has_order(operator: Operator) -> bool:
    return operator.required_input(0).info.dtype in (*INTEGER_ACTIVATIONS, "float32")


@converts("ARG_MAX", "ARG_MIN", when=_has_order)
def arg_extreme(context: Context, operator: Operator) -> Expr:
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(output, ("int32", "int64"), "output")
    axes = axis_numbers(operator.required_input(1), data)
    need(len(axes) == 1, f"{len(axes)} axes given, wanted 1")
    if data.info.dtype == "float32":
        search = relax.op.argmax if operator.name == "ARG_MAX" else relax.op.argmin
        return relax.op.astype(search(context.expr(data), axes[0]), output.info.dtype)
    attrs = ArgExtremeAttrs(axes[0], output.info.dtype)
    return get(ArgMax if operator.name == "ARG_MAX" else ArgMin)(context.expr(data), attrs=attrs)
