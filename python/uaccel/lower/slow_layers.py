"""Finds layers that the best kernels of the CPU do not compute: why, what that costs, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError
from uaccel.kernels import Work
from uaccel.kernels.choice import Selection, Shares
from uaccel.kernels.cpu_costs import Costs, picked
from uaccel.kernels.registry import is_best, refusal
from uaccel.lower.program import Layer, Program
from uaccel.model import TensorInfo
from uaccel.ops.exact import TFLITE
from uaccel.ops.operator import Operand, Site

PRINTED: Final = "tir"  # The family of what TVM's lowering gives.
Lie = Mapping[str, Shares]  # By layer where its constants lie.
UNKNOWN: Final[Lie] = {}
WITH_WEIGHTS: Final = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d")


@dataclass(frozen=True)
class SlowLayer:
    """Describes such a layer. ``cycles`` are estimated; ``fast_cycles`` are those of the best kernels if they took it.

    ``fast_cycles`` is None where no kernel is known that would compute the layer if it were mended.
    """

    layer: str
    family: str
    reason: str
    remedy: str
    cycles: int
    fast_cycles: int | None


def slow_layers(program: Program, selection: Selection, lie: Lie = UNKNOWN) -> list[SlowLayer]:
    """Lists the layers in the order of the program; those that a function of control flow runs are among them."""
    found = (_slow(layer, selection, lie) for whole in program.layers for layer in _each(whole))
    return [slow for slow in found if slow is not None]


def _each(layer: Layer) -> Iterator[Layer]:
    for operator in layer.operators:
        yield from (one for inner in operator.inner for one in _each(inner))
        yield operator


def _slow(layer: Layer, selection: Selection, lie: Lie) -> SlowLayer | None:
    if layer.on_accelerator or layer.is_view:
        return None
    if layer.kernel.family == PRINTED:
        why, remedy = f"no kernel computes {layer.op} of these types", "take an operator with a kernel"
        return SlowLayer(layer.name, PRINTED, why, remedy, cycles_of(layer, selection, lie), None)
    if layer.applied is None:
        return None
    operator, site = layer.applied.operator, layer.applied.site
    if is_best(operator, layer.kernel, selection.target):
        return None
    declined = refusal(operator, site, selection.target, selection.favour)
    if declined is None:
        return None
    fast = _mended(layer, site, selection)
    reason, remedy = declined.reason, declined.remedy
    return SlowLayer(layer.name, layer.kernel.family, reason, remedy, cycles_of(layer, selection, lie), fast)


def cycles_of(layer: Layer, selection: Selection, lie: Lie = UNKNOWN) -> int:
    """Estimates what the CPU takes for a layer."""
    read = sum(value.info.size for value in layer.inputs)
    costs = Costs.on(selection.target)
    return round(costs.of_layer(layer.op, layer.kernel, _work(layer), read, lie.get(layer.name)))


def _work(layer: Layer) -> Work:
    return Work(layer.macs, sum(value.info.elements for value in layer.outputs))


def _mended(layer: Layer, site: Site[Any], selection: Selection) -> int | None:
    """Estimates a layer with weights as if it were of the same shapes, and the best kernels took it."""
    if layer.applied is None or layer.op not in WITH_WEIGHTS:
        return None
    operator, usual = layer.applied.operator, _usual(site)
    if refusal(operator, usual, selection.target) is not None:
        return None
    work = _work(layer)
    found = picked(operator, usual, work, selection)
    return None if found is None else round(Costs.on(selection.target).of_layer(layer.op, found[0], work, 0))


def _usual(site: Site[Any]) -> Site[Any]:
    """Returns the call on int8, with TFLite's rounding, small weights and a scale that every kernel takes."""
    data, weights, *constants = site.operands
    given = {"weight_bits": 8} if hasattr(site.attrs, "weight_bits") else {}
    given |= {"input_zero_point": 0, "output_zero_point": 0, "clamp_min": -128, "clamp_max": 127}
    attrs = replace(site.attrs, rounding=TFLITE, **given)
    channels = site.output.shape[-1]
    dtypes, values = ("int32", "int32", "int32"), (0, 3 << 29, -9)  # bias, multiplier, shift
    usual = [
        Operand(TensorInfo((channels,), dtype), np.full(channels, value, dtype))
        for dtype, value in zip(dtypes, values, strict=True)
    ]
    ones = Operand(TensorInfo(weights.info.shape, "int8"), np.ones(weights.info.shape, np.int8))
    read = Operand(replace(data.info, dtype="int8"))
    return Site(attrs, (read, ones, *usual, *constants[3:]), (replace(site.output, dtype="int8"),))


def share_of(slow: list[SlowLayer], program: Program, selection: Selection, lie: Lie = UNKNOWN) -> float:
    """Returns the part of the CPU's estimated cycles that the layers take."""
    layers = (one for layer in program.layers for one in _each(layer) if not one.on_accelerator)
    whole = sum(cycles_of(one, selection, lie) for one in layers)
    return sum(layer.cycles for layer in slow) / whole if whole else 0.0


def slow_report(program: Program, selection: Selection, lie: Lie) -> dict[str, Any]:
    """Returns the layers and their share of the time as JSON."""
    slow = slow_layers(program, selection, lie)
    return {"layers": [asdict(layer) for layer in slow], "share": share_of(slow, program, selection, lie)}


def require_fast(program: Program, selection: Selection) -> None:
    """Raises ModelError where layers are slow, with the reason of the dearest one."""
    slow = slow_layers(program, selection)
    if slow:
        part = 100 * share_of(slow, program, selection)
        many, worst = f"{len(slow)} layer{'s' if len(slow) > 1 else ''}", max(slow, key=lambda layer: layer.cycles)
        names = ", ".join(layer.layer for layer in slow)
        raise ModelError(
            f"--require-fast: the best kernels for {selection.target.cpu} do not compute {many}, {part:.1f} % of the "
            f"cycles: {names}. {worst.layer}: {worst.reason}; {worst.remedy}, or leave --require-fast away. "
            "'uaccel explain' tells the reason of each"
        )
