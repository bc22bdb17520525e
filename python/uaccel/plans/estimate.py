"""What a lowered layer is expected to take: of the CPU in instructions, of an accelerator in cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from uaccel.cpu_kernels import Measured, Option, Records, Work
from uaccel.cpu_kernels.costs import INSTRUCTIONS, Estimated
from uaccel.cpu_kernels.selection import Selection
from uaccel.lower.program import Layer, Program

LAYER: Final = 100.0
"""Of a kernel's call and the step of the program around it."""
DRIVER_CALL: Final = 1000.0
"""Of a driver that says nothing: a register interface with an interrupt, as nuc_fpga's, measured under QEMU."""


class Rate(NamedTuple):
    """Instructions for a byte that comes in, an element that goes out, and a multiply-accumulate."""

    byte: float
    element: float
    mac: float = 0.0


RATES: Final = {
    "permute_dims": Rate(0, 4.5),
    "nn.pad": Rate(0, 1.1),
    "uaccel_add_dsp": Rate(0, 17.2),
    "uaccel_average_pool_dsp": Rate(1.2, 9),
    "uaccel_average_pool": Rate(5, 10),
    "uaccel_max_pool_dsp": Rate(1.2, 0.5),
    "uaccel_max_pool": Rate(9.5, 0),
    "uaccel_reduce": Rate(4.5, 5),
    "uaccel_requantize_sums": Rate(0, 23),
    "uaccel_requantize": Rate(0, 15),
    "uaccel_lookup": Rate(0, 5),
    "uaccel_maximum": Rate(0, 8),
    "uaccel_minimum": Rate(0, 8),
    "uaccel_mul_dsp": Rate(0, 9.3),
    "uaccel_mul": Rate(0, 28),
    "uaccel_softmax": Rate(0, 43),
    "uaccel_quantize": Rate(0, 30),
    "uaccel_dequantize": Rate(0, 10),
    "uaccel_resize_nearest": Rate(0, 2.5),
    "uaccel_resize": Rate(0, 25),
    "uaccel_move": Rate(0, 1.4),
    "uaccel_set": Rate(0, 1.4),
    "uaccel_copy": Rate(0, 0.7),
}
"""By operator or the beginning of a function's name, the first that fits: from runs of the project's networks on a
Cortex-M4 under QEMU. Pools go by what their windows cover: ``costs.json`` knows of none."""
OTHER: Final = Rate(1, 25, 8)
"""Of other kernels, and of the C that TVM's lowering gives."""
OFF: Final = 0.15
"""By which share an estimate may miss."""


@dataclass(frozen=True)
class Estimate:
    """``instructions`` of the CPU, ``cycles`` of an accelerator."""

    instructions: float = 0.0
    cycles: float = 0.0

    @property
    def total(self) -> float:
        return self.instructions + self.cycles

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.instructions + other.instructions, self.cycles + other.cycles)


@dataclass(frozen=True)
class Off:
    """A layer whose measurement is known and far from the estimate."""

    layer: str
    estimate: float
    measured: int


class Estimator:
    """For a CPU; what was measured counts for more than any rule."""

    def __init__(self, selection: Selection) -> None:
        self.costs = Estimated.on(selection.target, INSTRUCTIONS)
        chosen = selection.selector
        self.records = chosen.records.counted() if isinstance(chosen, Measured) else Records("")

    def of(self, layer: Layer) -> Estimate:
        """By measurement where there is one."""
        measured, rule = self.measured(layer), self.by_rule(layer)
        if measured is None:
            return rule
        return Estimate(max(0.0, measured - rule.cycles), rule.cycles) if layer.on_accelerator else Estimate(measured)

    def measured(self, layer: Layer) -> int | None:
        """Instructions and cycles, as ``uaccel tune`` recorded them."""
        choice = layer.choice
        return self.records.sites.get(choice.site, {}).get(choice.options[choice.picked]) if choice else None

    def by_rule(self, layer: Layer) -> Estimate:
        if layer.on_accelerator:
            said = layer.instructions
            return Estimate(DRIVER_CALL * len(layer.kernel.calls) if said is None else said, layer.cycles)
        return Estimate(0.0 if layer.is_view else LAYER + self._kernel(layer))

    def _kernel(self, layer: Layer) -> float:
        functions = tuple(dict.fromkeys(call.function for call in layer.kernel.calls))
        elements = sum(value.info.elements for value in layer.outputs)
        rate = next((rate for rate in (_rate(name) for name in (layer.op, *functions)) if rate is not None), None)
        if rate is None:
            known = self.costs.of(Option("", functions), Work(layer.macs, elements))
            if known is not None:
                return known
            rate = OTHER
        moved = elements * _window(layer) or sum(value.info.size for value in layer.inputs)
        return moved * rate.byte + elements * rate.element + layer.macs * rate.mac


def _window(layer: Layer) -> int:
    """Elements that a window covers, which may overlap with its neighbours; 0 where there are no windows."""
    known = next((call.parameters for call in layer.kernel.calls), {})
    rows, columns = known.get("window_height", 0), known.get("window_width", 0)
    return rows * columns if isinstance(rows, int) and isinstance(columns, int) else 0


def _rate(name: str) -> Rate | None:
    return next((rate for beginning, rate in RATES.items() if name.startswith(beginning)), None)


def far_off(program: Program, selection: Selection) -> Iterable[Off]:
    """Layers whose estimate misses what was measured."""
    estimator = Estimator(selection)
    for layer in program.layers:
        measured, estimate = estimator.measured(layer), estimator.by_rule(layer).total
        if measured is not None and abs(estimate - measured) > OFF * measured:
            yield Off(layer.name, estimate, measured)
