"""Estimates what a CPU takes for a layer. Whatever compares or shows the cost of a layer asks here.

A kernel whose functions were measured costs what ``costs.json`` says, any other one its rate. ``Costs`` is asked about
a kernel, ``CallCosts`` about an operator call, for which it picks the kernel as the compiler does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from uaccel.kernels.choice import (
    ANY_CPU,
    CYCLES,
    Choice,
    Estimated,
    Option,
    Selection,
    Shares,
    Work,
    kernel_options,
    pick,
    site_words,
)
from uaccel.kernels.registry import Target, candidates
from uaccel.ops.kernel import Kernel
from uaccel.ops.operator import REGISTRY, Computable, Site, short_name


class Rate(NamedTuple):
    """Holds the instructions for a byte that comes in, an element that goes out, and a multiply-accumulate."""

    byte: float
    element: float
    mac: float = 0.0


# Rates by operator or by the beginning of a function's name; the first that fits counts, so longer names come first.
# They are from runs of the project's networks on a Cortex-M4 under QEMU. ``costs.json`` has no rates for pools: their
# bytes are what their windows cover.
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
    "uaccel_resize_bilinear_wider": Rate(0, 15),
    "uaccel_resize": Rate(0, 25),
    "uaccel_move": Rate(0, 1.4),
    "uaccel_set": Rate(0, 1.4),
    "uaccel_copy": Rate(0, 0.7),
}
OTHER: Final = Rate(1, 25, 8)  # The rate of other kernels, and of the C that TVM's lowering gives.
EACH: Final = 1.25  # Cycles that an instruction of these takes on average.
LAYER: Final = 100.0  # Instructions of a kernel's call and the step of the program around it.
# The cost of kernels that were never measured, where a part of a layer is asked about.
UNKNOWN: Final[Mapping[str, float]] = {"mac": 6.0, "output": 12.0, "call": 300.0}
VECTORS: Final = 0.5  # Its cost of a product where sixteen bytes are multiplied at once.
VIEWS: Final = ("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.flatten")


@dataclass(frozen=True)
class Costs:
    """Estimates what a kernel takes for some work, also where it was never measured."""

    estimated: Estimated

    @classmethod
    def on(cls, target: Target, unit: str = "") -> Costs:
        return cls(Estimated.on(target, unit))

    def of(self, kernel: Kernel, work: Work) -> float:
        """What a part of a layer takes."""
        known = self.estimated.of(kernel_options([kernel])[0], work)
        if known is not None:
            return known
        mac = VECTORS if kernel.family == "arm_helium" else UNKNOWN["mac"]
        return mac * work.macs + UNKNOWN["output"] * work.outputs + UNKNOWN["call"]

    def of_layer(self, op: str, kernel: Kernel | None, work: Work, read: int, lie: Shares | None = None) -> float:
        """What a layer takes, whose inputs have ``read`` bytes; without a kernel it is C from TVM's lowering. ``lie``:
        in which memories its constants lie, as :meth:`Estimated.of` takes it."""
        if kernel is not None and kernel.view:
            return 0.0
        (option,) = kernel_options([kernel]) if kernel is not None else [Option("")]
        known = self.estimated.of(option, work, lie)
        if known is not None:
            return known
        calls = () if kernel is None else kernel.calls
        names = dict.fromkeys([op, *(call.function for call in calls)])
        rate = next((rate for rate in map(_rate, names) if rate is not None), OTHER)
        moved = work.outputs * _window(kernel) or read
        each = EACH if self.estimated.unit == CYCLES else 1.0
        taken = each * (LAYER + moved * rate.byte + work.outputs * rate.element + work.macs * rate.mac)
        return taken + self.estimated.waits(option, work, taken, lie)


def _window(kernel: Kernel | None) -> int:
    """Elements that a window covers, which may overlap with its neighbours; 0 where there are no windows."""
    known = next((call.parameters for call in kernel.calls), {}) if kernel is not None else {}
    rows, columns = known.get("window_height", 0), known.get("window_width", 0)
    return rows * columns if isinstance(rows, int) and isinstance(columns, int) else 0


def _rate(name: str) -> Rate | None:
    return next((rate for beginning, rate in RATES.items() if name.startswith(beginning)), None)


def picked(operator: Computable, site: Site[Any], work: Work, selection: Selection) -> tuple[Kernel, Choice] | None:
    """The kernel that is picked, and among which; None if there is none."""
    kernels = candidates(operator, site, selection.target, selection.favour)
    if not kernels:
        return None
    choice = pick(selection.selector, site_words(operator, site), kernel_options(kernels), work)
    return kernels[choice.picked], choice


@dataclass(frozen=True)
class CallCosts:
    """Estimates what the CPU would take for operator calls, whoever computes them in the end."""

    selection: Selection = ANY_CPU
    known: dict[str, float] = field(default_factory=dict, compare=False)

    def of(self, name: str, op: str, site: Site[Any], macs: int) -> float:
        """``name``: the call's among those of the model, under which the answer is kept."""
        if name not in self.known:
            self.known[name] = self._of(op, site, macs)
        return self.known[name]

    def _of(self, op: str, site: Site[Any], macs: int) -> float:
        if op in VIEWS:
            return 0.0
        work = Work(macs, sum(info.elements for info in site.outputs))
        read = sum(operand.info.size for operand in site.operands if operand.constant is None)
        operator = REGISTRY.get(op)
        found = None if operator is None else picked(operator, site, work, self.selection)
        kernel = None if found is None else found[0]
        return Costs.on(self.selection.target).of_layer(short_name(op), kernel, work, read)
