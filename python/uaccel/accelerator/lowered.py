"""How a region runs: C calls into the driver, with what they need in memory and in flash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from uaccel.ops.kernel import Argument, Constant, Definition, Input, KernelCall, Output, Scratch


@dataclass(frozen=True)
class Lowered:
    """What a region becomes.

    ``scratch``: bytes of memory that the calls share while they run. ``source``: C that goes into the model's source
    beside them. ``artefacts``: files by name for a reader (JSON, disassembly), which ``compile --dump`` writes.
    ``labels``: of the commands of a stream, in their order, for whoever looks at when they ran (``run --trace``).
    ``name``: among several ways to compute one region, of which ``uaccel tune`` measures each.
    ``cycles``: that the device will take, where the operations' ``cost`` tells less exactly (a stream's are no sum).
    ``instructions``: that the driver takes of the CPU for all the calls; a rule stands in where nobody says.
    ``moved``: bytes that the device carries between memory and chip, where they are known.
    """

    calls: tuple[KernelCall, ...]
    scratch: int = 0
    source: Definition | None = None
    artefacts: Mapping[str, str | bytes] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    name: str = ""
    cycles: float | None = None
    instructions: float | None = None
    moved: int | None = None


def library_call(function: str, *arguments: Argument | SupportsIndex | SupportsFloat) -> KernelCall:
    """``function(arguments...)``: tensors by address, numbers as they are; it returns 0 or an error code."""
    if not str(function).isidentifier():
        raise TypeError(f"library_call: {function!r} is no name of a C function")
    made = tuple(_argument(function, number, argument) for number, argument in enumerate(arguments, 1))
    return KernelCall(function, "", "", {}, made, checked=True)


def _argument(function: str, number: int, value: Any) -> Argument | int | float:
    """Numpy's numbers as Python's: C must not depend on how somebody computed them."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, Constant) and not isinstance(value.data, np.ndarray):
        raise TypeError(f"argument {number} of {function}: Constant({value.role!r}) holds no numpy array")
    if isinstance(value, (Input, Output, Constant, Scratch)):
        return value
    raise TypeError(
        f"argument {number} of {function} is {type(value).__name__}; wanted Input(i), Output(i), "
        "Constant(role, array), Scratch(offset) or a number"
    )
