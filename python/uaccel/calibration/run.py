"""A quantised model of a float one: made as wished or as a search finds, compared, and written if all goes well."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from uaccel.basics.files import write_atomically
from uaccel.calibration.choice import Choice, Goal, Maker, Progress, chosen, search
from uaccel.calibration.layers import LayerQuality
from uaccel.calibration.quality import Quality


@dataclass(frozen=True)
class Wishes:
    """Layers by name or pattern; ``goal``: what a search must reach by more of them."""

    floats: tuple[str, ...] = ()
    sixteen: tuple[str, ...] = ()
    goal: Goal | None = None


@dataclass(frozen=True)
class Quantised:
    """Bytes of the file and of its constants, before and after; ``gains``: of layers that the search chose, in dB."""

    size: tuple[int, int]
    weights: tuple[int, int]
    quality: Quality
    layers: tuple[LayerQuality, ...]
    digest: str
    """SHA-256 of the file."""
    choice: Choice
    gains: Mapping[str, float]


def quantise(maker: Maker, wishes: Wishes, output: Path, step: Progress) -> Quantised:
    """Write the quantised model, if all goes well."""
    choice, gains = chosen(maker.layers(), wishes.floats, wishes.sixteen), {}
    if wishes.goal is not None:
        found = search(maker, choice, wishes.goal, step)
        choice, gains = found.choice, dict(found.gains)
    step("quantise")
    made = maker.make(choice)
    step("compare with the float model")
    quality, layers = maker.quality(made), maker.compared(made)
    data = made.read_bytes()
    step(f"write {output}")
    write_atomically(output, partial(_write, data), "-o")
    (size, weights), after = maker.sizes(), maker.weights(made)
    return Quantised(
        (size, len(data)), (weights, after), quality, layers, hashlib.sha256(data).hexdigest(), choice, gains
    )


def _write(data: bytes, stream: IO[bytes]) -> None:
    stream.write(data)
