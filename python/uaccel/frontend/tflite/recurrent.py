"""Converts TFLite's layers with state: SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM and the simple cells of two others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.frontend.converters import always, otherwise
from uaccel.frontend.tflite.checks import need_constant, need_dtype, need_possible_shift
from uaccel.frontend.tflite.converter import Context, Expr, Update, apply, bias_values, converts, factor
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.model import Array
from uaccel.ops.activation import sigmoid_points
from uaccel.ops.fixedpoint import quantize_multiplier
from uaccel.ops.operator import constant, get
from uaccel.ops.recurrent import LSTM, LSTM_GATES, RNN, SQUASHED, Lstm, LstmAttrs, Recurrent, RecurrentAttrs
from uaccel.ops.svdf import Svdf, SvdfAttrs, SvdfFloat, SvdfFloatAttrs
from uaccel.tvm_api import relax

# SVDF on int8 frames with a state of int8 or int16, and in float.


def need_variable(context: Context, tensor: Tensor, role: str) -> None:
    need(tensor.index in context.variables, f'{role} "{tensor.name}" is no variable tensor')


def need_zero_points(*tensors: Tensor) -> None:
    """Refuses zero points outside the stored type, and any but 0 for int16."""
    for tensor in tensors:
        limits, point = np.iinfo(tensor.info.dtype), tensor.zero_point
        fits = point == 0 if tensor.info.dtype == "int16" else limits.min <= point <= limits.max
        need(fits, f'{tensor.info.dtype} "{tensor.name}" has zero point {point}, which cannot be')


def checked_svdf(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """The input, the weights of features and those of time, whose ranks fit."""
    data, features, times = (operator.required_input(i) for i in range(3))
    for tensor in (data, features, times):
        need(len(tensor.info.shape) == 2, f'"{tensor.name}" has rank {len(tensor.info.shape)}, wanted 2')
    rank, filters = operator.options.Rank(), features.info.shape[0]
    need(rank > 0 and filters % rank == 0, f"{filters} filters are no multiple of rank {rank}")
    return data, features, times


def svdf_relu(operator: Operator) -> int:
    """Whether an SVDF of floats ends in RELU, the one activation that can be compiled."""
    name = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(name in ("NONE", "RELU"), f"activation {name} is not supported; an SVDF with RELU or none can be compiled")
    return int(name == "RELU")


@converts("SVDF", when=otherwise)
def svdf(context: Context, operator: Operator) -> Update:
    """Converts SVDF; on integers the reference ignores the fused activation, which the output's range implies."""
    data, features, times = checked_svdf(operator)
    state, output = operator.required_input(4), operator.outputs[0]
    rank, filters = operator.options.Rank(), features.info.shape[0]
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
    relu, rank = svdf_relu(operator), operator.options.Rank()
    bias = operator.optional_input(3)
    first = constant(np.zeros(features.info.shape[0] // rank, np.float32)) if bias is None else context.expr(bias)
    call = get(SvdfFloat)(*map(context.expr, given), first, attrs=SvdfFloatAttrs(rank, relu))
    return Update(call, (state,))


# UNIDIRECTIONAL_SEQUENCE_LSTM on int8 and int16 vectors, with a cell state of 16 bits, and in float.

# Positions of the inputs: each kind has one for each of the four gates in a row, peepholes have three.
WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, HIDDEN, CELL, NORMS = 1, 5, 9, 12, 16, 18, 19, 20
GATE_UNIT = 2.0**-12  # A step of the sums before a gate's sigmoid or tanh.
FRACTION = 2.0**-15  # A step of a gate's result.
# Powers of two that the cell state's scale may be: tanh's factor 3 << (12 + power) is below 2**15, and its right shift
# -12 - power at most 15.
FINEST, COARSEST = -27, 1


@converts("UNIDIRECTIONAL_SEQUENCE_LSTM", when=otherwise)
def lstm(context: Context, operator: Operator) -> Update:
    refuse_extras(operator)
    data, output = operator.required_input(0), operator.outputs[0]
    hidden, cell = operator.required_input(HIDDEN), operator.required_input(CELL)
    need_dtype(output, (data.info.dtype,), "output")
    need_dtype(hidden, (data.info.dtype,), "hidden state")
    need_variable(context, hidden, "hidden state")
    need_variable(context, cell, "cell state")
    if data.info.dtype == "float32":
        return _lstm_float(context, operator)
    need_dtype(data, ("int8", "int16"), "input")
    need_dtype(cell, ("int16",), "cell state")
    need_zero_points(data, hidden, cell)
    wide = data.info.dtype == "int16"
    weights, recurrent = (gates_of(operator, first, ("int8",), "weights") for first in (WEIGHTS, RECURRENT))
    biases = gates_of(operator, BIASES, ("int64",) if wide else ("int32",), "bias")
    parameters = (
        *(_stacked(tensors, "weights") for tensors in (weights, recurrent)),
        *(_stacked(biases, "bias"), _scales(data, weights, hidden, recurrent), sigmoid_points()),
    )
    call = get(Lstm)(
        *(context.expr(tensor) for tensor in (data, hidden, cell)),
        *map(constant, parameters),
        attrs=_attributes(operator, data, hidden, cell),
    )
    return Update(call, (hidden, cell))


def _lstm_float(context: Context, operator: Operator) -> Update:
    data, hidden, cell = (operator.required_input(i) for i in (0, HIDDEN, CELL))
    need_dtype(cell, ("float32",), "cell state")
    parameters = [
        _stacked(gates_of(operator, first, ("float32",), role), role)
        for first, role in ((WEIGHTS, "weights"), (RECURRENT, "weights"), (BIASES, "bias"))
    ]
    clip = float(np.float32(operator.options.CellClip()))
    functions = " ".join(SQUASHED[LSTM])
    time_major = int(operator.options.TimeMajor())
    attrs = RecurrentAttrs(LSTM, time_major, functions, cell_clip=max(clip, 0.0))
    states = (context.expr(tensor) for tensor in (data, hidden, cell))
    return Update(get(Recurrent)(*states, *map(constant, parameters), attrs=attrs), (hidden, cell))


def refuse_extras(operator: Operator) -> None:
    for first, count, what in (
        *((PEEPHOLES, 3, "peephole connections"), (PROJECTION, 2, "a projection")),
        (NORMS, 4, "layer normalisation"),
    ):
        given = any(operator.optional_input(first + i) is not None for i in range(count))
        need(not given, f"it has {what}, which is not supported; an LSTM without can be compiled")
    need(operator.optional_input(WEIGHTS) is not None, "its input gate is coupled to its forget gate: not supported")
    options = operator.options
    name = ACTIVATIONS[options.FusedActivationFunction()]
    need(name == "TANH", f"activation {name} is not supported; an LSTM with TANH can be compiled")
    need(not options.DiagonalRecurrentTensors(), "its recurrent weights are diagonal, which is not supported")


def gates_of(operator: Operator, first: int, dtypes: Sequence[str], role: str) -> list[Tensor]:
    """The four gates' tensors of one kind, checked."""
    tensors = [operator.required_input(first + i) for i in range(len(LSTM_GATES))]
    for tensor in tensors:
        need_dtype(tensor, dtypes, role)
        need(not tensor.quantisation or not tensor.quantisation.per_channel, f'"{tensor.name}" has a scale per channel')
        need(not tensor.quantisation or tensor.zero_point == 0, f'the zero point of "{tensor.name}" must be 0')
    return tensors


def _stacked(tensors: Sequence[Tensor], role: str) -> Array:
    shapes = {tensor.info.shape for tensor in tensors}
    need(len(shapes) == 1, f"the gates' {role} differ in shape: {', '.join(str(tensor.info) for tensor in tensors)}")
    return np.stack([need_constant(tensor, role) for tensor in tensors])


def _scales(data: Tensor, weights: Sequence[Tensor], hidden: Tensor, recurrent: Sequence[Tensor]) -> NDArray[np.int32]:
    """Gives for each gate, multiplier and shift of the input's products and of the hidden state's."""
    rows = []
    for gate, back in zip(weights, recurrent, strict=True):
        given = quantize_multiplier(data.scale * gate.scale / GATE_UNIT)
        kept = quantize_multiplier(hidden.scale * back.scale / GATE_UNIT)
        need_possible_shift(data, max(given[1], kept[1]))
        rows.append((*given, *kept))
    return np.array(rows, np.int32)


def _attributes(operator: Operator, data: Tensor, hidden: Tensor, cell: Tensor) -> LstmAttrs:
    power = round(math.log2(cell.scale))
    need(FINEST <= power <= COARSEST, f"the cell state's scale is 2**{power}; 2**{FINEST} to 2**{COARSEST} can be")
    clip = float(np.float32(operator.options.CellClip()))
    return LstmAttrs(
        time_major=int(operator.options.TimeMajor()),
        input_zero_point=data.zero_point,
        hidden_zero_point=hidden.zero_point,
        cell_clip=int(min(clip / cell.scale, 32767.0)) if clip > 0 else 0,
        **factor("keep", FRACTION * cell.scale / cell.scale),
        **factor("take", FRACTION * FRACTION / cell.scale),
        **factor("give", FRACTION * FRACTION / hidden.scale),
        tanh_multiplier=3 << max(0, 12 + power),
        tanh_right_shift=max(0, -12 - power),
    )


# Sequences of simple cells, in float, forwards alone or both ways.

FORWARDS, BACKWARDS, AUXILIARY = 1, 5, 9  # Where the inputs of a direction begin: weights, recurrent ones, bias, state.


@converts("UNIDIRECTIONAL_SEQUENCE_RNN", when=otherwise)
def simple_cells(context: Context, operator: Operator) -> Expr | Update:
    state, call = operator.required_input(FORWARDS + 3), _simple_cells(context, operator, FORWARDS)
    return Update(call, (state,)) if state.index in context.variables else relax.TupleGetItem(call, 0)


@converts("BIDIRECTIONAL_SEQUENCE_RNN", when=always)
def simple_cells_both_ways(context: Context, operator: Operator) -> list[Expr] | Update:
    given = [operator.optional_input(number) for number in range(AUXILIARY, len(operator.inputs))]
    need(not any(given), "it has an auxiliary input, which is not supported; one without can be compiled")
    states = [operator.required_input(first + 3) for first in (FORWARDS, BACKWARDS)]
    calls = [_simple_cells(context, operator, first) for first in (FORWARDS, BACKWARDS)]
    outputs = [relax.TupleGetItem(call, 0) for call in calls]
    if operator.option("MergeOutputs"):
        outputs = [relax.op.concat(outputs, axis=-1)]
    kept = [(state, call) for state, call in zip(states, calls, strict=True) if state.index in context.variables]
    if not kept:
        return outputs
    after = [relax.TupleGetItem(call, 1) for _, call in kept]
    return Update(relax.Tuple([*outputs, *after]), tuple(state for state, _ in kept))


def _simple_cells(context: Context, operator: Operator, first: int) -> Expr:
    """One direction; a state that is no variable tensor begins anew in each run."""
    data, weights, recurrent, state = (operator.required_input(i) for i in (0, first, first + 1, first + 3))
    bias, units = operator.optional_input(first + 2), weights.info.shape[0] if weights.info.shape else 0
    for tensor in (data, weights, recurrent, state, *([bias] if bias else [])):
        need_dtype(tensor, ("float32",), "operand")
    function = cell_function(operator)
    rank = len(data.info.shape)
    need(rank == 3, f"input {data.info} has rank {rank}, wanted 3")
    time_major = operator.option("TimeMajor")
    wanted = (
        (weights, (units, data.info.shape[2])),
        (recurrent, (units, units)),
        (state, (data.info.shape[1 if time_major else 0], units)),
        *([(bias, (units,))] if bias else []),
    )
    for tensor, shape in wanted:
        need(tensor.info.shape == shape, f'"{tensor.name}" is {tensor.info}, wanted {list(shape)}')
    begins = state.index in {*context.variables, *context.exprs} or state.data is not None
    parameters = [_row(context, tensor) for tensor in (weights, recurrent)]
    zeros = (constant(np.zeros(shape, np.float32)) for shape in (state.info.shape, (1, units)))
    hidden, no_bias = zeros
    attrs = RecurrentAttrs(RNN, time_major, function, reverse=int(first == BACKWARDS))
    return get(Recurrent)(
        context.expr(data),
        context.expr(state) if begins else hidden,
        *parameters,
        _row(context, bias) if bias else no_bias,
        attrs=attrs,
    )


def cell_function(operator: Operator) -> str:
    name = ACTIVATIONS[operator.option("FusedActivationFunction")]
    need(name in CELL_FUNCTIONS, f"activation {name} is not supported; {' or '.join(CELL_FUNCTIONS)} can be compiled")
    return CELL_FUNCTIONS[name]


def _row(context: Context, tensor: Tensor) -> Expr:
    """The tensor with an axis for the cell's one gate."""
    return apply(context, [tensor], lambda expr: relax.op.expand_dims(expr, 0), lambda values: values[np.newaxis])


CELL_FUNCTIONS = {"NONE": "identity", **{name: name.lower() for name in ("RELU", "RELU6", "RELU_N1_TO_1", "TANH")}}
