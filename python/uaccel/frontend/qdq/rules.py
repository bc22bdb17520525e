"""Registers the rules that turn islands into integer operators, and computes weights, biases and factors for them.

A rule plans one float operator between ``dequantize`` and ``quantize``: it returns what emits the integer operator,
None if the island is not its topic, or raises a ModelError that says why integers cannot compute it.
"""

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

# Islands and the registry of rules.


@dataclass(frozen=True)
class Island:
    """Describes a float value that the model quantises, and the operator that a rule shall compute.

    ``value`` is what is quantised to ``output``, ``core`` the operator before any activations that a clamp replaces.
    The clamp is ``low`` to ``high``, in integers. ``wide``: operands of 8 bits are read on their 16-bit grid.
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
        """The grid of an operand; None if it is not quantised."""
        grid = moved_grid(self.graph, expr)
        return grid.wide if self.wide and grid is not None else grid

    def need_grid(self, expr: Any, which: str = "its input") -> QuantGrid:
        """The grid of an operand; refuses one that is not quantised."""
        grid = self.grid(expr)
        if grid is None:
            raise ModelError(f"{which} is not quantised")
        return grid

    def need_alike(self, expr: Any) -> QuantGrid:
        """The grid of an operand; refuses one of another type than the output's."""
        grid = self.need_grid(expr)
        self.need_one_type(grid)
        return grid

    def need_one_type(self, grid: QuantGrid) -> None:
        """Refuses an input of another type than the output's."""
        mixed = f"its input has {grid.dtype}, its output {self.output.dtype}"
        need(grid.dtype == self.output.dtype, mixed)

    def need_8_bits(self, *grids: QuantGrid) -> None:
        need(all(grid.dtype == "int8" for grid in (*grids, self.output)), "16-bit activations")


Emit = Callable[[Emitter], Integers]
# Gives what emits the island; None where the rule is about something else; a ModelError says why nothing can.
Rule = Callable[[Island], "Emit | None"]

RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for islands around these operators; rules are asked in the order of registration."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(function)
        return function

    return add


@dataclass(frozen=True)
class _Clamp:
    """An activation that only cuts off: relu, clip, maximum or minimum with a number."""

    source: Any
    low: float | None = None
    high: float | None = None


def island_of(graph: QdqGraph, value: Any, output: QuantGrid, bounds: tuple[int, int] | None = None) -> Island:
    """The island of a quantised value: activations that only cut off become a clamp, within ``bounds``, of integers.

    Quantising rounds monotonically, so that clamping to quantised limits gives what quantising a clamped number gives.
    The walk begins at the activation that comes last, whose limits hold whatever an earlier one says: each earlier
    limit is first brought between those found so far.
    """
    low, high = bounds or output.limits
    core = value
    while (clamp := _clamp(graph, core)) is not None and moved_grid(graph, core) is None:
        low, high = (
            low if clamp.low is None else min(max(low, output.held(clamp.low)), high),
            high if clamp.high is None else max(min(high, output.held(clamp.high)), low),
        )
        core = clamp.source
    return Island(graph, core, value, output, low, high)


def _clamp(graph: QdqGraph, var: Any) -> _Clamp | None:
    """The activation that a variable is bound to, if it only cuts off."""
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
    """A number among a call's arguments, in single precision; None for anything else."""
    value = getattr(getattr(expr, "value", expr), "value", getattr(expr, "value", None))
    try:
        return float(np.float32(value))
    except (TypeError, ValueError):
        return None


# Biases that are no whole number of products.
#
# An accumulator counts products of input and weight steps. A bias of PyTorch or ONNX is a real number, in general
# between two counts; rounding it moves some results by one step. A requantisation in float32 uses the upper 24 of a
# multiplier's 31 bits, so the 7 low bits carry the rest of the bias in 128ths: the output stage computes
# (float32(sum) + rest / 128) * scale. Where that still gives another step than the real result for some sum,
# neighbouring biases and multipliers are tried.

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

# The relative error of a bias that float32 made of a whole number of products: three roundings of at most 2**-24 each.
# A bias this close to a whole number is taken for one.
NOISE: Final = 2.0**-22
STEP: Final = 1 << 7  # From one multiplier that is a float32 to the next: 31 bits, of which it has 24.
# Candidates: what is added to the bias, in 128ths, and to the multiplier. The nearest come first, and ties keep them.
TRIALS: Final = [(part, STEP * tilt) for tilt, part in product((0, 1, -1, 2, -2, 3, -3, 4, -4), (0, 1, -1))]


@dataclass(frozen=True, eq=False)
class QdqChannels:
    """Holds the output stage of each output channel, as real numbers and as the kernel has it.

    ``units``: the bias counted in products. ``factor``: the real factor from a product to a step of the output, and
    ``multiplier`` and ``shift`` the same by ``float32_scales``. ``reach``: a bound of the sums' magnitude. ``low`` and
    ``high``: the least and the largest result, without the zero point.
    """

    units: Reals
    factor: Reals
    multiplier: Int32s
    shift: Int32s
    reach: Ints
    low: int
    high: int

    def __getitem__(self, chosen: Any) -> QdqChannels:
        names = ("units", "factor", "multiplier", "shift", "reach")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which channels get a rest: it is more than float32's noise, and float32 holds every sum exactly."""
        real = np.abs(self.units - np.rint(self.units)) > NOISE * np.abs(self.units)
        return np.asarray(real & (self.reach + np.abs(self.units) < MOST_WITH_REST))


def carried(channels: QdqChannels) -> tuple[Int32s, Int32s]:
    """Whole biases, and multipliers that carry the rests (``with_rests``).

    Each channel begins with its rest rounded to 128ths and goes through ``TRIALS`` until no sum gives another step than
    the real result. Channels that no candidate makes perfect keep the one with the fewest wrong steps, the nearest of
    several. A multiplier stays between 2**30 and the last float32 below 2**31, where its 7 low bits are free.
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


def _around(channels: QdqChannels) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Gives for each channel and step but the last: the first sum whose real result is larger, and whether it is in
    reach.

    (sum + units) * factor exceeds step + 1/2 from the integer after (step + 1/2) / factor - units on.
    """
    steps = np.arange(channels.low, channels.high, dtype=np.int64)[None, :]
    middles = (steps + 0.5) / channels.factor[:, None] - channels.units[:, None]
    counts = np.abs(middles) <= channels.reach[:, None]
    first = np.where(counts, np.floor(middles), 0).astype(np.int64) + 1
    return first, np.broadcast_to(steps, first.shape), counts


def _wrong(channels: QdqChannels, parts: Ints, multiplier: Ints, around: tuple[Ints, Ints, Any]) -> Ints:
    """Counts, for each channel, the steps that end at another sum than they should.

    Results grow with the sum. If the first sum of each larger result and the one before it come out right, so does
    every sum between: two evaluations a step prove all of a channel's sums.
    """
    sums, steps, counts = around
    whole = (parts // RESTS)[:, None] + sums
    scale = with_rests(multiplier.astype(np.int32), parts % RESTS)[:, None], channels.shift[:, None]
    above = requantize_numpy(whole, *scale, FLOAT32) > steps
    below = requantize_numpy(whole - 1, *scale, FLOAT32) <= steps
    return np.asarray((counts & ~(above & below)).sum(axis=1), np.int64)


# What convolutions and matrix products share: integer weights, biases, and the factors of the output stage.


@dataclass(frozen=True)
class QdqWeights:
    """Holds integer weights without their zero points, and one scale for each output channel.

    Where they need 9 bits, ``values`` saturate and ``rest`` is what is missing: values + rest are the weights.
    """

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    rest: NDArray[np.int8] | None = None

    @property
    def bits(self) -> int:
        """4 where four bits hold each weight, whatever the model's type, else 8."""
        return 4 if self.rest is None and self.values.min() >= -8 and self.values.max() <= 7 else 8


def weights_of(known: KnownIntegers | None, axis: int) -> QdqWeights:
    """The weights with output channels along ``axis``.

    A zero point can push them to 9 bits. The two int8 parts of ``Weights`` reach 127 + 127 = 254; more is refused.
    """
    if known is None:
        raise ModelError("its weights are not quantised constants")
    scales = known.scales_along(axis)
    if scales is None:
        raise ModelError("its weights have scales along another axis than the output channels")
    centred = known.centred
    need(np.abs(centred).max(initial=0) <= 254, "its weights have more than 8 bits")
    values = np.clip(centred, -128, 127)
    rest = centred - values
    return QdqWeights(values.astype(np.int8), scales, rest.astype(np.int8) if rest.any() else None)


def read_twice(emitter: Emitter, data: Any, grid: QuantGrid, values: Array, rest: Array | None) -> tuple[Any, Array]:
    """Input and weights for the kernel; where weights need 9 bits, each input element is read twice.

    Both are doubled along the last axis: x * value + x * rest is x times the weight.
    """
    if rest is None:
        return data, np.ascontiguousarray(values)
    axis = values.ndim - 1
    twice = emitter.bind(relax.op.repeat(data, 2, axis), quantisation=grid.quantisation, suffix="_twice")
    return twice, np.stack([values, rest], axis=-1).reshape(*values.shape[:-1], 2 * values.shape[-1])


def add_bias(graph: QdqGraph, core: Any, *operators: str) -> tuple[Any, Array | None] | None:
    """Finds one of the operators, with or without a constant added to it; None for anything else."""
    if graph.call(core, *operators) is not None:
        return core, None
    added = graph.call(core, "relax.add")
    for data, other in (added.args, reversed(added.args)) if added is not None else ():
        bias = graph.value(other)
        if bias is not None and is_var(data) and graph.call(data, *operators) is not None:
            return data, bias
    return None


def channel_bias(bias: Array | None, axis: int, rank: int, channels: int) -> Array:
    """The bias as one number for each output channel; refuses a summand of another shape."""
    if bias is None:
        return np.zeros(channels, np.float32)
    full = bias.reshape((1,) * (rank - bias.ndim) + bias.shape) if bias.ndim <= rank else bias
    others = [extent for i, extent in enumerate(full.shape) if i != axis]
    single = full.ndim == rank and all(extent == 1 for extent in others) and full.shape[axis] in (1, channels)
    need(single, "what is added to it is not one number for each channel")
    return np.broadcast_to(full.reshape(-1), (channels,))


QdqConstants = tuple[Any, Any, Any]  # Bias, multiplier and shift, which follow the weights of an integer operator.


def constants(
    island: Island, data: QuantGrid, weights: QdqWeights, axis: int, bias: Array, *, narrow: bool = True
) -> QdqConstants:
    """The bias, counted in products, and the factor from products to the output's grid.

    Output channels of the weights lie along ``axis``. With 32-bit sums the multiplier carries the bias's rest
    (``carried``). Sums of 16-bit activations take 64 bits and a rounded bias; with ``narrow`` they take 32 where no sum
    with its bias can reach 2**31. A 64-bit bias stays within 2**53, up to which a double has every integer.
    """
    products = np.float32(data.scale) * weights.scales
    units = bias.astype(np.float64) / products.astype(np.float64)
    reach = _reach(weights, axis, data)
    wide = data.dtype == "int16" and not (narrow and (reach + np.abs(units)).max(initial=0) < 2**31)
    fits = np.isfinite(units).all() and np.abs(units).max(initial=0) <= (2**53 if wide else 2**31 - 2)
    need(fits, "its bias does not fit 32 bits in units of the products")
    multiplier, shift = float32_scales(products / np.float32(island.output.scale), wide)
    if wide:
        return constant(np.rint(units).astype(np.int64)), constant(multiplier), constant(shift)
    factor = np.float64(data.scale) * weights.scales.astype(np.float64) / np.float64(island.output.scale)
    zero = island.output.zero_point
    bounds = island.low - zero, island.high - zero
    whole, with_rest = carried(QdqChannels(units, factor, multiplier, shift, reach, *bounds))
    return constant(whole), constant(with_rest), constant(shift)


def _reach(weights: QdqWeights, axis: int, data: QuantGrid) -> NDArray[np.int64]:
    """A bound of each channel's sum: an input less its zero point is at most the type's whole range from 0."""
    values = weights.values.astype(np.int64) + (0 if weights.rest is None else weights.rest)
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    low, high = data.limits
    return np.asarray((high - low) * np.abs(rows).sum(axis=1))


def ends(island: Island, data: QuantGrid) -> dict[str, Any]:
    """The attributes for zero points and clamp that operators with weights share."""
    return {
        "input_zero_point": data.zero_point,
        "output_zero_point": island.output.zero_point,
        "clamp_min": island.low,
        "clamp_max": island.high,
    }
