"""Checks custom instructions: random programs of them through their meaning, their model in C and their RTL.

Instructions may keep a state, so that a program is a sequence of steps after a reset. A wrong one is made shorter.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.accelerator import Accelerator, Instruction
from uaccel.accelerator.vendor import vendors
from uaccel.build.children import environment
from uaccel.build.rtl.build import Variant, device_library
from uaccel.build.rtl.description import has_rtl
from uaccel.errors import DeviceError
from uaccel.runner.request import MODEL, RTL, WAVES
from uaccel.session.device_models import PluginSource, build_library
from uaccel.util import incoming
from uaccel.util.files import data_dir
from uaccel.util.text import named

STEPS: Final = 64  # Instructions of a program.
WORD: Final = 1 << 32

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """Is one instruction of a program: which of its variants, and its two operands."""

    instruction: Instruction
    which: int
    left: int
    right: int

    def __str__(self) -> str:
        number = self.which if self.instruction.count > 1 else ""
        return f"{self.instruction.name}{number}({self.left}, {self.right})"


@dataclass(frozen=True)
class InstructionProgram:
    """Holds the steps after a reset. ``stalls``, unless 0, seeds cycles in which no step comes, or no answer goes."""

    steps: tuple[Step, ...]
    stalls: int = 0

    def without(self, number: int) -> InstructionProgram:
        return replace(self, steps=self.steps[:number] + self.steps[number + 1 :])


@dataclass(frozen=True)
class WrongInstruction:
    """Describes a wrong answer: that of step ``number`` of ``program``."""

    program: InstructionProgram
    number: int
    device: str
    got: int
    wanted: int
    waves: Path | None = None

    def __str__(self) -> str:
        steps = [str(step) for step in self.program.steps]
        where = f"after {'; '.join(steps[: self.number]) or 'a reset'}"
        where += f" and before {'; '.join(steps[self.number + 1 :])}" if steps[self.number + 1 :] else ""
        where += " with back pressure" if self.program.stalls else ""
        waves = f"; its waveform is in {self.waves}" if self.waves is not None else ""
        wrong = f"it gives {self.got}, wanted {self.wanted}"
        return f"instruction {steps[self.number]} {where} on the {self.device}: {wrong}{waves}"

    def to_json(self) -> dict[str, Any]:
        return {
            "instruction": self.program.steps[self.number].instruction.name,
            "program": [str(step) for step in self.program.steps],
            "step": self.number,
            "back_pressure": self.program.stalls != 0,
            **named(self, "device", "got", "wanted"),
            "waves": None if self.waves is None else str(self.waves),
        }


@dataclass(frozen=True)
class Asked:
    """Says what is checked: how many random ``programs``; ``waves``: where the waveform of a wrong one goes."""

    accelerator: Accelerator
    devices: Sequence[str]
    programs: int
    seed: int
    waves: Path | None = None


def check_instructions(asked: Asked, progress: Progress) -> WrongInstruction | None:
    """Returns the first wrong instruction, in a shortened program; None if all are right.

    Every other program has back pressure."""
    random = np.random.default_rng(asked.seed)
    programs = [drawn(asked.accelerator.instructions, random, number % 2 == 1) for number in range(asked.programs)]
    for device in asked.devices:
        progress(f"run {len(programs) * STEPS} instructions on the {device}")
        with tempfile.TemporaryDirectory(prefix="uaccel-check-") as folder:
            unit = _Unit(asked, device, Path(folder), progress)
            for program in programs:
                if _first_wrong(asked.accelerator, unit, program) is not None:
                    return _told(asked, unit, program, progress)
    return None


def drawn(instructions: Sequence[Instruction], random: np.random.Generator, stalls: bool) -> InstructionProgram:
    steps = []
    for _ in range(STEPS):
        one = instructions[int(random.integers(len(instructions)))]
        steps.append(Step(one, int(random.integers(one.count)), _number(random), _number(random)))
    return InstructionProgram(tuple(steps), int(random.integers(1, WORD)) if stalls else 0)


def _number(random: np.random.Generator) -> int:
    """Draws an operand: of any magnitude, a power of two and its neighbours, four extreme bytes, or any number."""
    kind, sign = random.integers(4), 1 - 2 * int(random.integers(2))
    if kind == 0:
        return sign * int(2.0 ** random.uniform(0, 31))
    if kind == 1:
        return sign * ((1 << int(random.integers(31))) + int(random.integers(-1, 2)))
    if kind == 2:
        return int.from_bytes(bytes(random.choice([0, 1, 127, 128, 255], 4).tolist()), "little", signed=True)
    return int(random.integers(-(1 << 31), 1 << 31))


def meant(accelerator: Accelerator, program: Sequence[Step]) -> Iterator[int]:
    """Yields what each step should give, by the accelerator's description."""
    with vendors(accelerator.folder, "unit"):
        state = accelerator.unit()
    for step in program:
        with vendors(accelerator.folder, f"meaning of instruction '{step.instruction.name}'"):
            result = int(step.instruction.meaning(state, step.which, step.left, step.right))
        yield (result + WORD // 2) % WORD - WORD // 2


class _Unit:
    """Runs programs on a model or on RTL, each from a reset.

    A model in C has its state in static variables. So each program gets a copy of the library under a new name, as the
    loader would give the same file's variables again. RTL has a reset, and is loaded once."""

    def __init__(
        self, asked: Asked, device: str, folder: Path, progress: Progress, variant: Variant | None = None
    ) -> None:
        accelerator = asked.accelerator
        self.device, self._asked, self._folder, self._copies = device, asked, folder, 0
        self._path = _model(accelerator)
        self._rtl: Any = None
        if device == RTL:
            self._path = device_library(accelerator.name, accelerator.folder, variant or Variant(), progress)
            self._rtl = self._loaded()

    def run(self, program: InstructionProgram) -> list[int]:
        calls = [(step.instruction.function(step.which), step.left, step.right) for step in program.steps]
        if self._rtl is None:
            model = self._loaded()
            return [int(model.uaccel_unit(*call)) for call in calls]
        if self._rtl.uaccel_unit_reset(ctypes.c_uint32(program.stalls)) != 0:
            raise DeviceError(f"the RTL of {self._asked.accelerator.name} cannot be opened; stderr says why")
        answers = []
        for number, call in enumerate(calls):
            self._rtl.uaccel_unit_take(*call)
            if number > 0:  # as in the core, one is under way while the next one is taken
                answers.append(int(self._rtl.uaccel_unit_answer()))
        return [*answers, int(self._rtl.uaccel_unit_answer())]

    def close(self) -> None:
        self._rtl.uaccel_unit_close()

    def _loaded(self) -> Any:
        self._copies += 1
        copy = self._folder / f"{self.device}{self._copies}.so"
        incoming.copy(self._path, copy)
        library = ctypes.CDLL(str(copy))
        taking = library.uaccel_unit if self.device == MODEL else library.uaccel_unit_take
        taking.argtypes = [ctypes.c_uint32, ctypes.c_int32, ctypes.c_int32]
        return library


def _model(accelerator: Accelerator) -> Path:
    """Builds the unit's model in C as a library."""
    files = accelerator.files
    headers = {path.parent for name, path in files.items() if name.startswith(("driver/", "unit/"))}
    source = PluginSource(
        f"unit-{accelerator.name}",
        f"the instructions of {accelerator.name}",
        [path for path in accelerator.units if path.suffix == ".c"],
        [data_dir("firmware") / "include", *headers],
    )
    return build_library(source, source.name)


def _first_wrong(accelerator: Accelerator, unit: _Unit, program: InstructionProgram) -> tuple[int, int, int] | None:
    """Returns number, answer and right answer of the first wrong step; None if all are right."""
    pairs = zip(unit.run(program), meant(accelerator, program.steps), strict=True)
    return next(((number, got, wanted) for number, (got, wanted) in enumerate(pairs) if got != wanted), None)


def _told(asked: Asked, unit: _Unit, program: InstructionProgram, progress: Progress) -> WrongInstruction:
    program = _shrunk(asked.accelerator, unit, program)
    wrong = _first_wrong(asked.accelerator, unit, program)
    assert wrong is not None  # the same program gives the same answers
    number, got, wanted = wrong
    waves = asked.waves if unit.device == RTL else None
    if waves is not None:
        waves.unlink(missing_ok=True)
        with (
            environment({WAVES: f"{asked.accelerator.name}={waves.absolute()}"}),
            tempfile.TemporaryDirectory(prefix="uaccel-check-") as folder,
        ):
            traced = _Unit(asked, unit.device, Path(folder), progress, Variant(waves.suffix[1:]))
            traced.run(program)
            traced.close()
    return WrongInstruction(program, number, unit.device, got, wanted, waves)


def _shrunk(accelerator: Accelerator, unit: _Unit, program: InstructionProgram) -> InstructionProgram:
    """Leaves away back pressure, and each step without which the program is still wrong.

    The steps are tried from the last to the first, as those after the wrong one hardly ever matter."""
    shorter = replace(program, stalls=0)
    if _first_wrong(accelerator, unit, shorter) is not None:
        program = shorter
    for number in reversed(range(len(program.steps))):
        shorter = program.without(number)
        if shorter.steps and _first_wrong(accelerator, unit, shorter) is not None:
            program = shorter
    return program


def devices_of(accelerator: Accelerator, device: str) -> list[str]:
    """Returns the devices whose instructions are compared with their meaning."""
    return [MODEL, RTL] if device == RTL and has_rtl(accelerator.folder) else [MODEL]
