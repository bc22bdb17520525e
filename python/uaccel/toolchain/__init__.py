"""Programs and packages outside uaccel: finding them, their versions, and how to get what is missing."""

from uaccel.toolchain.abilities import Ability, abilities
from uaccel.toolchain.check import Check, Status
from uaccel.toolchain.doctor import examine
from uaccel.toolchain.programs import PROGRAMS, FoundProgram, Program, find_command, find_program, missing_programs

__all__ = [
    "PROGRAMS",
    "Ability",
    "Check",
    "FoundProgram",
    "Program",
    "Status",
    "abilities",
    "examine",
    "find_command",
    "find_program",
    "missing_programs",
]
