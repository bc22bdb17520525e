"""Kernels with less scratch memory, where that makes the arena smaller at few more instructions.

A kernel may come with others that do the same in smaller bands (``Kernel.leaner``). At the layers that make the arena
as large as it is, such a one is taken, as long as all of them together stay within a share of the model's instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.choice import Work, kernel_options
from uaccel.cpu_kernels.costs import INSTRUCTIONS, Estimated
from uaccel.cpu_kernels.target import Target
from uaccel.lower.placement import Placement, needed_by_layer, place
from uaccel.lower.program import Layer, Program
from uaccel.ops.kernel import Kernel

Leaner = tuple[Kernel, float]
SHARES: Final = {Favour.balanced: 0.03, Favour.size: 0.03, Favour.speed: 0.0, Favour.ram: 0.25}
"""Of the model's instructions, which are estimated, and so is what it takes more. It is no larger than the saved share
of the arena unless RAM is what to save."""


def place_lean(program: Program, target: Target, *, workspace_io: bool = False) -> tuple[Program, Placement]:
    """The program with leaner kernels where the arena is smaller with them, and its placement."""
    placement = place(program, workspace_io=workspace_io)
    leaner = _Leaner(program, _instructions(program, target), workspace_io).result()
    if leaner is not program:
        smaller = place(leaner, workspace_io=workspace_io)
        if smaller.arena < placement.arena:
            return leaner, smaller
    return program, placement


def _instructions(program: Program, target: Target) -> float:
    """Of one inference on the CPU, about; one a product where a kernel was never measured."""
    estimated, total = Estimated.on(target, INSTRUCTIONS), 0.0
    for layer in program.layers:
        (option,) = kernel_options([layer.kernel])
        work = Work(layer.macs, sum(value.info.elements for value in layer.outputs))
        total += estimated.of(option, work) or layer.macs
    return total


@dataclass
class _Leaner:
    """``instructions`` are those of the whole program; ``known`` and ``more`` are leaner kernels by the layer."""

    program: Program
    instructions: float
    workspace_io: bool
    known: dict[int, list[Leaner]] = field(default_factory=dict)
    more: dict[int, Iterator[Leaner]] = field(default_factory=dict)

    def result(self) -> Program:
        spent: dict[int, float] = {}
        best, needed = self.program, self._needed(self.program)
        whole = most = max(needed.values(), default=0)
        while most:
            program = best
            for step in [step for step, size in needed.items() if size == most]:
                found = self._smaller(program, step, most)
                if found is None:
                    return best
                program, spent[step] = found
            needed = self._needed(program)
            most = max(needed.values())
            favour, share = program.favour, sum(spent.values()) / max(1, self.instructions)
            if share > SHARES[favour] or (favour is not Favour.ram and share > (whole - most) / whole):
                break
            best = program
        return best

    def _needed(self, program: Program) -> dict[int, int]:
        return needed_by_layer(program, workspace_io=self.workspace_io)

    def _smaller(self, program: Program, step: int, size: int) -> tuple[Program, float] | None:
        """With the cheapest kernel for a layer by which it needs fewer bytes."""
        if not 0 <= step < len(program.layers):
            return None
        for kernel, more in self._leaner(step):
            trial = _with_kernel(program, step, kernel)
            if self._needed(trial).get(step, 0) < size:
                return trial, more
        return None

    def _leaner(self, step: int) -> Iterator[Leaner]:
        """Made when they are wanted, and once."""
        known = self.known.setdefault(step, [])
        yield from known
        for option in self.more.setdefault(step, iter(self.program.layers[step].kernel.leaner())):
            known.append(option)
            yield option


def _with_kernel(program: Program, index: int, kernel: Kernel) -> Program:
    def changed(layer: Layer) -> Layer:
        words = f"{layer.reason.partition('; less scratch')[0]}; less scratch for a smaller arena"
        return replace(layer, kernel=kernel, reason=words)

    layers = (changed(layer) if layer.index == index else layer for layer in program.layers)
    return replace(program, layers=tuple(layers))
