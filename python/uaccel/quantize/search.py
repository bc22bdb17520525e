"""Searches which layers must stay float or give 16 bits, so that a quantised model reaches a goal.

`search` measures what each layer gains alone, adds layers from the largest gain down until the goal holds, and then
takes back each that the goal does not need. It makes about two models a layer, and finds a set of which no layer can
be left out alone; a smaller set of other layers may exist.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Protocol

from uaccel.errors import InputError
from uaccel.quantize.quality import LayerQuality, Quality

FLOAT, SIXTEEN = "float", "int16"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class QuantChoice:
    """Holds the names of layers that stay float, and of those that give 16 bits."""

    floats: frozenset[str] = frozenset()
    sixteen: frozenset[str] = frozenset()

    def plus(self, name: str, kind: str) -> QuantChoice:
        if kind == FLOAT:
            return replace(self, floats=self.floats | {name})
        return replace(self, sixteen=self.sixteen | {name})

    def without(self, name: str) -> QuantChoice:
        return QuantChoice(self.floats - {name}, self.sixteen - {name})

    @property
    def kinds(self) -> dict[str, str]:
        return dict.fromkeys(sorted(self.floats), FLOAT) | dict.fromkeys(sorted(self.sixteen), SIXTEEN)


@dataclass(frozen=True)
class QuantLayer:
    """Names a layer that may be chosen, and its operator."""

    name: str
    op: str


class Maker(Protocol):
    """Makes quantised models of one float model and its samples, and compares them with it."""

    def layers(self) -> Sequence[QuantLayer]:
        """Lists the layers that may be chosen."""

    def compiled_names(self) -> Mapping[str, frozenset[str]]:
        """Tells the layers by the names that they have once compiled, float or quantised, where those are others."""

    def make(self, choice: QuantChoice) -> Path: ...

    def quality(self, made: Path) -> Quality: ...

    def compared(self, made: Path) -> tuple[LayerQuality, ...]: ...

    def sizes(self) -> tuple[int, int]:
        """Counts the bytes of the float model's file, and of its constants."""

    def weights(self, made: Path) -> int:
        """Counts the bytes of a model's constants."""


def chosen(maker: Maker, floats: Sequence[str], sixteen: Sequence[str]) -> QuantChoice:
    """Makes a choice of names or patterns of names, as shells have them."""
    return QuantChoice(_named(maker, floats, "--leave-out"), _named(maker, sixteen, "--sixteen"))


def _named(maker: Maker, patterns: Sequence[str], option: str) -> frozenset[str]:
    names = [layer.name for layer in maker.layers()]
    found: set[str] = set()
    for pattern in patterns:
        fitting = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        also = frozenset() if fitting else maker.compiled_names().get(pattern, frozenset())
        if len(also) > 1:
            several = " and ".join(sorted(also))
            raise InputError(f'{option}: "{pattern}" is {several}, in the float and in the quantised model; name one')
        fitting |= also
        if not fitting:
            near = difflib.get_close_matches(pattern, names, 3, 0.4) or names[:3]
            raise InputError(f'{option}: no layer is called "{pattern}"; near are {", ".join(near)}')
        found |= fitting
    return frozenset(found)


@dataclass(frozen=True)
class Goal:
    """States what a quantised model must reach, and as ``trade`` what the layers that lose most become.

    ``snr`` is in dB, for every output; ``loss`` of top-1 is in percentage points. None where nothing is asked.
    """

    snr: float | None = None
    loss: float | None = None
    trade: str = SIXTEEN

    def holds(self, quality: Quality) -> bool:
        if self.snr is not None and noise(quality) < self.snr:
            return False
        if self.loss is None or quality.top1 is None:
            return True
        return 100 * (quality.top1[0] - quality.top1[1]) <= self.loss + 1e-9

    def said(self, quality: Quality) -> str:
        parts = [] if self.snr is None else [f"signal to noise {noise(quality):.1f} dB"]
        if self.loss is not None and quality.top1 is not None:
            parts.append(f"top-1 {100 * quality.top1[1]:.1f} %")
        return ", ".join(parts)


def noise(quality: Quality) -> float:
    """Returns the signal to noise of the worst output, in dB."""
    return min((math.inf if each.snr is None else each.snr for each in quality.outputs.values()), default=math.inf)


@dataclass(frozen=True)
class Found:
    """Holds the result of a search."""

    choice: QuantChoice
    gains: Mapping[str, float]  # Gain of the worst output, in dB, by chosen layer, if that alone is chosen.


NEAR: Final = 1e-6  # A gain in dB that is nearer to 0 changes nothing.


def search(maker: Maker, start: QuantChoice, goal: Goal, step: Progress) -> Found:
    """Searches few layers to choose: none of those that the search added can go back without losing the goal. They are
    taken back from the least gain up. The one added last is not tried: the goal did not hold without it."""
    first = maker.quality(maker.make(start))
    if goal.holds(first):
        return Found(start, {})
    gains = _gains(maker, start, goal, noise(first), step)
    choice, names, best = start, list[str](), first
    for name in sorted(gains, key=lambda name: -gains[name]):
        choice, names = choice.plus(name, goal.trade), [*names, name]
        step(f"try {len(names)} of {len(gains)} layers in {goal.trade}")
        best = maker.quality(maker.make(choice))
        if goal.holds(best):
            break
    if not goal.holds(best):
        wider = "" if goal.trade == FLOAT else ", or --trade float"
        raise InputError(f"with every layer in {goal.trade} there is {goal.said(best)} still; ask for less{wider}")
    for name in reversed(names[:-1]):
        step(f"try without {name}")
        if goal.holds(maker.quality(maker.make(choice.without(name)))):
            choice = choice.without(name)
    return Found(choice, {name: gains[name] for name in names if name in choice.kinds})


def _gains(maker: Maker, start: QuantChoice, goal: Goal, first: float, step: Progress) -> dict[str, float]:
    """Measures the gain of each layer that is left; layers that change nothing are left out, unless none does."""
    left = [layer.name for layer in maker.layers() if layer.name not in start.kinds]
    gains: dict[str, float] = {}
    for number, name in enumerate(left):
        step(f"measure layer {number + 1} of {len(left)}: {name} in {goal.trade}")
        gains[name] = noise(maker.quality(maker.make(start.plus(name, goal.trade)))) - first
    return {name: gain for name, gain in gains.items() if abs(gain) > NEAR} or gains
