"""Converts LSTM, GRU and RNN to an operator for each direction, whose C loops over the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.converters import Gates, Matrix, of_integers
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.graph import MICROSOFT, Node
from uaccel.model import Array
from uaccel.ops.operator import constant, get
from uaccel.ops.recurrent import GRU, LSTM, RNN, SQUASHED, Recurrent, RecurrentAttrs
from uaccel.tvm_api import relax

# ONNX's places of the gates in the order of ``ops.recurrent``.
ORDERS: Final = {LSTM: (0, 2, 3, 1), GRU: (0, 1, 2), RNN: (0,)}
FUNCTIONS: Final = {"sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "hardsigmoid": "hard_sigmoid"}
# Slope and offset of the HardSigmoid that can be compiled, which are its defaults.
HARD: Final = (0.2, 0.5)
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
WEIGHTS, BIAS, LENGTHS, STATES, PEEPHOLES = (1, 2), 3, 4, (5, 6), 7  # Positions of inputs.
SCALES: Final = {1: 8, 2: 10}  # Positions of the scales of integer weights, each with its zero point behind it.


@converts("LSTM", "GRU", "RNN", f"{MICROSOFT}.DynamicQuantizeLSTM")
def recurrent(context: Context, node: Node) -> list[Expr]:
    """The sequence and the last states, each with an axis of directions."""
    layer = _Layer(context, node, node.op.removeprefix("DynamicQuantize").lower())
    layer.check()
    results = [layer.direction(number, reverse) for number, reverse in enumerate(layer.directions)]
    first = int(layer.batch_first)
    outputs = []
    for parts, axis in zip(zip(*results, strict=True), (1 + first, first, first), strict=False):
        widened = [context.normal(relax.op.expand_dims(part, [axis])) for part in parts]
        outputs.append(widened[0] if len(widened) == 1 else relax.op.concat(widened, axis))
    return outputs


@dataclass(frozen=True)
class _Layer:
    """Converts one node, which is a layer with one or two directions."""

    context: Context
    node: Node
    cell: str

    @property
    def directions(self) -> tuple[bool, ...]:
        """Gives for each direction whether it goes backwards."""
        name = self.node.attributes.get("direction", "forward")
        need(name in DIRECTIONS, f'direction "{name}" is unknown; wanted {", ".join(DIRECTIONS)}')
        return DIRECTIONS[name]

    @property
    def batch_first(self) -> bool:
        return bool(self.node.attributes.get("layout", 0))

    @property
    def units(self) -> int:
        units = self.node.attributes.get("hidden_size", 0)
        need(units > 0, f"hidden_size is {units}, wanted the number of units")
        return int(units)

    def check(self) -> None:
        context, node = self.context, self.node
        data = context.info(node.required_input(0))
        need(data.dtype == "float32", f"its input is {data.dtype}; only float32 is supported")
        need(len(data.shape) == 3, f"its input is {data}, wanted rank 3")
        need(not node.attributes.get("input_forget", 0), "its gates are coupled (input_forget), which is not supported")

    def lengths(self) -> list[Expr]:
        """The operand with the lengths of sequences, none if all are known to have all steps."""
        context, name = self.context, self.node.optional_input(LENGTHS)
        steps = context.info(self.node.required_input(0)).shape[1 if self.batch_first else 0]
        known = context.known(name) if name else np.asarray([steps])
        return [] if known is not None and bool((known == steps).all()) else [context.expr(name)]

    def direction(self, number: int, reverse: bool) -> list[Expr]:
        """The sequence and the last states of one direction."""
        context, node, is_lstm = self.context, self.node, self.cell == LSTM
        reset_after = self.cell == GRU and node.attributes.get("linear_before_reset", 0) != 0
        peepholes = self._part(PEEPHOLES, number) if is_lstm else None
        attrs = RecurrentAttrs(
            self.cell,
            int(not self.batch_first),
            self._functions(number),
            int(reverse),
            clip=float(node.attributes.get("clip", 0.0)),
            reset_after=int(reset_after),
            peepholes=int(peepholes is not None),
            measured=len(self.lengths()),
        )
        gates = Gates(self.cell, self.units, ORDERS[self.cell], reset_after)
        bias = self._part(BIAS, number)
        both = np.zeros(2 * len(gates.order) * self.units, np.float32) if bias is None else bias
        matrices = [self._matrix(position, number) for position in WEIGHTS]
        weights, scales = gates.parameters(matrices, np.split(both, 2))
        parameters = map(constant, [*weights, *([] if peepholes is None else [peepholes])])
        states = [self._state(position, number) for position in STATES[: 2 if is_lstm else 1]]
        data = context.expr(node.required_input(0))
        call = get(Recurrent)(data, *states, *parameters, *self.lengths(), *map(constant, scales), attrs=attrs)
        made = context.block.emit(call, f"{node.layer_name}_{'reverse' if reverse else 'forward'}")
        return [context.normal(relax.TupleGetItem(made, place)) for place in range(1 + len(states))]

    def _functions(self, number: int) -> str:
        usual, attributes = SQUASHED[self.cell], self.node.attributes
        given = attributes.get("activations", ())
        names = [name.lower() for name in given[number * len(usual) :][: len(usual)]] if given else usual
        for name in names:
            unlike = f"activation {name} is not supported; Sigmoid, Tanh, Relu and HardSigmoid can be compiled"
            need(name in FUNCTIONS, unlike)
        need(len(names) == len(usual), f"it has {len(given)} activations, wanted {len(usual)} a direction")
        shape = (*attributes.get("activation_alpha", ()), *attributes.get("activation_beta", ()))
        own = any(not np.isclose(value, HARD).any() for value in shape)
        need(not own, "an activation has a slope or an offset of its own, which is not supported")
        return " ".join(FUNCTIONS[name] for name in names)

    def _part(self, position: int, number: int) -> Array | None:
        """A direction's part of an input that must be a constant; None where it is left out."""
        name = self.node.optional_input(position)
        if not name:
            return None
        values, count = self.context.need_known(name, "weights"), len(self.directions)
        need(len(values) == count, f'"{name}" is for {len(values)} directions, wanted {count}')
        value: Array = values[number]
        return value

    def _matrix(self, position: int, number: int) -> Matrix:
        """A direction's weights: integers with scales where the node or a DequantizeLinear before it has them."""
        name = self.node.required_input(position)
        if self.node.domain == MICROSOFT:
            value, scale, zero = (self._part(at, number) for at in (position, SCALES[position], SCALES[position] + 1))
            assert value is not None
            zeros = np.zeros(1, value.dtype) if zero is None else zero
            if scale is None:
                raise ModelError(f'"{name}" has no scale')
            return of_integers(value.T, scale, zeros)
        stored = self.context.stored.get(name)
        if stored is not None and (stored.scale.size == 1 or stored.axis % stored.stored.ndim < 2):
            by_direction = stored.scale.size > 1 and stored.axis % stored.stored.ndim == 0
            scale, zero = (
                part.reshape(-1)[number] if by_direction else part for part in (stored.scale, stored.zero_point)
            )
            return of_integers(stored.stored[number], scale, zero)
        value = self._part(position, number)
        assert value is not None
        return Matrix(value)

    def _state(self, position: int, number: int) -> Any:
        """The initial state of a direction, zeros where it is left out."""
        context, name = self.context, self.node.optional_input(position)
        axis = int(self.batch_first)
        if not name:
            batch = context.info(self.node.required_input(0)).shape[1 - axis]
            return constant(np.zeros((batch, self.units), np.float32))
        known = context.known(name)
        if known is not None:
            return constant(np.ascontiguousarray(np.take(known, number, axis)))
        whole = context.expr(name)
        if len(self.directions) > 1:
            whole = context.normal(relax.op.strided_slice(whole, [axis], [number], [number + 1]))
        return context.normal(relax.op.squeeze(whole, [axis]))
