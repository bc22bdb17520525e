"""Converts layers of floats whose weights are bytes: LiteRT turns their inputs into bytes in each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.tflite import converter
from uaccel.frontend.tflite.checks import need_constant, need_dtype, need_shape
from uaccel.frontend.tflite.conv import need_multiplier, need_some, product_of
from uaccel.frontend.tflite.converter import Context, Expr, Update, converts
from uaccel.frontend.tflite.reader import ACTIVATIONS, Operator, Tensor
from uaccel.frontend.tflite.recurrent import (
    BIASES,
    CELL,
    FORWARDS,
    HIDDEN,
    RECURRENT,
    WEIGHTS,
    cell_function,
    checked_svdf,
    gates_of,
    need_variable,
    refuse_extras,
    svdf_relu,
)
from uaccel.model import Array, Shape
from uaccel.ops import hybrid
from uaccel.ops.binary import broadcast_shape
from uaccel.ops.conv_float import BOTH, FLOAT, LOWER, NONE
from uaccel.ops.hybrid_cells import HybridCells, HybridCellsAttrs
from uaccel.ops.operator import IntegerOperator, constant, get
from uaccel.ops.recurrent import GATES, LSTM, RNN, SQUASHED
from uaccel.ops.svdf import SvdfHybrid, SvdfHybridAttrs
from uaccel.tvm_api import relax


def is_hybrid(operator: Operator) -> bool:
    """Whether the input is floats and the weights are bytes with scales."""
    data, weights = (operator.optional_input(number) for number in (0, 1))
    if data is None or weights is None or weights.quantisation is None:
        return False
    return (data.info.dtype, weights.info.dtype) == (FLOAT, hybrid.BYTE)


@converts("CONV_2D", when=is_hybrid)
def conv_2d(context: Context, operator: Operator) -> Expr:
    """Converts as LiteRT does: symmetrically where all channels have one scale, but not in groups."""
    data, weights = _images(operator)
    channels, height, width, depth = weights.info.shape
    groups = data.info.shape[3] // depth
    fits = groups * depth == data.info.shape[3] and channels % groups == 0
    need(fits, f"input {data.info} does not fit weights {weights.info}")
    factors = _factors(weights, channels, single=groups == 1)
    apart = groups > 1 or len(set(factors.tolist())) > 1
    attrs = _window_attrs(operator, data, (height, width), groups, channel_first=int(apart))
    rows = _rows(context, data, data.info.shape, symmetric=not apart)
    return _called(context, operator, rows, _values(weights), factors, attrs)


@converts("DEPTHWISE_CONV_2D", when=is_hybrid)
def depthwise_conv_2d(context: Context, operator: Operator) -> Expr:
    data, weights = _images(operator)
    one, height, width, channels = weights.info.shape
    depth = need_multiplier(operator, data, weights)
    need(one == 1, f"weights {weights.info} are no multiple of the input's {depth} channels")
    axis = need_axis(weights.required_quantisation.axis, 4)
    need(channels == 1 or axis == 3, f'weights "{weights.name}" have scales along axis {axis}, wanted 3')
    attrs = _window_attrs(operator, data, (height, width), depth)
    taps = np.ascontiguousarray(_values(weights).transpose(3, 1, 2, 0))
    factors, rows = _factors(weights, channels, single=False), _rows(context, data, data.info.shape, symmetric=False)
    return _called(context, operator, rows, taps, factors, attrs)


@converts("FULLY_CONNECTED", when=is_hybrid)
def fully_connected(context: Context, operator: Operator) -> Expr:
    """Converts an input of any rank; unlike other kernels of the reference, this one computes a fused TANH."""
    data, weights, output = operator.required_input(0), operator.required_input(1), operator.outputs[0]
    need_dtype(output, (FLOAT,), "output")
    rows, units, depth = product_of(data, weights, output)
    name, attrs = ACTIVATIONS[operator.option("FusedActivationFunction")], hybrid.HybridAttrs(*_bounds(operator), 0)
    need(name != "SIGN_BIT", "its activation SIGN_BIT is not supported; make it an operator of its own")
    symmetric = not operator.option("AsymmetricQuantizeInputs")
    given = _rows(context, data, (rows, depth), symmetric=symmetric)
    result = _called(context, operator, given, _values(weights), _factors(weights, units), attrs)
    result = _shaped(result, (rows, units), output.info.shape)
    return relax.op.tanh(result) if name == "TANH" else result


@converts("BATCH_MATMUL", when=is_hybrid)
def batch_matmul(context: Context, operator: Operator) -> Expr:
    """Converts a product with one matrix of weights: its rows are those of all matrices of the input."""
    data, output, turned = operator.required_input(0), operator.outputs[0], bool(operator.options.AdjX())
    need_dtype(output, (FLOAT,), "output")
    need(len(data.info.shape) >= 2, f'"{data.name}" has rank {len(data.info.shape)}, wanted at least 2')
    matrix, factors, several = _matrix(operator)
    need_some(data, operator.required_input(1))
    *ahead, rows, given = data.info.shape
    rows, given = (given, rows) if turned else (rows, given)
    units, depth = matrix.shape
    need(given == depth, f"rows of {given} elements do not fit columns of {depth}")
    need_shape(output, [*broadcast_shape(tuple(ahead), several), rows, units])
    shape, source = (math.prod(ahead) * rows, depth), None
    if turned:
        order = [*range(len(ahead)), len(ahead) + 1, len(ahead)]
        source = relax.op.reshape(relax.op.permute_dims(context.expr(data), order), shape)
    symmetric = not operator.option("AsymmetricQuantizeInputs")
    given_rows = _rows(context, data, shape, symmetric=symmetric, source=source)
    attrs = hybrid.HybridAttrs(NONE, 0.0, 0.0, 0)
    result = _called(context, operator, given_rows, matrix, factors, attrs)
    return _shaped(result, (shape[0], units), output.info.shape)


@converts("SVDF", when=is_hybrid)
def svdf(context: Context, operator: Operator) -> Update:
    """Converts weights of features to a product of bytes; the state keeps floats."""
    data, features, times = checked_svdf(operator)
    state, bias = operator.required_input(4), operator.optional_input(3)
    for tensor, role in ((state, "state"), (operator.outputs[0], "output"), *([(bias, "bias")] if bias else [])):
        need_dtype(tensor, (FLOAT,), role)
    need_dtype(times, (hybrid.BYTE,), "time weights")
    need_variable(context, state, "state")
    rank, filters = operator.options.Rank(), features.info.shape[0]
    rows = _rows(context, data, data.info.shape, symmetric=not operator.option("AsymmetricQuantizeInputs"))
    factors, none = np.full(filters, features.scale, np.float32), constant(np.zeros(filters, np.float32))
    frame = _product(rows, _values(features), factors, none, hybrid.HybridAttrs(NONE, 0.0, 0.0, 0))
    terms = constant(np.zeros(filters // rank, np.float32)) if bias is None else context.expr(bias)
    attrs = SvdfHybridAttrs(rank, svdf_relu(operator), times.scale)
    call = get(SvdfHybrid)(frame, context.expr(state), constant(_values(times)), terms, attrs=attrs)
    return Update(call, (state,))


@converts("UNIDIRECTIONAL_SEQUENCE_LSTM", when=is_hybrid)
def lstm(context: Context, operator: Operator) -> Update:
    """Converts the inputs of all steps to one product; the steps take it with the hidden state's."""
    refuse_extras(operator)
    weights, recurrent = (_gate_weights(operator, first) for first in (WEIGHTS, RECURRENT))
    biases = np.concatenate([need_constant(gate, "bias") for gate in gates_of(operator, BIASES, (FLOAT,), "bias")])
    clip = max(0.0, float(np.float32(operator.options.CellClip())))
    return _cells(context, operator, (HIDDEN, CELL), (weights, recurrent), biases, (LSTM, SQUASHED[LSTM], clip))


@converts("UNIDIRECTIONAL_SEQUENCE_RNN", when=is_hybrid)
def simple_cells(context: Context, operator: Operator) -> Update:
    matrices = [operator.required_input(number) for number in (FORWARDS, FORWARDS + 1)]
    for matrix in matrices:
        need_dtype(matrix, (hybrid.BYTE,), "weights")
        need(len(matrix.info.shape) == 2, f'"{matrix.name}" is {matrix.info}, wanted rank 2')
    weights, recurrent = ((_values(one), _factors(one, one.info.shape[0])) for one in matrices)
    bias, cell = need_constant(operator.required_input(FORWARDS + 2), "bias"), (RNN, (cell_function(operator),), 0.0)
    return _cells(context, operator, (FORWARDS + 3,), (weights, recurrent), bias, cell)


def _cells(
    context: Context,
    operator: Operator,
    places: Sequence[int],
    matrices: Sequence[tuple[Array, Array]],
    biases: Array,
    cell: tuple[str, Sequence[str], float],
) -> Update:
    """The steps of cells, whose states are the inputs at ``places``; ``cell``: its kind, functions and clip."""
    data, states = operator.required_input(0), [operator.required_input(number) for number in places]
    need_dtype(operator.outputs[0], (FLOAT,), "output")
    for tensor in states:
        need_dtype(tensor, (FLOAT,), "state")
        need_variable(context, tensor, "state")
    need(len(data.info.shape) == 3, f"input {data.info} has rank {len(data.info.shape)}, wanted 3")
    (weights, recurrent), (kind, functions, clip) = matrices, cell
    width, units, depth = len(biases), len(biases) // GATES[kind], data.info.shape[2]
    fits = weights[0].shape == (width, depth) and recurrent[0].shape == (width, units)
    need(fits, f"weights {weights[0].shape} and {recurrent[0].shape} do not fit input {data.info} and {units} units")
    time_major, symmetric = int(operator.option("TimeMajor")), int(not operator.option("AsymmetricQuantizeInputs"))
    rows = _rows(context, data, (data.info.elements // depth, depth), symmetric=bool(symmetric))
    attrs = hybrid.HybridAttrs(NONE, 0.0, 0.0, 0)
    given = context.emit(_product(rows, *weights, constant(biases), attrs), "gates")
    given = context.emit(relax.op.reshape(given, (*data.info.shape[:2], width)), "gates")
    before = (context.expr(tensor) for tensor in states)
    how = HybridCellsAttrs(kind, time_major, " ".join(functions), symmetric, clip)
    return Update(get(HybridCells)(given, *map(constant, recurrent), *before, attrs=how), tuple(states))


def _gate_weights(operator: Operator, first: int) -> tuple[Array, Array]:
    """The weights of the four gates as one matrix, with the scale of each row."""
    gates = gates_of(operator, first, (hybrid.BYTE,), "weights")
    scales = [np.full(len(_values(gate)), gate.scale, np.float32) for gate in gates]
    return np.concatenate([_values(gate) for gate in gates]), np.concatenate(scales)


def _matrix(operator: Operator) -> tuple[Array, Array, Shape]:
    """The weights of a product as rows for each column of the result, their scales, and axes of one matrix."""
    weights, turned = operator.required_input(1), not operator.options.AdjY()
    rank = len(weights.info.shape)
    need(rank >= 2, f'"{weights.name}" has rank {rank}, wanted at least 2')
    several = weights.info.shape[:-2]
    need(math.prod(several) == 1, f"weights {weights.info} are several matrices, wanted one; split the layer")
    matrix = _values(weights).reshape(weights.info.shape[-2:])
    matrix = np.ascontiguousarray(matrix.T) if turned else matrix
    axis, wanted = need_axis(weights.required_quantisation.axis, rank), rank - 2 + turned
    along = not weights.required_quantisation.per_channel or axis == wanted
    need(along, f'weights "{weights.name}" have scales along axis {axis}, wanted {wanted}')
    return matrix, _factors(weights, len(matrix)), several


def _images(operator: Operator) -> tuple[Tensor, Tensor]:
    """Checks and gives input and weights of a convolution."""
    data, weights = operator.required_input(0), operator.required_input(1)
    need_dtype(operator.outputs[0], (FLOAT,), "output")
    for tensor, what in ((data, "inputs"), (weights, "weights")):
        need(len(tensor.info.shape) == 4, f"{what} have rank {len(tensor.info.shape)}, wanted 4")
    need_some(data, weights)
    return data, weights


def _window_attrs(
    operator: Operator, data: Tensor, kernel: tuple[int, int], groups: int, channel_first: int = 0
) -> hybrid.HybridConv2dAttrs:
    window = converter.sliding_window(operator, data.info.shape[1:3], kernel)
    lies = (window.strides, window.padding, window.dilation)
    return hybrid.HybridConv2dAttrs(*_bounds(operator), channel_first, *lies, groups)


def _bounds(operator: Operator) -> tuple[str, float, float]:
    low, high = converter.bounds(operator)
    kind = NONE if low is None else LOWER if high is None else BOTH
    return kind, low or 0.0, high or 0.0


def _values(weights: Tensor) -> Array:
    values = need_constant(weights, "weights")
    points = weights.required_quantisation.zero_points
    need(not any(points), f'weights "{weights.name}" have the zero point {max(points, key=abs)}, wanted 0')
    return values


def _factors(weights: Tensor, channels: int, *, single: bool = True) -> Array:
    """The weights' scale of each output channel; ``single``: they may have one for all."""
    scales = np.asarray(weights.required_quantisation.scales, np.float32)
    fits = len(scales) == channels or (single and len(scales) == 1)
    need(fits, f'weights "{weights.name}" have {len(scales)} scales; wanted one for each of {channels} channels')
    return np.array(np.broadcast_to(scales, (channels,)))


def _shaped(expr: Expr, shape: Shape, wanted: Shape) -> Expr:
    return expr if shape == wanted else relax.op.reshape(expr, wanted)


def _rows(context: Context, tensor: Tensor, shape: Shape, *, symmetric: bool, source: Expr = None) -> Expr:
    """The rows of a tensor as bytes, once for all layers that read them so; ``source`` takes the tensor's place.

    A variable may change between two layers.
    """
    key = (tensor.index, shape, symmetric)
    shared = source is None and tensor.index not in context.variables
    if shared and key in context.rows:
        return context.rows[key]
    given = _shaped(context.expr(tensor), tensor.info.shape, shape) if source is None else source
    made = get(hybrid.QuantizeRows)(given, attrs=hybrid.QuantizeRowsAttrs(int(symmetric)))
    if shared:
        made = context.rows[key] = context.emit(made, "rows")
    return made


def _called(
    context: Context, operator: Operator, rows: Expr, weights: Array, factors: Array, attrs: hybrid.HybridAttrs
) -> Expr:
    """Calls the operator of these attributes on rows of bytes."""
    bias, channels = operator.optional_input(2), len(factors)
    terms = constant(np.zeros(channels, np.float32))
    if bias is not None:
        need_dtype(bias, (FLOAT,), "bias")
        need(bias.info.elements == channels, f"bias {bias.info} does not fit the {channels} output channels")
        terms = converter.reshaped(context.expr(bias), bias.info.shape, (channels,))
    return _product(rows, weights, factors, terms, attrs)


def _product(rows: Expr, weights: Array, factors: Array, terms: Expr, attrs: hybrid.HybridAttrs) -> Expr:
    windows = isinstance(attrs, hybrid.HybridConv2dAttrs)
    kind: type[IntegerOperator[Any]] = hybrid.HybridConv2d if windows else hybrid.HybridFullyConnected
    steps, scales, zero_points = (relax.TupleGetItem(rows, number) for number in range(3))
    return get(kind)(steps, constant(weights), constant(factors), terms, scales, zero_points, attrs=attrs)
