"""Estimated cycles of what an emulated board executed, by timings as they are published for its core."""

from uaccel.cycles.blocks import Block, Executed, Mark, read_marks
from uaccel.cycles.code import Instruction, disassemble
from uaccel.cycles.cores import Core, core_of
from uaccel.cycles.estimate import Estimator, Region, estimator_for
from uaccel.cycles.hot import Spot, hot_spots

__all__ = [
    "Block",
    "Core",
    "Estimator",
    "Executed",
    "Instruction",
    "Mark",
    "Region",
    "Spot",
    "core_of",
    "disassemble",
    "estimator_for",
    "hot_spots",
    "read_marks",
]
