"""An accelerator as its designers describe it: what it computes, under which conditions, at what cost, and how."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

from uaccel.accelerator.expansion import Expansion
from uaccel.accelerator.instruction import HEADER, Instruction, header_file
from uaccel.accelerator.lowered import Lowered
from uaccel.accelerator.patterns import operators_of, pattern, why_never
from uaccel.accelerator.region import Region
from uaccel.basics.device_build import CXX, HEADERS, DeviceBuild
from uaccel.ops.kernel import KernelCall
from uaccel.ops.rounding import TFLITE

HOOKS: Final = ("Activate", "Open", "Close", "Deactivate")
"""What a driver may want to be told of, in microTVM's words: ``TVMDevice<Name>Activate`` and so on."""
C_SUFFIX: Final = ".c"
SUFFIXES: Final = (C_SUFFIX, *CXX, *HEADERS)
RTL_SUFFIXES: Final = (".v", ".sv", ".vh", ".svh", ".py", ".toml")
"""Of a unit in the core: whoever simulates the core takes them."""
OBJECTIVES: Final = ("latency", "energy")
"""What an accelerator may be asked to save: time, or bytes moved."""

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
    """One thing that the accelerator computes.

    ``check`` says in words why it cannot compute a certain match, None where it can. ``cost`` is in cycles of the
    device. ``expand`` replaces a match by what the accelerator computes of it and what the CPU does before and after
    (see :mod:`uaccel.accelerator.expansion`). ``lower`` turns what is the accelerator's into calls of its driver; an
    operation without it is part of regions that the accelerator's ``stream`` takes whole. ``roundings``: those of
    :mod:`uaccel.ops.rounding` that its output stage has; matches with another one are not even put to ``check``.

    For hardware with an arithmetic of its own: ``tolerance`` is what an output may differ by, in steps of its type
    (None: the accelerator's), judged on the inputs that the layer really got. ``golden`` says what it does compute: a
    function of the region and numpy arrays for its inputs, which gives the array of the result; then it is held to
    that, to the bit.
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
    """All of it. ``name`` is a C identifier; the driver's device hooks are called after it (``TVMDeviceNucFpga...``).

    ``headers`` are the driver's, which generated code includes; its sources are C or C++. ``tolerance``: how far
    outputs may be from the exact meaning, as a number of steps of the tensor's type (of the last digits: relative, for
    float); 0 claims exactness.
    ``alignment``: of every address that the device is given, in bytes. ``memories``: on-chip memories, in bytes.

    Passes of the designers' own: ``before_partition`` over the whole module, ``on_region`` over each claimed region,
    seen as a module with ``main``, ``after_lowering`` over the program of layers. Inputs and outputs stay as they are.

    ``macs_per_cycle`` and ``bytes_per_cycle`` are the most that it multiplies and that it moves to and from memory in a
    cycle: what a report's roofline is drawn of.

    ``parameters``: what tuning may vary in its planner, as values by name, the usual one first. ``stream`` and every
    ``lower`` are given one value of each by its name, and return one way to compute the region. Nothing but time and
    memory may depend on it.

    ``base`` is the folder of another accelerator whose C files are this one's as well, but for those that its own
    folder has under the same name. ``device_build``: what the device's model takes to be built. ``objective``
    gives the accelerator that plans for another one of ``OBJECTIVES``.

    ``instructions`` are what a RISC-V core has from it, with which its driver computes; it has no registers then.
    ``unit`` makes what they keep from one to the next, for their meanings. The folder's ``unit/`` is their model in C.
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

    @property
    def camel_case(self) -> str:
        """nuc_fpga -> NucFpga."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def files(self) -> dict[str, Path]:
        """The C files of driver and device, and the device's C++, by their place in the folder. With instructions the
        unit's model and its RTL, too, and the header that uaccel writes."""
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
        """The model of what its instructions mean."""
        return [path for name, path in self.files.items() if name.startswith("unit/")]

    @property
    def hooks(self) -> tuple[str, ...]:
        """Those that its driver has. All of them where there is no driver to look at, or where it pastes names."""
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in self.drivers]
        there = {name for text in texts for name in re.findall(r"TVMDevice(\w*)", text)}
        if not texts or "" in there or any(f"TVMDevice{self.camel_case}##" in text for text in texts):
            return HOOKS
        return tuple(hook for hook in HOOKS if f"{self.camel_case}{hook}" in there)

    @property
    def has_device(self) -> bool:
        """A driver that computes by itself has none, and so needs no model of one."""
        return not self.drivers or any(path.suffix in (C_SUFFIX, *CXX) for path in self.devices)

    def lower(self, operation: Operation | None, region: Region) -> Lowered:
        """What a region becomes, the first way where there are several."""
        return self.lowerings(operation, region)[0]

    @property
    def variants(self) -> tuple[Mapping[str, int | str], ...]:
        """One value for each of its parameters, in all combinations: the usual one first."""
        return tuple(dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values()))

    def lowerings(self, operation: Operation | None, region: Region, variant: int = 0) -> tuple[Lowered, ...]:
        """Every way that the vendor offers; ``operation`` is None for a region that the stream takes."""
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
