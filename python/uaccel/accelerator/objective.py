"""What accelerators that plan their work shall save: time, or bytes moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from uaccel.accelerator.description import OBJECTIVES, Accelerator
from uaccel.accelerator.validate import validate
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError


def planning_for(objective: str, accelerators: Sequence[Accelerator]) -> list[Accelerator]:
    """Those that can plan for something else than time do; that none of them can is an error."""
    if objective not in OBJECTIVES:
        raise AcceleratorError(f"objective '{objective}' is unknown; wanted {' or '.join(OBJECTIVES)}")
    if objective == OBJECTIVES[0] or not accelerators:
        return list(accelerators)
    if all(accelerator.objective is None for accelerator in accelerators):
        names = ", ".join(accelerator.name for accelerator in accelerators)
        raise AcceleratorError(
            f"objective {objective}: {names} cannot plan for it; 'uaccel accelerators --json' tells which can"
        )
    return [_planning_for(objective, accelerator) for accelerator in accelerators]


def _planning_for(objective: str, accelerator: Accelerator) -> Accelerator:
    if accelerator.objective is None:
        return accelerator
    what = f"objective('{objective}')"
    with vendors(accelerator.folder, what):
        other = accelerator.objective(objective)
    if not isinstance(other, Accelerator):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} returned {type(other).__name__}; wanted the Accelerator that plans for it"
        )
    if other.folder == Path():
        other = replace(other, folder=accelerator.folder)
    if (other.name, other.folder) != (accelerator.name, accelerator.folder):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} returned '{other.name}' of {other.folder}; "
            f"wanted '{accelerator.name}' of the same folder"
        )
    validate(other, accelerator.folder)
    return other
