"""npu: a 16x16 int8 array with scratchpads, DMA and three engines; uaccel plans its command streams."""

from __future__ import annotations

from pathlib import Path

from uaccel.accelerator import Accelerator
from uaccel.streams import LATENCY

from .describe import describe_machine
from .machine import read_machine


def describe(folder: Path, objective: str = LATENCY) -> Accelerator:
    """The accelerator of a folder: this one, or one whose header has other numbers."""
    return describe_machine(read_machine(folder), folder, objective)


ACCELERATOR = describe(Path(__file__).parent)
