"""npu: a 16x16 int8 array with scratchpads, DMA and three engines; uaccel plans its command streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uaccel.accelerator import Accelerator
from uaccel.streams import LATENCY

from .describe import describe_machine
from .machine import read_machine

HERE = Path(__file__).parent


def describe(folder: Path, objective: str = LATENCY) -> Accelerator:
    """The accelerator of a folder: this one, or one whose header has other numbers and which has nothing else."""
    described = describe_machine(read_machine(folder), objective)
    base = Path() if folder == HERE else HERE
    return replace(described, folder=folder, base=base, objective=lambda other: describe(folder, other))


ACCELERATOR = describe(HERE)
