"""LSTM of int16 vectors: a step's gates are two fully connected layers of one row, by a family's kernel for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels import dsp_int16, helium_int16
from uaccel.cpu_kernels.lstm_dots import DSP, HELIUM, ROWS, Family, curves_by_helium, last_twice
from uaccel.cpu_kernels.registry import offers
from uaccel.model import TensorInfo
from uaccel.ops.base import Operand, Site
from uaccel.ops.fully_connected import FullyConnectedAttrs
from uaccel.ops.kernel import Constant, Input, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.lstm import Lstm, LstmAttrs

Array = NDArray[Any]
Maker = Callable[[Site[FullyConnectedAttrs]], "Kernel | None"]


def lstm16(site: Site[LstmAttrs], family: Family, row: Maker) -> Kernel | None:
    """``row``: what makes the family's fully connected layers."""
    if site.output.dtype != "int16":
        return None
    (portable,) = Lstm().kernels(site)
    weights, recurrent, bias, scales, points = (operand.value for operand in site.operands[3:])
    given = row(_gates(weights, bias, scales[:, 0:2], site.attrs.input_zero_point))
    kept = row(_gates(recurrent, np.zeros_like(bias), scales[:, 2:4], site.attrs.hidden_zero_point))
    if given is None or kept is None:
        return None
    (call,), parts = portable.calls, {"given": given, "kept": kept}
    parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
    for part, kernel in parts.items():
        parameters |= {f"{part}.{name}": value for name, value in kernel.calls[0].parameters.items()}
    streams = [Constant(part, _stream(kernel)) for part, kernel in parts.items()]
    states = (Input(0), Input(1), Input(2))
    results = (Output(0), Output(1), Output(2), Scratch())
    own = replace(
        call,
        function=f"uaccel_lstm_s16_{family.suffix}16",
        header=f"uaccel_lstm16_{family.suffix}.h",
        struct=f"uaccel_lstm_{family.suffix}16",
        parameters=parameters,
        arguments=(*states, *streams, last_twice(points), *results),
    )
    scratch = 2 * portable.scratch + max(given.scratch, kept.scratch, 2 * ROWS)
    return replace(portable, family=family.name, calls=(own,), scratch=scratch, requires=family.requires)


def _gates(weights: Array, bias: Array, scales: Array, zero_point: int) -> Site[FullyConnectedAttrs]:
    """All gates of one vector, in units of 2**-12, as a fully connected layer."""
    _, units, depth = weights.shape
    multiplier, shift = (np.repeat(column, units).astype(np.int32) for column in scales.T)
    constants = (weights.reshape(-1, depth), bias.reshape(-1), multiplier, shift)
    operands = [Operand(TensorInfo(value.shape, value.dtype.name), value) for value in constants]
    data = Operand(TensorInfo((1, depth), "int16"))
    attrs = FullyConnectedAttrs(zero_point, 0, -(1 << 15), (1 << 15) - 1)
    return Site(attrs, (data, *operands), (TensorInfo((1, 4 * units), "int16"),))


def _stream(kernel: Kernel) -> NDArray[np.int32]:
    """All its constants, weights of bytes last."""
    arrays = [argument.data for argument in kernel.calls[0].arguments if isinstance(argument, Constant)]
    return np.concatenate([each.reshape(-1).view(np.int32) for each in sorted(arrays, key=lambda a: -a.itemsize)])


@offers(Lstm, HELIUM.requires, rank=250)
def by_helium(site: Site[LstmAttrs]) -> Kernel | None:
    return lstm16(site, HELIUM, helium_int16.fully_connected) if curves_by_helium(site.attrs) else None


@offers(Lstm, DSP.requires, rank=260)
def by_dsp(site: Site[LstmAttrs]) -> Kernel | None:
    return lstm16(site, DSP, dsp_int16.fully_connected)
