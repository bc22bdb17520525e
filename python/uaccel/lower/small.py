"""Kernels with less flash, chosen for a whole network at once.

A layer by itself takes its fastest kernel, or where size is favoured the one with the fewest constants. But a function
that no other layer calls is code for this one, and a small layer may have more constants than its time is worth. So
layers take other kernels as long as all of them together stay within a share of the network's estimated time, or where
size is favoured each stays within what it may take there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels import Estimated, Option, Work, candidates, kernel_options
from uaccel.cpu_kernels.costs import SLOWER
from uaccel.cpu_kernels.selection import Selection
from uaccel.lower.placement import place
from uaccel.lower.program import Layer, Program
from uaccel.lower.structures import check_parameters
from uaccel.ops.kernel import Kernel

SHARES: Final = {Favour.balanced: 0.004, Favour.size: math.inf}
"""Of the time of the layers whose kernels have an estimate: what others may take more, all together."""
PARTS: Final = {Favour.balanced: 0.02, Favour.size: math.inf}
"""Of the same: what a layer takes at most that may have another kernel, since an estimate may be far off."""
CODE: Final = 1000
"""Bytes of a function that all its layers share, about."""
INLINED: Final = 400
"""Those of a layer by a portable kernel, which is compiled for it alone."""
LEAST: Final = 200
"""Bytes that are worth another kernel."""
ALONE: Final = "portable"

Taken = dict[int, int]
"""By a layer's index the number of the kernel that it takes."""


@dataclass(frozen=True)
class _Layer:
    """A layer that has a choice: its kernels, and what each takes by estimate."""

    layer: Layer
    kernels: tuple[Kernel, ...]
    options: tuple[Option, ...]
    times: tuple[float | None, ...]


def place_small(program: Program, selection: Selection, *, workspace_io: bool = False) -> Program:
    """With less flash where that pays and takes no more RAM; only where estimates alone chose."""
    estimated = selection.selector
    if not isinstance(estimated, Estimated) or selection.favour not in SHARES:
        return program
    free = {layer.index: choices for layer in program.layers for choices in _choices(layer, selection, estimated)}
    start = {index: choices.layer.choice.picked for index, choices in free.items() if choices.layer.choice}
    whole = sum(free[index].times[number] or 0 for index, number in start.items())
    bound, part = SHARES[selection.favour] * whole, PARTS[selection.favour] * whole
    start = {index: number for index, number in start.items() if (free[index].times[number] or 0) <= part}
    free = {index: free[index] for index in start}
    arena, taken, tried = place(program, workspace_io=workspace_io).arena, start, set()
    while True:
        steps = [step for step in _steps(program, free, taken) if tuple(sorted(step.items())) not in tried]
        worth = [(_saved(program, free, taken, step), step) for step in steps if _more(free, start, step) <= bound]
        saved, best = max(worth, key=lambda pair: pair[0], default=(0, taken))
        if saved < LEAST:
            return _with(program, free, start, taken)
        tried.add(tuple(sorted(best.items())))
        if place(_with(program, free, start, best), workspace_io=workspace_io).arena <= arena:
            taken = best


def _choices(layer: Layer, selection: Selection, estimated: Estimated) -> Iterator[_Layer]:
    """Of one layer, if it has a choice between kernels whose time is known, those that favour size among them."""
    if layer.applied is None or layer.choice is None or layer.streaming is not None:
        return
    operator, site = layer.applied.operator, layer.applied.site
    own = candidates(operator, site, selection.target, selection.favour)
    small = candidates(operator, site, selection.target, Favour.size)
    known = {option.functions for option in kernel_options(own)}
    asked = zip(small, kernel_options(small), strict=True)
    more = [kernel for kernel, option in asked if option.functions not in known]
    kernels = (*own, *more)
    options = tuple(kernel_options(kernels))
    work = Work(layer.macs, site.output.elements)
    times = tuple(estimated.of(option, work) for option in options)
    if times[layer.choice.picked] is None:
        return
    if selection.favour is Favour.size:
        longest = SLOWER * min(time for time in times if time is not None)
        times = tuple(None if time is None or time > longest else time for time in times)
    if len(kernels) > 1:
        yield _Layer(layer, kernels, options, times)


def _steps(program: Program, free: Mapping[int, _Layer], taken: Taken) -> Iterator[Taken]:
    """Another kernel for one layer, or for all layers that call one function."""
    for index, choices in free.items():
        for number, time in enumerate(choices.times):
            if time is not None and number != taken[index]:
                yield taken | {index: number}
    called = _calls(program, free, taken)
    for function in [function for function, count in called.items() if count > 1]:
        users = [index for index in free if function in free[index].options[taken[index]].functions]
        found = {index: _without(free[index], function, called) for index in users}
        if len(users) == called[function] and None not in found.values():
            yield taken | {index: number for index, number in found.items() if number is not None}


def _without(choices: _Layer, function: str, called: Mapping[str, int]) -> int | None:
    """The smallest kernel of a layer that does not call the function."""
    numbers = [
        number
        for number, option in enumerate(choices.options)
        if choices.times[number] is not None and function not in option.functions
    ]
    return min(numbers, key=lambda n: _bytes(choices.kernels[n], choices.options[n], called), default=None)


def _bytes(kernel: Kernel, option: Option, called: Mapping[str, int]) -> int:
    code = INLINED if kernel.family == ALONE else sum(CODE for name in option.functions if name not in called)
    return option.flash + code


def _calls(program: Program, free: Mapping[int, _Layer], taken: Taken) -> Counter[str]:
    """How many layers call each function that layers share."""
    kernels = (_kernel(layer, free, taken) for layer in program.layers)
    return Counter(name for k in kernels if k.family != ALONE for name in {call.function for call in k.calls})


def _kernel(layer: Layer, free: Mapping[int, _Layer], taken: Taken) -> Kernel:
    return free[layer.index].kernels[taken[layer.index]] if layer.index in free else layer.kernel


def _saved(program: Program, free: Mapping[int, _Layer], taken: Taken, step: Taken) -> int:
    """Bytes, about."""

    def flash(taken: Taken) -> int:
        called = _calls(program, free, taken)
        own = sum(_bytes(free[index].kernels[n], free[index].options[n], called) for index, n in taken.items())
        return own + CODE * len(called)

    return flash(taken) - flash(step)


def _more(free: Mapping[int, _Layer], start: Taken, step: Taken) -> float:
    """What kernels take more than those that were chosen first."""
    times = ((free[index].times[n] or 0) - (free[index].times[start[index]] or 0) for index, n in step.items())
    return sum(times)


def _with(program: Program, free: Mapping[int, _Layer], start: Taken, taken: Taken) -> Program:
    if taken == start:
        return program

    def changed(layer: Layer) -> Layer:
        number = taken.get(layer.index)
        if number is None or layer.choice is None or number == start[layer.index]:
            return layer
        kernel = check_parameters(free[layer.index].kernels[number])
        why = "less flash for the network"
        functions = ", ".join(dict.fromkeys(call.function for call in kernel.calls))
        labels = tuple(option.label for option in free[layer.index].options)
        choice = replace(layer.choice, options=labels, picked=number, why=why)
        reason = f"CPU kernel {functions} ({kernel.family}); {why}"
        return replace(layer, kernel=kernel, reason=reason, choice=choice)

    return replace(program, layers=tuple(changed(layer) for layer in program.layers))
