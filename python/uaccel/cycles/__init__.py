"""Estimates the cycles of what an emulated board executed, by timings as they are published for its core."""

from uaccel.cycles.estimate import AddressRange, Core, Estimator, Spot, core_of, estimator_for, hot_spots
from uaccel.cycles.instructions import Block, Executed, Instruction, Mark, disassemble, read_marks

__all__ = [
    "AddressRange",
    "Block",
    "Core",
    "Estimator",
    "Executed",
    "Instruction",
    "Mark",
    "Spot",
    "core_of",
    "disassemble",
    "estimator_for",
    "hot_spots",
    "read_marks",
]
