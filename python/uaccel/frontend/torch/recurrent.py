"""Converts nn.LSTM, nn.GRU and nn.RNN to an operator for each layer and direction, whose C loops over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.converters import Gates, Matrix
from uaccel.frontend.torch.converter import Context, Expr, arguments, converts
from uaccel.ops.operator import constant, get, info_of
from uaccel.ops.recurrent import GRU, LSTM, RNN, SQUASHED, Recurrent, RecurrentAttrs
from uaccel.tvm_api import relax

# For each operator its cell, PyTorch's places of the gates in the order of ``ops.recurrent``, and its functions.
CELLS: Final = {
    "lstm": (LSTM, (0, 1, 2, 3), " ".join(SQUASHED[LSTM])),
    "gru": (GRU, (1, 0, 2), " ".join(SQUASHED[GRU])),
    "rnn_tanh": (RNN, (0,), "tanh"),
    "rnn_relu": (RNN, (0,), "relu"),
}


@converts("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def recurrent(context: Context, node: Any) -> list[Expr]:
    """The sequence of the last layer, and the last states of all layers and directions."""
    given = arguments(node)
    need(not (given["train"] and given["dropout"]), "it drops out at random; call model.eval() before exporting")
    data, first = context.expr(given["input"]), given["hx"]
    states = [context.expr(state) for state in (first if isinstance(first, (list, tuple)) else [first])]
    directions, layers = 2 if given["bidirectional"] else 1, given["num_layers"]
    params = given["params"]
    count = len(params) // (layers * directions)
    last: list[list[Expr]] = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            own = [_state(context, state, number) for state in states]
            results.append(_one(context, node, data, own, params[number * count :][:count], bool(direction)))
        data = results[0][0] if directions == 1 else context.emit(relax.op.concat([r[0] for r in results], 2))
        last += [result[1:] for result in results]
    return [data, *(relax.op.stack([entry[place] for entry in last], 0) for place in range(len(states)))]


def _one(
    context: Context, node: Any, data: Expr, states: Sequence[Expr], params: Sequence[Any], reverse: bool
) -> list[Expr]:
    """One layer in one direction: two matrices, perhaps two biases; if the number is odd, the last is a projection."""
    cell, order, functions = CELLS[node.target.__name__.partition(".")[0]]
    arrays = [context.array(param) for param in params]
    projections = [arrays.pop()] if len(arrays) in (3, 5) else []
    units = len(arrays[0]) // len(order)
    gates = Gates(cell, units, order, reset_after=cell == GRU)
    biases = arrays[2:] or [np.zeros(len(order) * units, np.float32)] * 2
    weights, _ = gates.parameters([Matrix(array) for array in arrays[:2]], biases)
    attrs = RecurrentAttrs(
        cell,
        int(not arguments(node)["batch_first"]),
        functions,
        int(reverse),
        reset_after=int(gates.reset_after),
        projected=len(projections),
    )
    made = context.emit(get(Recurrent)(data, *states, *map(constant, [*weights, *projections]), attrs=attrs))
    return [context.emit(relax.TupleGetItem(made, place)) for place in range(1 + len(states))]


def _state(context: Context, state: Expr, number: int) -> Expr:
    if info_of(state).shape[0] > 1:
        state = context.emit(relax.op.strided_slice(state, [0], [number], [number + 1]))
    return context.emit(relax.op.squeeze(state, [0]))
