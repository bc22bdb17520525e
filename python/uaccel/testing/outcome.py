"""Defines what a check of a test is given, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Arrays by name, of one sample or of several along a first axis; one array where there is one tensor; or an .npz file.
Values: TypeAlias = "Mapping[str, Any] | NDArray[Any] | str | Path"


@dataclass(frozen=True)
class Check:
    """Holds what a test asks for, as :meth:`~uaccel.testing.BoardUnderTest.check` takes it."""

    model: Path
    inputs: Values | None = None
    expected: Values | None = None
    accelerators: tuple[str | Path, ...] = ()
    objective: str = "latency"
    sequence: bool = False
    samples: int = 8
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """Holds what a check returns: ``outputs`` of all samples, as ``uaccel run --outputs`` would write them.

    ``seconds`` of the fastest inference and ``instructions`` of the first are None where the board cannot measure them.
    """

    outputs: dict[str, NDArray[Any]]
    seconds: float | None
    instructions: int | None
    stack: int
    # How often accelerators' drivers called their devices in one inference, by layer, as they counted.
    calls: dict[str, int] = field(default_factory=dict)
