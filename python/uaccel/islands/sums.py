"""What convolutions and matrix products share: weights, biases and factors of an accumulator in integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError, need
from uaccel.islands.bias import Channels, carried
from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph
from uaccel.islands.held import Grid
from uaccel.islands.known import KnownIntegers
from uaccel.islands.rules import Island
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.ops.rounding import float32_scales
from uaccel.tvm_api import is_var, relax


@dataclass(frozen=True)
class Weights:
    """``values`` with their zero points taken off, and one scale for each output channel.

    Where they need 9 bits, ``rest`` is what is missing: values + rest are the weights.
    """

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    rest: NDArray[np.int8] | None = None

    @property
    def bits(self) -> int:
        """4 where as many hold each of them, whatever the model's type for them."""
        return 4 if self.rest is None and self.values.min() >= -8 and self.values.max() <= 7 else 8


def weights_of(known: KnownIntegers | None, axis: int) -> Weights:
    """The weights with output channels along ``axis``."""
    if known is None:
        raise ModelError("its weights are not quantised constants")
    scales = known.scales_along(axis)
    if scales is None:
        raise ModelError("its weights have scales along another axis than the output channels")
    centred = known.centred
    need(np.abs(centred).max(initial=0) <= 254, "its weights have more than 8 bits")
    values = np.clip(centred, -128, 127)
    rest = centred - values
    return Weights(values.astype(np.int8), scales, rest.astype(np.int8) if rest.any() else None)


def read_twice(emitter: Emitter, data: Any, grid: Grid, values: Array, rest: Array | None) -> tuple[Any, Array]:
    """Input and weights where the latter need 9 bits: each element is read twice, and its weight is in two parts."""
    if rest is None:
        return data, np.ascontiguousarray(values)
    axis = values.ndim - 1
    twice = emitter.bind(relax.op.repeat(data, 2, axis), quantisation=grid.quantisation, suffix="_twice")
    return twice, np.stack([values, rest], axis=-1).reshape(*values.shape[:-1], 2 * values.shape[-1])


def biased(graph: Graph, core: Any, *operators: str) -> tuple[Any, Array | None] | None:
    """The variable of one of the operators and what is added to it for each channel; None for anything else."""
    if graph.call(core, *operators) is not None:
        return core, None
    added = graph.call(core, "relax.add")
    for data, other in (added.args, reversed(added.args)) if added is not None else ():
        bias = graph.value(other)
        if bias is not None and is_var(data) and graph.call(data, *operators) is not None:
            return data, bias
    return None


def channel_bias(bias: Array | None, axis: int, rank: int, channels: int) -> Array:
    """One number for each output channel."""
    if bias is None:
        return np.zeros(channels, np.float32)
    full = bias.reshape((1,) * (rank - bias.ndim) + bias.shape) if bias.ndim <= rank else bias
    others = [extent for i, extent in enumerate(full.shape) if i != axis]
    single = full.ndim == rank and all(extent == 1 for extent in others) and full.shape[axis] in (1, channels)
    need(single, "what is added to it is not one number for each channel")
    return np.broadcast_to(full.reshape(-1), (channels,))


@dataclass(frozen=True)
class Constants:
    bias: Any
    multiplier: Any
    shift: Any


def constants(
    island: Island, data: Grid, weights: Weights, axis: int, bias: Array, *, narrow: bool = True
) -> Constants:
    """The operands behind the weights: bias in units of the products, and the factor to the output's grid.

    Output channels of the weights lie along ``axis``. What the bias has beyond whole units goes with the factor. Sums
    of 16-bit activations take 64 bits, but with ``narrow`` 32 where these are enough.
    """
    products = np.float32(data.scale) * weights.scales
    units = bias.astype(np.float64) / products.astype(np.float64)
    reach = _reach(weights, axis, data)
    wide = data.dtype == "int16" and not (narrow and (reach + np.abs(units)).max(initial=0) < 2**31)
    fits = np.isfinite(units).all() and np.abs(units).max(initial=0) <= (2**53 if wide else 2**31 - 2)
    need(fits, "its bias does not fit 32 bits in units of the products")
    multiplier, shift = float32_scales(products / np.float32(island.output.scale), wide)
    if wide:
        return Constants(constant(np.rint(units).astype(np.int64)), constant(multiplier), constant(shift))
    factor = np.float64(data.scale) * weights.scales.astype(np.float64) / np.float64(island.output.scale)
    zero = island.output.zero_point
    bounds = island.low - zero, island.high - zero
    whole, with_rest = carried(Channels(units, factor, multiplier, shift, reach, *bounds))
    return Constants(constant(whole), constant(with_rest), constant(shift))


def _reach(weights: Weights, axis: int, data: Grid) -> NDArray[np.int64]:
    """How far from zero a channel's sum can be, whatever the zero point."""
    values = weights.values.astype(np.int64) + (0 if weights.rest is None else weights.rest)
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    low, high = data.limits
    return np.asarray((high - low) * np.abs(rows).sum(axis=1))


def ends(island: Island, data: Grid) -> dict[str, int]:
    """The attributes that say where the numbers lie."""
    return {
        "input_zero_point": data.zero_point,
        "output_zero_point": island.output.zero_point,
        "clamp_min": island.low,
        "clamp_max": island.high,
    }
