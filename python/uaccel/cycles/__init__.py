"""Estimates the cycles of what an emulated board executed, by timings as they are published for its core."""

from uaccel.cycles.estimate import Core, CycleEstimator, SlowMemory, Spot, core_of, estimator_for, hot_spots
from uaccel.cycles.instructions import Executed, ExecutedBlock, ExecutedInstruction, Mark, disassemble, read_marks

__all__ = [
    "Core",
    "CycleEstimator",
    "Executed",
    "ExecutedBlock",
    "ExecutedInstruction",
    "Mark",
    "SlowMemory",
    "Spot",
    "core_of",
    "disassemble",
    "estimator_for",
    "hot_spots",
    "read_marks",
]
