"""Describes the kernels of a layer: calls to C functions of ``firmware/kernels`` with constant parameters."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from uaccel.model import Array
from uaccel.util import incoming
from uaccel.util.files import data_dir
from uaccel.util.text import named

# A lowered layer is a short list of calls. Every parameter is known at compile time and becomes a ``static const``
# structure beside the call, so that the inlined kernel folds and unrolls for this one layer.

# Raised when a kernel's C interface changes, or the order in which it reads and writes; also in uaccel_kernel.h.
KERNEL_ABI = 7

ParameterValue = int | float | tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """Stands for the address of the layer's input number ``index``, ``offset`` bytes in."""

    index: int
    offset: int = 0


@dataclass(frozen=True)
class Output:
    """Stands for the address of the layer's output number ``index``, ``offset`` bytes in."""

    index: int = 0
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Constant:
    """Holds an array that lies in flash, laid out for the kernel that reads it."""

    role: str
    data: Array


@dataclass(frozen=True)
class Scratch:
    """Stands for the address of the layer's scratch memory, ``offset`` bytes in."""

    offset: int = 0


Argument = Input | Output | Constant | Scratch

# Their names in generated C and in the dumps of stages.
KINDS: Final[Mapping[type, str]] = {Input: "input", Output: "output", Scratch: "scratch"}

UNUSED = Output(0)  # Stands where a kernel takes scratch memory that it does not need for one layer.


@dataclass(frozen=True)
class KernelCall:
    """Describes one C call: ``function(&parameters, arguments...)``.

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
    """Describes one way to compute a layer.

    ``family`` names the family of the kernels ("portable", "arm_dsp", ...), and ``requires`` what they need of the
    CPU. ``inplace`` lists the inputs whose bytes output 0 may overwrite, beginning where they do. ``view`` says that
    output 0 is input 0 under another shape. ``updates`` are pairs (output, input) of what lasts between inferences: the
    output may lie where the input does. ``behind`` is the overwrite distance for inputs that are read upwards: output 0
    may overlap them if it begins at least so many bytes before them (``ops/storage.py``). ``leaner`` gives variants
    with less and less scratch memory, each with the instructions that it takes more. ``effort`` is how many products
    the kernel computes for each that the operator asks for.
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

    def by(self, family: str, requires: tuple[str, ...], scratch: int | None = None, **changes: Any) -> Kernel:
        """The kernel of another family whose one call is this one's but for the ``changes``."""
        (call,), scratch = self.calls, self.scratch if scratch is None else scratch
        if "struct" in changes:
            changes.setdefault("header", _declared()[changes["struct"]])
        return replace(self, family=family, calls=(replace(call, **changes),), scratch=scratch, requires=requires)


@dataclass(frozen=True)
class Definition:
    """Holds a C function that is generated for one layer and that its calls need besides headers."""

    name: str
    source: str
    headers: tuple[str, ...]


VIEW = Kernel("view", (), view=True)


_STRUCTURE: Final = re.compile(r"^struct (\w+) \{", re.MULTILINE)


@functools.cache
def _declared() -> Mapping[str, str]:
    """The header that declares each structure, by the structure's name."""
    headers = sorted((data_dir("firmware") / "kernels").rglob("*.h"))
    return {struct: path.name for path in headers for struct in _STRUCTURE.findall(incoming.read_text(path))}


def calling(
    family: str,
    requires: tuple[str, ...],
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
    effort: float = 1.0,
) -> Kernel:
    """The usual case: a kernel of one call. Unless ``header`` is given, it is the one that declares the structure."""
    call = KernelCall(function, header or _declared().get(struct, ""), struct, parameters, arguments)
    lies: dict[str, Any] = {"inplace": inplace, "updates": updates, "behind": behind or {}}
    return Kernel(family, (call,), scratch, requires=requires, effort=effort, **lies)


portable: Final = partial(calling, "portable", ())


def dtype_suffix(dtype: str) -> str:
    """int8 -> s8: how the kernels' names state the element type."""
    kind = {"i": "s", "u": "u", "f": "f", "b": "b"}[np.dtype(dtype).kind]
    return f"{kind}{np.dtype(dtype).itemsize * 8}"


same = named  # Fields of a structure, copied from attributes of the same names.
