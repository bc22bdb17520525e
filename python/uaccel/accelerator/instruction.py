"""Instructions that a core has from an accelerator, as their designers describe them, and the C that uses them."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

HEADER: Final = "_instructions.h"
"""What the name of the header ends in that has a function for each instruction."""
FUNCT3_BITS: Final = 3
MOST_FUNCT7: Final = 128

Meaning = Callable[[Any, int, int, int], int]
"""The unit's state, which one of ``count``, left, right -> the result, of which the lowest 32 bits count."""


@dataclass(frozen=True)
class Instruction:
    """R-type on CUSTOM_0: two registers in, one out. ``funct7`` is the first of ``count`` numbers that it has: as many
    instructions, such as one for each register of the unit. ``meaning`` gets what the accelerator's ``unit`` makes,
    which of them it is, and both numbers, signed."""

    name: str
    funct3: int
    meaning: Meaning
    funct7: int = 0
    count: int = 1
    doc: str = ""

    def function(self, which: int) -> int:
        """As the unit is given it: funct7 above funct3."""
        return (self.funct7 + which) << FUNCT3_BITS | self.funct3

    def names(self, accelerator: str) -> list[str]:
        """Of the functions in C: numbered where there are several."""
        return [f"{accelerator}_{self.name}{which if self.count > 1 else ''}" for which in range(self.count)]


def complaint_about(instructions: Sequence[Any]) -> str | None:
    """What is wrong with them, in words."""
    taken: dict[int, str] = {}
    names: set[str] = set()
    for one in instructions:
        if not isinstance(one, Instruction):
            return f"instructions holds {one!r}; wanted Instruction(...)s"
        complaint = _complaint_about_one(one)
        if complaint is not None:
            return complaint
        if one.name in names:
            return f"two instructions are called '{one.name}'; names must differ"
        names.add(one.name)
        for which in range(one.count):
            other = taken.setdefault(one.function(which), one.name)
            if other != one.name:
                where = f"funct3 {one.funct3} with funct7 {one.funct7 + which}"
                return f"instructions '{other}' and '{one.name}' are both {where}; give them numbers of their own"
    return None


def _complaint_about_one(one: Any) -> str | None:
    if not isinstance(one.name, str) or not re.fullmatch(r"[a-z]([a-z0-9_]*[a-z])?", one.name):
        return f"an instruction is called {one.name!r}; wanted lower-case letters, digits inside, and '_' inside"
    if not callable(one.meaning):
        return f"meaning of instruction '{one.name}' is {one.meaning!r}; wanted a function of unit, which, left, right"
    limits = (("funct3", one.funct3, 0, 7), ("funct7", one.funct7, 0, 127), ("count", one.count, 1, 128))
    for what, number, low, high in limits:
        if not isinstance(number, int) or not low <= number <= high:
            return f"{what} of instruction '{one.name}' is {number!r}; wanted {low} to {high}"
    if one.funct7 + one.count > MOST_FUNCT7:
        return (
            f"instruction '{one.name}' has funct7 up to {one.funct7 + one.count - 1}; wanted {MOST_FUNCT7 - 1} at most"
        )
    return None


def header_text(accelerator: str, instructions: Sequence[Instruction]) -> str:
    """The C header: functions for drivers, numbers for the unit's model."""
    upper, lines = accelerator.upper(), []
    for one in instructions:
        lines += [f"/* {one.doc} */"] if one.doc else []
        lines += [
            f"UACCEL_INSTRUCTION({name}, {one.funct3}, {one.funct7 + which})"
            for which, name in enumerate(one.names(accelerator))
        ]
    numbers = ", ".join(f"{upper}_{one.name.upper()} = {one.funct3}" for one in instructions)
    guard = f"{upper}_INSTRUCTIONS_H"
    return (
        f"/* The instructions of {accelerator}, as its description states them; N is what a name ends in. */\n"
        f"#ifndef {guard}\n#define {guard}\n\n"
        '#include "uaccel_instruction.h"\n\n'
        f"/* funct3 of each. */\nenum {{ {numbers} }};\n\n" + "\n".join(lines) + "\n\n#endif\n"
    )


def header_file(accelerator: str, instructions: Sequence[Instruction]) -> Path:
    """The same as a file, which this process has."""
    file = _folder() / f"{accelerator}{HEADER}"
    file.write_text(header_text(accelerator, instructions), encoding="utf-8")
    return file


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="uaccel-instructions-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
