"""Swaps kernels for others that take less scratch memory or less flash, where that costs little time."""

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
from uaccel.ops.kernel import Constant, Kernel
from uaccel.util.favour import Favour

# Kernels with less scratch memory, where that makes the arena smaller at few more instructions.
#
# A kernel may come with others that do the same in smaller bands (``Kernel.leaner``). The layers that need the most
# bytes at once make the arena as large as it is, so leaner kernels are tried only there: in each round all layers at
# the maximum need one, or nothing is gained. Rounds go on while the extra instructions of all stay within a share.

Leaner = tuple[Kernel, float]  # A kernel, and the instructions that it takes more.
# The share of the model's estimated instructions that leaner kernels may take more, by what is favoured. Unless RAM is
# favoured, this share must not exceed the saved share of the arena either.
SCRATCH_SHARES: Final = {Favour.balanced: 0.03, Favour.size: 0.03, Favour.speed: 0.0, Favour.ram: 0.25}


def place_with_less_scratch(
    program: Program, target: Target, *, workspace_io: bool = False, effort: float = 1.0
) -> tuple[Program, Placement]:
    """The program with leaner kernels where the arena is smaller with them, and its placement."""
    placement = place(program, workspace_io=workspace_io, effort=effort)
    leaner = _Leaner(program, _instructions(program, target), workspace_io).result()
    if leaner is not program:
        smaller = place(leaner, workspace_io=workspace_io, effort=effort)
        if smaller.arena < placement.arena:
            return leaner, smaller
    return program, placement


def _instructions(program: Program, target: Target) -> float:
    """Estimates the instructions of one inference on the CPU; one a product where a kernel was never measured."""
    estimated, total = Estimated.on(target, INSTRUCTIONS), 0.0
    for layer in program.layers:
        (option,) = kernel_options([layer.kernel])
        work = Work(layer.macs, sum(value.info.elements for value in layer.outputs))
        total += estimated.of(option, work) or layer.macs
    return total


@dataclass
class _Leaner:
    """Searches leaner kernels. ``instructions``: those of the whole program. ``known``: the leaner kernels of a layer
    that were made; ``more`` makes further ones. Making one can be dear."""

    program: Program
    instructions: float
    workspace_io: bool
    known: dict[int, list[Leaner]] = field(default_factory=dict)
    more: dict[int, Iterator[Leaner]] = field(default_factory=dict)

    def result(self) -> Program:
        """The program with leaner kernels at the layers that need most; the last one whose instructions are allowed."""
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
        """The program with a layer's first leaner kernel that makes it need fewer bytes, and what that takes more."""
        if not 0 <= step < len(program.layers):
            return None
        for kernel, more in self._leaner(step):
            trial = _with_kernel(program, step, kernel)
            if self._needed(trial).get(step, 0) < size:
                return trial, more
        return None

    def _leaner(self, step: int) -> Iterator[Leaner]:
        """The leaner kernels of a layer, each made when it is asked for, and once."""
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
# function that no other layer calls is code for this layer alone, and a small layer may have more constants than its
# time is worth. So layers take other kernels, as long as each takes little longer by itself and all together stay
# within a share of the network's estimated time. Where size is favoured, only the first limit holds, and it is wider.

# What other kernels may take more, all together: a share of the time of all layers whose kernels have an estimate.
SHARES: Final = {Favour.balanced: 0.004, Favour.size: math.inf}
# The largest share of that time that a layer may have to be given another kernel: its estimate may be far off.
PARTS: Final = {Favour.balanced: 0.02, Favour.size: math.inf}
# The most that a layer may take with another kernel, as a multiple of its fastest one, however small the layer is.
LONGEST: Final = {Favour.balanced: 1.5, Favour.size: 2.6}
# Instructions or cycles that a layer may always take more: estimates are not more exact than that.
NOISE: Final = 400
CODE: Final = 1000  # Bytes assumed for a shared function whose code was never counted.
CALLING: Final = 180  # Bytes assumed for a call of a shared function, with its parameters.
INLINED: Final = 400  # Bytes assumed for a portable kernel, which is compiled for each layer anew.
ROOM: Final = {Favour.balanced: 1.0, Favour.size: 1.05}  # The arena that is allowed, as a multiple of the one before.
LEAST: Final = 200  # Bytes that a change must save.
ALONE: Final = "portable"  # The family whose kernels share no function between layers.

Taken = dict[int, int]  # The number of the kernel that each layer takes, by the layer's index.


@dataclass(frozen=True)
class _Layer:
    """Holds a layer that has a choice: its kernels, and the estimated time of each; None where it takes too long."""

    layer: Layer
    kernels: tuple[Kernel, ...]
    options: tuple[Option, ...]
    times: tuple[float | None, ...]


def place_small(program: Program, selection: Selection, *, workspace_io: bool = False, effort: float = 1.0) -> Program:
    """The program with kernels that take less flash; unchanged where measurements chose its kernels. Greedy: of all
    steps that stay within the time, the one that saves most is taken if the arena does not outgrow its limit. Each
    choice is tried once, and a taken one saves flash, so the search ends: when no step saves LEAST bytes."""
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
        arena = arena or place(program, workspace_io=workspace_io, effort=effort).arena
        trial = place(_with(program, free, start, best), workspace_io=workspace_io, effort=effort)
        if trial.arena <= ROOM[selection.favour] * arena:
            taken = best


def _choices(layer: Layer, selection: Selection, estimated: Estimated) -> Iterator[_Layer]:
    """The choice of one layer, if it has several kernels: its own, and those that favouring size would offer."""
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
    """Counts the flash of a program whose layers have choices. ``code``: for each function the bytes of all symbols
    that it needs, itself included."""

    program: Program
    free: Mapping[int, _Layer]
    code: Mapping[str, Mapping[str, int]]

    def steps(self, taken: Taken) -> Iterator[Taken]:
        """Steps from a choice: another kernel for one layer, or for all layers that call one function. A shared
        function goes only with its last caller, which no step of one layer would find."""
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
        """How many layers call each function that layers can share."""
        kernels = (self._kernel(layer, taken) for layer in self.program.layers)
        return Counter(name for k in kernels if k.family != ALONE for name in {call.function for call in k.calls})

    def flash(self, taken: Taken) -> int:
        """Estimates the bytes of code, and of the constants of layers with a choice."""
        chosen = [
            (choices.kernels[taken[index]], choices.options[taken[index]]) for index, choices in self.free.items()
        ]
        own = sum(option.flash + INLINED * (kernel.family == ALONE) for kernel, option in chosen)
        return own + sum(self._symbols(self.calls(taken)).values())

    def _without(self, choices: _Layer, function: str, called: Iterable[str]) -> int | None:
        """The kernel of a layer that adds least flash and does not call the function; code of others is free."""
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
        """The symbols that these functions need, each once, with its bytes."""
        needed = (self.code.get(function, {function: CODE}) for function in functions)
        return {name: size for symbols in needed for name, size in symbols.items()}

    def _kernel(self, layer: Layer, taken: Taken) -> Kernel:
        return self.free[layer.index].kernels[taken[layer.index]] if layer.index in self.free else layer.kernel


def code_bytes(program: Program, code: Mapping[str, Mapping[str, int]]) -> int:
    """Estimates a program's flash: constants, each once; functions that kernels share; one function for each layer."""
    functions = [one for layer in program.layers for one in layer.functions if not one.is_view]
    called = {call.function for one in functions if one.kernel.family != ALONE for call in one.kernel.calls}
    needed = [code.get(name, {name: CODE}) for name in called]
    arguments = (part for one in functions for call in one.kernel.calls for part in call.arguments)
    arrays = {(str(p.data.dtype), p.data.tobytes()) for p in arguments if isinstance(p, Constant)}
    own = sum(INLINED if one.kernel.family == ALONE else CALLING for one in functions)
    return own + sum({n: s for names in needed for n, s in names.items()}.values()) + sum(len(b) for _, b in arrays)


def _more(free: Mapping[int, _Layer], start: Taken, step: Taken) -> float:
    """The time that kernels take more than those that were chosen first."""
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
