"""How an operator's work is said in C: calls to kernels of ``firmware/kernels`` with constant parameters.

A lowered layer is a short list of calls. Every parameter is known at compile time and becomes a ``static const``
structure beside the call, so that the inlined kernel folds and unrolls for this one layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from uaccel.model import Array

KERNEL_ABI = 4
"""Raised when a kernel's C interface changes, or the order in which it reads and writes; also in uaccel_kernel.h."""

ParameterValue = int | float | tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """The address of the layer's input number ``index``, ``offset`` bytes in."""

    KIND: ClassVar = "input"  # as generated C and the dumps of stages say it
    index: int
    offset: int = 0


@dataclass(frozen=True)
class Output:
    """The address of the layer's output number ``index``, ``offset`` bytes in."""

    KIND: ClassVar = "output"
    index: int = 0
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Constant:
    """An array that lies in flash, laid out for the kernel that reads it."""

    role: str
    data: Array


@dataclass(frozen=True)
class Scratch:
    """The address of the layer's scratch memory, ``offset`` bytes in."""

    KIND: ClassVar = "scratch"
    offset: int = 0


Argument = Input | Output | Constant | Scratch

UNUSED = Output(0)
"""Stands where a kernel takes scratch memory that it does not need for one layer."""


@dataclass(frozen=True)
class KernelCall:
    """One C call: ``function(&parameters, arguments...)``.

    A call into an accelerator's driver is ``checked``: it returns 0, or an error code that ends the run. Its pointers
    have the types of the tensors, const for inputs and constants, and numbers may stand among its arguments.
    """

    function: str
    header: str
    struct: str
    parameters: Mapping[str, ParameterValue]
    arguments: tuple[Argument | int | float, ...]
    checked: bool = False


@dataclass(frozen=True)
class Kernel:
    """One way to compute a layer.

    ``family`` names the family of the kernels ("portable", "arm_dsp", ...), and ``requires`` what they need of the
    CPU. ``inplace`` lists the inputs whose bytes output 0 may overwrite, beginning where they do. ``view`` says that
    output 0 is input 0 under another shape. ``updates`` are pairs (output, input) of what lasts between inferences: the
    output may lie where the input does. ``behind`` says of inputs that are read upwards how many bytes before them
    output 0 begins at least, to overlap them: it is written upwards and destroys what is not read again
    (``ops/behind.py``). ``leaner`` gives the same kernel with less and less scratch memory, and the instructions that
    it takes more. ``effort`` is how many products it computes for each that the operator asks for.
    """

    family: str
    calls: tuple[KernelCall, ...]
    scratch: int = 0
    inplace: tuple[int, ...] = ()
    view: bool = False
    notes: tuple[str, ...] = field(default=())
    requires: tuple[str, ...] = field(default=())
    updates: tuple[tuple[int, int], ...] = ()
    behind: Mapping[int, int] = field(default_factory=dict)
    leaner: Callable[[], Iterable[tuple[Kernel, float]]] = field(default=tuple, compare=False)
    effort: float = 1.0


@dataclass(frozen=True)
class Definition:
    """A C function that calls need besides headers: generated for one layer."""

    name: str
    source: str
    headers: tuple[str, ...]


VIEW = Kernel("view", (), view=True)


def portable(
    function: str,
    struct: str,
    parameters: Mapping[str, ParameterValue],
    arguments: tuple[Argument, ...],
    *,
    header: str = "",
    scratch: int = 0,
    inplace: tuple[int, ...] = (),
    updates: tuple[tuple[int, int], ...] = (),
    behind: Mapping[int, int] | None = None,
) -> Kernel:
    """The usual case: one call to a portable kernel; its header has the structure's name where nothing else is said."""
    call = KernelCall(function, header or f"{struct}.h", struct, parameters, arguments)
    return Kernel("portable", (call,), scratch=scratch, inplace=inplace, updates=updates, behind=behind or {})


def dtype_suffix(dtype: str) -> str:
    """int8 -> s8: how the kernels' names state the element type."""
    kind = {"i": "s", "u": "u", "f": "f", "b": "b"}[np.dtype(dtype).kind]
    return f"{kind}{np.dtype(dtype).itemsize * 8}"


def sides(what: str, extents: Sequence[int]) -> dict[str, int]:
    """Two fields of a structure: ``what_height`` and ``what_width``."""
    height, width = extents
    return {f"{what}_height": height, f"{what}_width": width}


def same(attrs: Any, *names: str) -> dict[str, Any]:
    """Fields of a structure that attributes of the same names give."""
    return {name: getattr(attrs, name) for name in names}
