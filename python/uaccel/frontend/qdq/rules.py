"""The frame of rules, and weights, biases and sums in integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError, need
from uaccel.frontend.qdq.emitter import Emitter, moved_grid
from uaccel.frontend.qdq.graph import Integers, KnownIntegers, QdqGraph, QuantGrid
from uaccel.model import Array
from uaccel.ops.exact import FLOAT32, MOST_WITH_REST, float32_scales, requantize_numpy, with_rests
from uaccel.ops.fixedpoint import RESTS, Int32s
from uaccel.ops.operator import constant, name_of
from uaccel.tvm_api import is_call, is_var, relax

# The frame of the rules: how an operator between dequantize and quantize is computed with integers.


@dataclass(frozen=True)
class Island:
    """One float value that is quantised, seen from its end.

    ``core`` is the variable of the operator proper, ``value`` that of the activations behind it. ``low`` and ``high``
    are the integers between which the result lies. ``wide``: operands of 8 bits are taken as 16.
    """

    graph: QdqGraph
    core: Any
    value: Any
    output: QuantGrid
    low: int
    high: int
    wide: bool = False

    @property
    def call(self) -> Any:
        return self.graph.definitions[self.core]

    def grid(self, expr: Any) -> QuantGrid | None:
        grid = moved_grid(self.graph, expr)
        return grid.wide if self.wide and grid is not None else grid

    def need_grid(self, expr: Any, which: str = "its input") -> QuantGrid:
        """Of an operand that must be quantised."""
        grid = self.grid(expr)
        if grid is None:
            raise ModelError(f"{which} is not quantised")
        return grid

    def need_one_type(self, grid: QuantGrid) -> None:
        """Of the input and the output."""
        mixed = f"its input has {grid.dtype}, its output {self.output.dtype}"
        need(grid.dtype == self.output.dtype, mixed)

    def need_8_bits(self, *grids: QuantGrid) -> None:
        need(all(grid.dtype == "int8" for grid in (*grids, self.output)), "16-bit activations")


Emit = Callable[[Emitter], Integers]
# What computes the island; None where the rule is about something else; ModelError says why nothing does.
Rule = Callable[[Island], "Emit | None"]

RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for islands around these operators; those registered first are asked first."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(function)
        return function

    return add


@dataclass(frozen=True)
class _Clamp:
    source: Any
    low: float | None = None
    high: float | None = None


def island_of(graph: QdqGraph, value: Any, output: QuantGrid, bounds: tuple[int, int] | None = None) -> Island:
    """The operator behind the activations that a clamp of the result, within ``bounds``, can stand for."""
    low, high = bounds or output.limits
    core = value
    while (clamp := _clamp(graph, core)) is not None and moved_grid(graph, core) is None:
        # an activation that comes later holds whatever an earlier one says
        low, high = (
            low if clamp.low is None else min(max(low, output.held(clamp.low)), high),
            high if clamp.high is None else max(min(high, output.held(clamp.high)), low),
        )
        core = clamp.source
    return Island(graph, core, value, output, low, high)


def _clamp(graph: QdqGraph, var: Any) -> _Clamp | None:
    """What a variable is bound to, if it is an activation that only cuts off."""
    bound = graph.definitions.get(var)
    if bound is None or not is_call(bound):
        return None
    name = name_of(bound)
    if name == "relax.nn.relu":
        return _Clamp(bound.args[0], low=0.0)
    if name == "relax.nn.relu6":
        return _Clamp(bound.args[0], 0.0, 6.0)
    if name == "relax.clip":
        low, high = (number(arg) for arg in bound.args[1:3])
        return None if low is None or high is None else _Clamp(bound.args[0], low, high)
    if name in ("relax.maximum", "relax.minimum"):
        for data, other in (bound.args, reversed(bound.args)):
            known = graph.value(other)
            if known is not None and known.size == 1 and graph.value(data) is None and same_shape(data, var):
                bound_at = float(known.reshape(-1)[0])
                return _Clamp(data, bound_at, None) if name == "relax.maximum" else _Clamp(data, None, bound_at)
    return None


def same_shape(one: Any, other: Any) -> bool:
    return [int(e) for e in one.ty.shape.values] == [int(e) for e in other.ty.shape.values]


def number(expr: Any) -> float | None:
    """A number that stands among a call's arguments."""
    value = getattr(getattr(expr, "value", expr), "value", getattr(expr, "value", None))
    try:
        return float(np.float32(value))
    except (TypeError, ValueError):
        return None


# Biases that are no whole number of products: what the output stage adds, so that each result is the real one.

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE: Final = 2.0**-22  # How far, relatively, what three roundings to float32 give may be from the real product.
STEP: Final = 1 << 7  # From one multiplier that is a float32 to the next.
# What is added to the bias, in 128ths, and to the multiplier: the nearest ones first.
TRIALS: Final = [(part, STEP * tilt) for tilt, part in product((0, 1, -1, 2, -2, 3, -3, 4, -4), (0, 1, -1))]


@dataclass(frozen=True, eq=False)
class Channels:
    """Of each output channel: the bias in products, the real factor from a product to a step of the output, the same
    as ``float32_scales`` has it, and how far from zero its sums can be. ``low`` and ``high``: the steps that results
    have, the zero point taken off."""

    units: Reals
    factor: Reals
    multiplier: Int32s
    shift: Int32s
    reach: Ints
    low: int
    high: int

    def __getitem__(self, chosen: Any) -> Channels:
        return replace(
            self,
            units=self.units[chosen],
            factor=self.factor[chosen],
            multiplier=self.multiplier[chosen],
            shift=self.shift[chosen],
            reach=self.reach[chosen],
        )

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Those whose bias has a rest that is more than float32's noise, and whose sums can be added to one."""
        real = np.abs(self.units - np.rint(self.units)) > NOISE * np.abs(self.units)
        return np.asarray(real & (self.reach + np.abs(self.units) < MOST_WITH_REST))


def carried(channels: Channels) -> tuple[Int32s, Int32s]:
    """Biases as whole numbers, and the multipliers with the rests.

    A rest has 7 bits. Where some sum would come out as another step than the real result, neighbours are tried.
    """
    parts = np.rint(channels.units).astype(np.int64) * RESTS
    multiplier = channels.multiplier.astype(np.int64)
    left = np.flatnonzero(channels.apart)
    parts[left] = np.rint(channels.units[left] * RESTS).astype(np.int64)
    sums, steps, counts = _around(channels[left])
    fewest = np.full(len(left), np.iinfo(np.int64).max)
    nearest = parts.copy()
    for part, tilt in TRIALS:
        open_ = np.flatnonzero(fewest)
        if not len(open_):
            break
        at = left[open_]
        trial = np.clip(channels.multiplier[at].astype(np.int64) + tilt, 1 << 30, (1 << 31) - STEP)
        wrong = _wrong(channels[at], nearest[at] + part, trial, (sums[open_], steps[open_], counts[open_]))
        better = wrong < fewest[open_]
        fewest[open_[better]] = wrong[better]
        parts[at[better]], multiplier[at[better]] = nearest[at[better]] + part, trial[better]
    return (parts // RESTS).astype(np.int32), with_rests(multiplier.astype(np.int32), parts % RESTS)


def _around(channels: Channels) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Of each channel and each step but the last the first sum with a larger result, and whether there is one."""
    steps = np.arange(channels.low, channels.high, dtype=np.int64)[None, :]
    middles = (steps + 0.5) / channels.factor[:, None] - channels.units[:, None]
    counts = np.abs(middles) <= channels.reach[:, None]
    first = np.where(counts, np.floor(middles), 0).astype(np.int64) + 1
    return first, np.broadcast_to(steps, first.shape), counts


def _wrong(channels: Channels, parts: Ints, multiplier: Ints, around: tuple[Ints, Ints, Any]) -> Ints:
    """How many steps begin at another sum than they should."""
    sums, steps, counts = around
    whole = (parts // RESTS)[:, None] + sums
    scale = with_rests(multiplier.astype(np.int32), parts % RESTS)[:, None], channels.shift[:, None]
    above = requantize_numpy(whole, *scale, FLOAT32) > steps
    below = requantize_numpy(whole - 1, *scale, FLOAT32) <= steps
    return np.asarray((counts & ~(above & below)).sum(axis=1), np.int64)


# What convolutions and matrix products share: weights, biases and factors of an accumulator in integers.


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


def read_twice(emitter: Emitter, data: Any, grid: QuantGrid, values: Array, rest: Array | None) -> tuple[Any, Array]:
    """Input and weights where the latter need 9 bits: each element is read twice, and its weight is in two parts."""
    if rest is None:
        return data, np.ascontiguousarray(values)
    axis = values.ndim - 1
    twice = emitter.bind(relax.op.repeat(data, 2, axis), quantisation=grid.quantisation, suffix="_twice")
    return twice, np.stack([values, rest], axis=-1).reshape(*values.shape[:-1], 2 * values.shape[-1])


def add_bias(graph: QdqGraph, core: Any, *operators: str) -> tuple[Any, Array | None] | None:
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
    island: Island, data: QuantGrid, weights: Weights, axis: int, bias: Array, *, narrow: bool = True
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


def _reach(weights: Weights, axis: int, data: QuantGrid) -> NDArray[np.int64]:
    """How far from zero a channel's sum can be, whatever the zero point."""
    values = weights.values.astype(np.int64) + (0 if weights.rest is None else weights.rest)
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    low, high = data.limits
    return np.asarray((high - low) * np.abs(rows).sum(axis=1))


def ends(island: Island, data: QuantGrid) -> dict[str, int]:
    """The attributes that say where the numbers lie."""
    return {
        "input_zero_point": data.zero_point,
        "output_zero_point": island.output.zero_point,
        "clamp_min": island.low,
        "clamp_max": island.high,
    }
