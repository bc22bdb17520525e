"""One firmware, measured: what each layer took in the unit that records count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from uaccel.cpu_kernels import Choice, Records
from uaccel.cpu_kernels.costs import CYCLES, INSTRUCTIONS
from uaccel.errors import DeviceError
from uaccel.running.taken import Spent, Taken

NANOSECONDS: Final = "nanoseconds"
OWN_CYCLES: Final = "cycles"
"""As the core counts them."""


@dataclass(frozen=True)
class Round:
    """What each layer took, by index, and all of them together."""

    costs: Mapping[int, int]
    unit: str
    instructions: Mapping[int, int] = field(default_factory=dict)
    """Beside the costs, where those count cycles."""

    @property
    def total(self) -> int:
        return sum(self.costs.values())

    def record(self, records: Records, choice: Choice, layer: int) -> Records:
        """With what the picked option took in this layer."""
        label = choice.options[choice.picked]
        counted = {label: self.instructions[layer]} if layer in self.instructions else None
        return records.with_site(choice.site, {label: self.costs[layer]}, counted)


def round_of(indices: Sequence[int], taken: Taken, *, by_instructions: bool) -> Round:
    """Of these layers: the core's cycles, or estimated ones, or instructions where the board counts those alone, else
    time; accelerators included."""
    spent = {one.layer: one for one in taken.layers}
    nothing = Spent(-1, "", 0, 0, 0)
    layers = {index: spent.get(index, nothing) for index in indices}
    counted = {n: one.instructions + one.device for n, one in layers.items() if one.instructions is not None}
    cycles = {n: one.cycles + (0 if one.own else one.device) for n, one in layers.items() if one.cycles is not None}
    if len(counted) < len(layers):
        return Round({n: _nanoseconds(one) + one.device for n, one in layers.items()}, NANOSECONDS)
    if by_instructions or len(cycles) < len(layers):
        return Round(counted, INSTRUCTIONS)
    return Round(cycles, OWN_CYCLES if any(one.own for one in layers.values()) else CYCLES, counted)


def _nanoseconds(spent: Spent) -> int:
    if spent.nanoseconds is None:
        raise DeviceError(f"the board tells neither instructions nor time of layer {spent.name}: nothing to tune by")
    return spent.nanoseconds
