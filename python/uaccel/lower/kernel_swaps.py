"""Kernels swapped for others that take less scratch or less flash."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from uaccel.kernels import Option, candidates
from uaccel.kernels.choice import INSTRUCTIONS, Estimated, Selection, Work, kernel_options
from uaccel.kernels.registry import Target
from uaccel.lower.placement import Placement, needed_by_layer, place
from uaccel.lower.program import Layer, Program, check_parameters
from uaccel.ops.operator import Kernel
from uaccel.util.favour import Favour

# Kernels with less scratch memory, where that makes the arena smaller at few more instructions.
#
# A kernel may come with others that do the same in smaller bands (``Kernel.leaner``). At the layers that make the arena
# as large as it is, such a one is taken, as long as all of them together stay within a share of the model's
# instructions.

Leaner = tuple[Kernel, float]
# Of the model's instructions, which are estimated, and so is what it takes more. It is no larger than the saved share
# of the arena unless RAM is what to save.
SCRATCH_SHARES: Final = {Favour.balanced: 0.03, Favour.size: 0.03, Favour.speed: 0.0, Favour.ram: 0.25}


def place_with_less_scratch(
    program: Program, target: Target, *, workspace_io: bool = False
) -> tuple[Program, Placement]:
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
            if share > SCRATCH_SHARES[favour] or (favour is not Favour.ram and share > (whole - most) / whole):
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


# Kernels with less flash, chosen for a whole network at once.
#
# A layer by itself takes its fastest kernel, or where size is favoured the one with the fewest constants. But a
# function
# that no other layer calls is code for this one, and a small layer may have more constants than its time is worth. So
# layers take other kernels as long as each of them takes little longer by itself, and all of them together stay within
# a
# share of the network's estimated time. Where size is favoured, only the first counts, and it may be more.

# Of the time of the layers whose kernels have an estimate: what others may take more, all together.
SHARES: Final = {Favour.balanced: 0.004, Favour.size: math.inf}
# Of the same: what a layer takes at most that may have another kernel, since an estimate may be far off.
PARTS: Final = {Favour.balanced: 0.02, Favour.size: math.inf}
# Of the time of its fastest kernel: what a layer takes at most by another one, however small it is beside others.
LONGEST: Final = {Favour.balanced: 1.5, Favour.size: 2.6}
# So many instructions or cycles more a layer takes in any case: estimates are not more exact than that.
NOISE: Final = 400
CODE: Final = 1000  # Bytes of a function that all its layers share, about, where they were never counted.
INLINED: Final = 400  # Those of a layer by a portable kernel, which is compiled for it alone.
ROOM: Final = {Favour.balanced: 1.0, Favour.size: 1.05}  # How much RAM they may take, of what the network took before.
LEAST: Final = 200  # Bytes that are worth another kernel.
ALONE: Final = "portable"

Taken = dict[int, int]  # By a layer's index the number of the kernel that it takes.


@dataclass(frozen=True)
class _Layer:
    """A layer that has a choice: its kernels, and what each takes by estimate."""

    layer: Layer
    kernels: tuple[Kernel, ...]
    options: tuple[Option, ...]
    times: tuple[float | None, ...]


def place_small(program: Program, selection: Selection, *, workspace_io: bool = False) -> Program:
    """With less flash where that pays and takes little more RAM or none; only where estimates alone chose."""
    estimated = selection.selector
    if not isinstance(estimated, Estimated) or selection.favour not in SHARES:
        return program
    free = {layer.index: choices for layer in program.layers for choices in _choices(layer, selection, estimated)}
    start = {index: choices.layer.choice.picked for index, choices in free.items() if choices.layer.choice}
    whole = sum(free[index].times[number] or 0 for index, number in start.items())
    bound, part = SHARES[selection.favour] * whole, PARTS[selection.favour] * whole
    start = {index: number for index, number in start.items() if (free[index].times[number] or 0) <= part}
    free = {index: free[index] for index in start}
    network = _Network(program, free, estimated.code)
    taken, tried, arena = start, set(), 0
    while True:
        steps = [step for step in network.steps(taken) if tuple(sorted(step.items())) not in tried]
        now = network.flash(taken)
        worth = [(now - network.flash(step), step) for step in steps if _more(free, start, step) <= bound]
        saved, best = max(worth, key=lambda pair: pair[0], default=(0, taken))
        if saved < LEAST:
            return _with(program, free, start, taken)
        tried.add(tuple(sorted(best.items())))
        arena = arena or place(program, workspace_io=workspace_io).arena
        if place(_with(program, free, start, best), workspace_io=workspace_io).arena <= ROOM[selection.favour] * arena:
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
    picked = times[layer.choice.picked]
    if picked is None:
        return
    fastest = min(time for time in times if time is not None)
    longest = max(picked, LONGEST[selection.favour] * fastest, fastest + NOISE)
    times = tuple(None if time is None or time > longest else time for time in times)
    if len(kernels) > 1:
        yield _Layer(layer, kernels, options, times)


@dataclass(frozen=True)
class _Network:
    """The program with its layers that have a choice. ``code``: by function the bytes of each symbol that it needs."""

    program: Program
    free: Mapping[int, _Layer]
    code: Mapping[str, Mapping[str, int]]

    def steps(self, taken: Taken) -> Iterator[Taken]:
        """Another kernel for one layer, or for all layers that call one function."""
        for index, choices in self.free.items():
            for number, time in enumerate(choices.times):
                if time is not None and number != taken[index]:
                    yield taken | {index: number}
        called = self.calls(taken)
        for function in [function for function, count in called.items() if count > 1]:
            users = [index for index in self.free if function in self.free[index].options[taken[index]].functions]
            found = {index: self._without(self.free[index], function, called) for index in users}
            if len(users) == called[function] and None not in found.values():
                yield taken | {index: number for index, number in found.items() if number is not None}

    def calls(self, taken: Taken) -> Counter[str]:
        """How many layers call each function that layers share."""
        kernels = (self._kernel(layer, taken) for layer in self.program.layers)
        return Counter(name for k in kernels if k.family != ALONE for name in {call.function for call in k.calls})

    def flash(self, taken: Taken) -> int:
        """Bytes of code and of what the layers with a choice read, about."""
        chosen = [
            (choices.kernels[taken[index]], choices.options[taken[index]]) for index, choices in self.free.items()
        ]
        own = sum(option.flash + INLINED * (kernel.family == ALONE) for kernel, option in chosen)
        return own + sum(self._symbols(self.calls(taken)).values())

    def _without(self, choices: _Layer, function: str, called: Iterable[str]) -> int | None:
        """The smallest kernel of a layer that does not call the function."""
        known = self._symbols(name for name in called if name != function)
        numbers = [
            number
            for number, option in enumerate(choices.options)
            if choices.times[number] is not None and function not in option.functions
        ]

        def size(number: int) -> int:
            if choices.kernels[number].family == ALONE:
                return choices.options[number].flash + INLINED
            symbols = self._symbols(choices.options[number].functions)
            return choices.options[number].flash + sum(symbols[name] for name in symbols if name not in known)

        return min(numbers, key=size, default=None)

    def _symbols(self, functions: Iterable[str]) -> dict[str, int]:
        """What they need, each once, with its bytes."""
        needed = (self.code.get(function, {function: CODE}) for function in functions)
        return {name: size for symbols in needed for name, size in symbols.items()}

    def _kernel(self, layer: Layer, taken: Taken) -> Kernel:
        return self.free[layer.index].kernels[taken[layer.index]] if layer.index in self.free else layer.kernel


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
