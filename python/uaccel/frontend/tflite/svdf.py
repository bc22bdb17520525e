"""SVDF on int8 frames with a state of int8 or int16, and in float."""

from __future__ import annotations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.tflite.convert import (
    Context,
    Update,
    bias_values,
    converts,
    factor,
    is_number,
    need_constant,
    need_dtype,
)
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.ops.base import constant, get
from uaccel.ops.svdf import Svdf, SvdfAttrs
from uaccel.ops.svdf_float import SvdfFloat, SvdfFloatAttrs


def need_variable(context: Context, tensor: Tensor, role: str) -> None:
    need(tensor.index in context.variables, f'{role} "{tensor.name}" is no variable tensor')


def need_zero_points(*tensors: Tensor) -> None:
    """In the range of what is stored; of 16 bits it is 0."""
    for tensor in tensors:
        limits, point = np.iinfo(tensor.info.dtype), tensor.zero_point
        fits = point == 0 if tensor.info.dtype == "int16" else limits.min <= point <= limits.max
        need(fits, f'{tensor.info.dtype} "{tensor.name}" has zero point {point}, which cannot be')


@converts("SVDF", when=is_number)
def svdf(context: Context, operator: Operator) -> Update:
    """The fused activation of integers means nothing to the reference: the output's quantisation holds it."""
    data, features, times = (operator.required_input(i) for i in range(3))
    state, output = operator.required_input(4), operator.outputs[0]
    for tensor in (data, features, times):
        need(len(tensor.info.shape) == 2, f'"{tensor.name}" has rank {len(tensor.info.shape)}, wanted 2')
    rank, filters = operator.options.Rank(), features.info.shape[0]
    need(rank > 0 and filters % rank == 0, f"{filters} filters are no multiple of rank {rank}")
    if data.info.dtype == "float32":
        return _svdf_float(context, operator)
    need_dtype(data, ("int8",), "input")
    need_dtype(output, ("int8",), "output")
    need_dtype(features, ("int8",), "feature weights")
    need_dtype(state, ("int8", "int16"), "state")
    need_dtype(times, (state.info.dtype,), "time weights")
    need_variable(context, state, "state")
    need_zero_points(data, state, output)
    bias = bias_values(operator.optional_input(3), filters // rank, data)
    attrs = SvdfAttrs(
        rank=rank,
        input_zero_point=data.zero_point,
        state_zero_point=state.zero_point,
        output_zero_point=output.zero_point,
        **factor("feature", data.scale * features.scale / state.scale),
        **factor("output", state.scale * times.scale / output.scale),
    )
    weights = (need_constant(features, "feature weights"), need_constant(times, "time weights"), bias)
    call = get(Svdf)(context.expr(data), context.expr(state), *map(constant, weights), attrs=attrs)
    return Update(call, (state,))


def _svdf_float(context: Context, operator: Operator) -> Update:
    given = [operator.required_input(i) for i in (0, 4, 1, 2)]
    _, state, features, _ = given
    for tensor in (*given, operator.outputs[0]):
        need_dtype(tensor, ("float32",), "operand")
    need_variable(context, state, "state")
    name = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(name in ("NONE", "RELU"), f"activation {name} is not supported; an SVDF with RELU or none can be compiled")
    rank = operator.options.Rank()
    bias = operator.optional_input(3)
    first = constant(np.zeros(features.info.shape[0] // rank, np.float32)) if bias is None else context.expr(bias)
    call = get(SvdfFloat)(*map(context.expr, given), first, attrs=SvdfFloatAttrs(rank, int(name == "RELU")))
    return Update(call, (state,))
