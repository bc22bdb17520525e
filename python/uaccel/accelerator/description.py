"""Describes an accelerator as its designers state it: operations with their patterns, instructions, and files.

Objects of :class:`Accelerator` are checked by :mod:`uaccel.accelerator.vendor`.
"""

from __future__ import annotations

import atexit
import importlib
import pkgutil
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import uaccel.ops
from uaccel.accelerator.region import Lowered, Region
from uaccel.accelerator.sums import Expansion
from uaccel.board.accelerator_devices import CXX, HEADERS, DeviceBuild
from uaccel.ops.exact import TFLITE
from uaccel.ops.kernel import KernelCall
from uaccel.ops.operator import NAMESPACE, REGISTRY
from uaccel.tvm_api import (
    CallPattern,
    DFPattern,
    OrPattern,
    operator_names,
    operator_pattern,
    pattern_operator,
    wildcard,
)
from uaccel.util import incoming
from uaccel.util.text import did_you_mean

# Instructions that an accelerator adds to a core, as their designers describe them, and the C header to use them.

HEADER: Final = "_instructions.h"  # How the name of the header ends that has a function for each instruction.
FUNCT3_BITS: Final = 3
MOST_FUNCT7: Final = 128

# From the unit's state, the number among ``count``, left and right to the result, whose lowest 32 bits count.
Meaning = Callable[[Any, int, int, int], int]


@dataclass(frozen=True)
class Instruction:
    """Describes an instruction, R-type on CUSTOM_0: two registers in, one out.

    It has ``count`` numbers from ``funct7`` on: as many instructions, such as one for each register of the unit.
    ``meaning`` gets what the accelerator's ``unit`` makes, which of them it is, and both numbers, signed.
    """

    name: str
    funct3: int
    meaning: Meaning
    funct7: int = 0
    count: int = 1
    doc: str = ""

    def function(self, which: int) -> int:
        """The number that the unit is given: funct7 above funct3."""
        return (self.funct7 + which) << FUNCT3_BITS | self.funct3

    def names(self, accelerator: str) -> list[str]:
        """The names of the functions in C, numbered where there are several."""
        return [f"{accelerator}_{self.name}{which if self.count > 1 else ''}" for which in range(self.count)]


def complaint_about(instructions: Sequence[Any]) -> str | None:
    """Says what is wrong with instructions; None where nothing is."""
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
    """Writes the C header: functions for drivers, numbers for the unit's model."""
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
    """Writes the C header to a file that lasts as long as this process."""
    file = _folder() / f"{accelerator}{HEADER}"
    file.write_text(header_text(accelerator, instructions), encoding="utf-8")
    return file


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="uaccel-instructions-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# What an operation matches: a pattern of TVM's, or the name of an operator, which stands for any call of it.
#
# ``pattern("uaccel.conv2d")`` matches a call; ``pattern("uaccel.add", pattern("uaccel.conv2d"), ANY)`` one whose first
# operand is a convolution (with ``| pattern("uaccel.add", ANY, "uaccel.conv2d")`` either operand; only ``relax.add``
# and ``relax.multiply`` match either way round by themselves). Names without a dot are uaccel's integer operators.
# TVM's own combinators (``is_op``, ``wildcard``, ``|``, ``has_dtype``) work as well.

for _module in pkgutil.iter_modules(uaccel.ops.__path__):
    importlib.import_module(f"uaccel.ops.{_module.name}")  # each registers its operators

ANY: Final = wildcard()  # Any operand.


def pattern(operator: str, *operands: Any) -> Any:
    """Matches a call of ``operator``; ``operands``, if given, are patterns of its first operands."""
    name = full_name(operator)
    try:
        anything = operator_pattern(name)
    except KeyError:
        known = (entry for entry in operator_names() if entry.startswith((NAMESPACE, "relax.")))
        raise ValueError(f"there is no operator '{operator}'{did_you_mean(name, known)}") from None
    if not operands:
        return anything
    for number, operand in enumerate(operands, 1):
        if not isinstance(operand, (str, DFPattern)):
            raise TypeError(f"operand {number} of {name} is {operand!r}, wanted a pattern or an operator's name")
    stated = [pattern(operand) if isinstance(operand, str) else operand for operand in operands]
    rest = [wildcard() for _ in range(max(0, arity(anything) - len(stated)))]
    return CallPattern(anything.op, [*stated, *rest], False)


def full_name(operator: str) -> str:
    """``conv2d`` -> ``uaccel.conv2d``; a name with a dot stays as it is."""
    return operator if "." in operator else NAMESPACE + operator


def arity(call: Any) -> int:
    """How many operands the operator of a call pattern takes."""
    operator = pattern_operator(call)
    known = REGISTRY.get(operator.name)
    return len(known.arguments) if known is not None else int(operator.num_inputs)


def why_never(candidate: Any) -> str | None:
    """Says why a pattern cannot match any call; None where it can."""
    if not isinstance(candidate, DFPattern):
        return f"it is {type(candidate).__name__}, wanted a pattern or an operator's name"
    if isinstance(candidate, OrPattern):
        reasons = [why_never(candidate.left), why_never(candidate.right)]
        return None if None in reasons else reasons[0]
    if not isinstance(candidate, CallPattern):
        return "its outermost part is no operator call, so that nothing says which operator is meant"
    return _call_never(candidate)


def _call_never(call: Any) -> str | None:
    operator = pattern_operator(call)
    if operator is None:
        return "what it calls is no operator of a fixed name"
    wanted = arity(call)
    if call.args and wanted >= 0 and len(call.args) != wanted:
        return f"{operator.name} takes {wanted} operands and the pattern has {len(call.args)}"
    reasons = (why_never(argument) for argument in call.args if isinstance(argument, CallPattern | OrPattern))
    return next((reason for reason in reasons if reason is not None), None)


def operators_of(candidate: Any) -> list[str]:
    """The operators that a pattern's outermost call may be."""
    if isinstance(candidate, OrPattern):
        return operators_of(candidate.left) + operators_of(candidate.right)
    operator = pattern_operator(candidate)
    return [operator.name] if operator is not None else []


# An accelerator as its designers describe it: what it computes, under which conditions, at what cost, and how.

# Device hooks that a driver may define, by microTVM's names: ``TVMDevice<Name>Activate`` and so on.
HOOKS: Final = ("Activate", "Open", "Close", "Deactivate")
C_SUFFIX: Final = ".c"
SUFFIXES: Final = (C_SUFFIX, *CXX, *HEADERS)
# RTL of a unit in the core, for simulators of the core.
RTL_SUFFIXES: Final = (".v", ".sv", ".vh", ".svh", ".py", ".toml")
OBJECTIVES: Final = ("latency", "energy")  # An accelerator may be asked to save time, or bytes moved.

Lower = Callable[..., "Lowered | KernelCall | Sequence[KernelCall]"]
Check = Callable[[Region], "str | None"]
Cost = Callable[[Region], float]
Golden = Callable[[Region, Sequence[Any]], Any]
Expand = Callable[[Expansion, Region, list[Any]], Any]
ModulePass = Callable[[Any], Any]


def accept(_region: Region) -> str | None:
    """The check of an operation that can do whatever its pattern matches."""
    return None


@dataclass(frozen=True)
class Operation:
    """Describes one operation that the accelerator computes.

    ``check`` says in words why it cannot compute a certain match, None where it can. ``cost`` is in cycles of the
    device. ``expand`` replaces a match by what the accelerator computes of it and what the CPU does before and after
    (see :mod:`uaccel.accelerator.sums`). ``lower`` turns the accelerator's part into calls of its driver; an operation
    without it is part of regions that the accelerator's ``stream`` takes whole. ``roundings``: those of
    :mod:`uaccel.ops.exact` that its output stage has; matches with another one are refused without ``check``.

    For hardware with an arithmetic of its own: ``tolerance`` is the difference that an output may have, in steps of its
    type (None: the accelerator's), given the inputs that the layer really got. ``golden`` computes what the hardware
    computes: from the region and numpy arrays for its inputs the array of the result, which it must match to the bit.
    """

    name: str
    pattern: Any
    lower: Lower | None = None
    check: Check = accept
    cost: Cost | None = None
    expand: Expand | None = None
    doc: str = ""
    roundings: Sequence[str] = (TFLITE,)
    tolerance: float | None = None
    golden: Golden | None = None

    def __post_init__(self) -> None:
        if isinstance(self.pattern, str):
            object.__setattr__(self, "pattern", pattern(self.pattern))
        reason = why_never(self.pattern)
        if reason is not None:
            raise ValueError(f"operation '{self.name}' never matches: {reason}")

    @property
    def operators(self) -> list[str]:
        """The operators that its pattern's result may come from."""
        return operators_of(self.pattern)


@dataclass(frozen=True)
class Accelerator:
    """Describes an accelerator. ``name`` is a C identifier; device hooks are named by it (``TVMDeviceNucFpga...``).

    ``headers`` are the driver's, which generated code includes; its sources are C or C++. ``tolerance``: how far
    outputs may be from the exact meaning, in steps of the tensor's type (for float relative, in the last digits);
    0 claims exactness. ``alignment``: every address that the device is given is a multiple of so many bytes.
    ``memories``: on-chip memories, in bytes.

    Passes of the designers' own: ``before_partition`` over the whole module, ``on_region`` over each claimed region,
    seen as a module with ``main``, ``after_lowering`` over the program of layers. Inputs and outputs must stay.

    ``macs_per_cycle`` and ``bytes_per_cycle`` are the most that it multiplies and that it moves to and from memory in a
    cycle: a report's roofline shows them.

    ``parameters``: what tuning may vary in its planner, as values by name, the usual one first. ``stream`` and every
    ``lower`` are given one value of each by its name, and return one way to compute the region. Only time and memory
    may depend on it.

    ``base``: the folder of another accelerator whose C files this one shares, except those that its own folder has
    under the same name. ``device_build``: what building the device's model takes. ``objective`` gives the accelerator
    that plans for another one of ``OBJECTIVES``.

    ``page``: where one reads about it, a URL or a file's path from its folder. ``keeps_channels``: layers keep channels
    that nobody needs, as the file has them, to measure what others compute.

    ``instructions``: those that it adds to a RISC-V core, with which its driver computes; it has no registers then.
    ``unit`` makes the state that they share, for their meanings. The folder's ``unit/`` is their model in C.
    """

    name: str
    description: str
    operations: Sequence[Operation]
    headers: Sequence[str]
    stream: Lower | None = None
    tolerance: float = 0
    alignment: int = 4
    memories: dict[str, int] = field(default_factory=dict)
    before_partition: Sequence[ModulePass] = ()
    on_region: Sequence[ModulePass] = ()
    after_lowering: Sequence[Callable[[Any], Any]] = ()
    folder: Path = Path()
    base: Path = Path()
    objective: Callable[[str], Accelerator] | None = None
    macs_per_cycle: float | None = None
    bytes_per_cycle: float | None = None
    parameters: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    device_build: DeviceBuild = field(default_factory=DeviceBuild)
    instructions: Sequence[Instruction] = ()
    unit: Callable[[], Any] = object
    page: str = ""
    keeps_channels: bool = False

    @property
    def camel_case(self) -> str:
        """nuc_fpga -> NucFpga."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def files(self) -> dict[str, Path]:
        """The C files of driver and device, and the device's C++, by their place in the folder. With instructions there
        are the unit's model, its RTL and the header that uaccel writes, too."""
        folders = [self.folder] if self.base == Path() else [self.base, self.folder]
        found = {path.relative_to(folder).as_posix(): path for folder in folders for path in _files(folder)}
        if self.instructions:
            found |= {path.relative_to(self.folder).as_posix(): path for path in _unit_files(self.folder)}
            found[f"driver/{self.name}{HEADER}"] = header_file(self.name, self.instructions)
        return dict(sorted(found.items()))

    @property
    def drivers(self) -> list[Path]:
        return [path for name, path in self.files.items() if name.startswith("driver/")]

    @property
    def devices(self) -> list[Path]:
        return [path for name, path in self.files.items() if name.startswith("device/")]

    @property
    def units(self) -> list[Path]:
        """The files of the model of its instructions."""
        return [path for name, path in self.files.items() if name.startswith("unit/")]

    @property
    def hooks(self) -> tuple[str, ...]:
        """The device hooks that its driver has; all of them without a driver, or if it makes names by ``##``."""
        texts = [incoming.read_text(path, errors="replace") for path in self.drivers]
        there = {name for text in texts for name in re.findall(r"TVMDevice(\w*)", text)}
        if not texts or "" in there or any(f"TVMDevice{self.camel_case}##" in text for text in texts):
            return HOOKS
        return tuple(hook for hook in HOOKS if f"{self.camel_case}{hook}" in there)

    @property
    def has_device(self) -> bool:
        """Whether there is a device: a driver that computes by itself has none, and needs no model of one."""
        return not self.drivers or any(path.suffix in (C_SUFFIX, *CXX) for path in self.devices)

    def lower(self, operation: Operation | None, region: Region) -> Lowered:
        """The lowering of a region, the first one where there are several."""
        return self.lowerings(operation, region)[0]

    @property
    def variants(self) -> tuple[Mapping[str, int | str], ...]:
        """One value for each of its parameters, in all combinations: the usual one first."""
        return tuple(dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values()))

    def lowerings(self, operation: Operation | None, region: Region, variant: int = 0) -> tuple[Lowered, ...]:
        """Every lowering that the vendor offers; ``operation`` is None for a region that the stream takes."""
        maker = self.stream if operation is None or operation.lower is None else operation.lower
        assert maker is not None  # validate() holds it
        made = maker(region, **self.variants[variant])
        if isinstance(made, Lowered):
            return (made,)
        entries: tuple[Any, ...] = (made,) if isinstance(made, KernelCall) else tuple(made)
        if entries and all(isinstance(entry, Lowered) for entry in entries):
            return entries
        return (Lowered(entries),)


def _unit_files(folder: Path) -> list[Path]:
    parts = (("unit", (C_SUFFIX, *HEADERS)), ("rtl", RTL_SUFFIXES))
    found = ((path, suffixes) for part, suffixes in parts for path in (folder / part).rglob("*"))
    return [path for path, suffixes in found if path.suffix in suffixes and path.is_file()]


def _files(folder: Path) -> list[Path]:
    found = (path for part in ("driver", "device") for path in (folder / part).rglob("*"))
    return [path for path in found if path.suffix in SUFFIXES and path.is_file()]
