"""Operators on uint8, as TensorFlow quantised before 2019: int8 with all numbers 128 less, exactly what LiteRT gives.

Weights lose their zero point here. Where int8 does not hold what is left, they are int16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.tflite.convert import WIDE_WEIGHTS, Context, Expr, need_constant
from uaccel.frontend.tflite.pool import pool_attrs
from uaccel.frontend.tflite.reader import Operator, Tensor
from uaccel.model import Quantisation, TensorInfo
from uaccel.ops.base import get
from uaccel.ops.pool import UnsignedAveragePool2d

WEIGHTED: Final = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
COMPUTING: Final = (*WEIGHTED, "ADD", "MUL", "MAX_POOL_2D", "SOFTMAX", "RELU", "RELU6")
"""They give on int8 what they give on uint8, 128 less."""
MOVING: Final = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "CONCATENATION")
"""So do these, but on uint8 as well: they follow what they are given."""
MIDDLE: Final = 128
LARGEST: Final = 127
"""Weight of int8, from its zero point."""


def is_legacy(context: Context, operator: Operator) -> bool:
    """Whether it becomes int8, or is a mean of windows. A concatenation of other scales rounds in a way of its own."""
    tensors = [tensor for tensor in (*operator.inputs, *operator.outputs) if tensor and tensor.info.dtype == "uint8"]
    grids = {(tensor.quantisation.scales, tensor.quantisation.zero_points) for tensor in tensors if tensor.quantisation}
    whole = all(tensor.quantisation and not tensor.quantisation.per_channel for tensor in tensors)
    within = any(~tensor.index in context.exprs for tensor in tensors)
    known = operator.name in (*COMPUTING, "AVERAGE_POOL_2D") or (operator.name in MOVING and within)
    alike = operator.name != "CONCATENATION" or len(grids) == 1
    return known and whole and alike and bool(operator.outputs) and operator.outputs[0].info.dtype == "uint8"


def signed(operator: Operator) -> Operator:
    """The same on int8."""
    inputs = [tensor and _signed(tensor) for tensor in operator.inputs]
    if operator.name in WEIGHTED:
        inputs[1] = _weights(operator.required_input(1))
    return replace(operator, inputs=tuple(inputs), outputs=tuple(map(_signed, operator.outputs)))


def was_unsigned(tensor: Tensor) -> bool:
    return tensor.index < 0


def _signed(tensor: Tensor) -> Tensor:
    """Its number is below 0, and no other tensor's."""
    if tensor.info.dtype != "uint8":
        return tensor
    grid = tensor.required_quantisation
    points = tuple(point - MIDDLE for point in grid.zero_points)
    return replace(
        tensor,
        index=~tensor.index,
        info=TensorInfo(tensor.info.shape, "int8"),
        quantisation=Quantisation(grid.scales, points, grid.axis),
        data=None if tensor.data is None else (tensor.data ^ MIDDLE).view(np.int8),
    )


def _weights(tensor: Tensor) -> Tensor:
    need(tensor.info.dtype == "uint8", f'weights "{tensor.name}" are {tensor.info.dtype}, wanted uint8')
    values = need_constant(tensor, "weights").astype(np.int16) - np.int16(tensor.zero_point)
    fits = int(np.abs(values).max(initial=0)) <= LARGEST
    dtype, bits = ("int8", 8) if fits else ("int16", WIDE_WEIGHTS)
    grid = Quantisation(tensor.required_quantisation.scales, (0,), 0)
    info = TensorInfo(tensor.info.shape, dtype)
    return replace(tensor, index=~tensor.index, info=info, quantisation=grid, data=values.astype(dtype), bits=bits)


def average_pool(context: Context, operator: Operator) -> Expr:
    """Halves are rounded up, which of int8 is another rule: it stays uint8."""
    return get(UnsignedAveragePool2d)(context.expr(operator.required_input(0)), attrs=pool_attrs(operator))
