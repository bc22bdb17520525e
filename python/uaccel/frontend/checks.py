"""Checks models before and during import: limits of files, memory and time, and the words of refusals; loads no TVM."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from uaccel.errors import ModelError, need
from uaccel.frontend import bundle
from uaccel.frontend.limits import asked
from uaccel.model import Shape, TensorInfo
from uaccel.util import incoming

# Limits of an import, so that a small file of unknown origin cannot occupy the computer for long.
#
# The figures are far above what firmware has room for. ``UACCEL_IMPORT_SECONDS`` allows more time.

MOST_NODES: Final = 10_000  # Nodes of a model; those of a function count at each call of it.
LARGEST_FILE: Final = 1 << 29  # Bytes of a model with all its files of weights.
# Bytes that the import makes beyond those of the file: constants that are computed, copies of functions.
MOST_BYTES: Final = 1 << 28
MOST_RANK: Final = 32  # Axes of a tensor, as many as a NumPy 1 array can have.
MOST_SECONDS: Final = 45.0
TIME_VARIABLE: Final = "UACCEL_IMPORT_SECONDS"


def read_file(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Reads a model file, also one in a bundle; refuses one of more than ``most`` bytes."""
    if bundle.is_inside(path):
        return bundle.read(path, most)
    with incoming.reading(ModelError, f"model {path}"):
        return incoming.read_bytes(path, most)


class Budget:
    """Counts what one import takes in nodes, bytes and seconds; going beyond a limit is a ModelError."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._nodes = 0
        self._bytes = 0
        self._seconds = _seconds_allowed()
        self._end = time.monotonic() + self._seconds

    def nodes(self, count: int) -> None:
        """Counts nodes that are about to be walked."""
        self._nodes += count
        if self._nodes > MOST_NODES:
            raise ModelError(
                f"{self._path} has more than {MOST_NODES} nodes, those of a function counted at each call of it; "
                "cut the model, or compile its parts"
            )
        self.time()

    def spare(self, count: int) -> None:
        """Allows so many bytes more: those of the file itself, which may be read once."""
        self._bytes -= count

    def bytes(self, count: int) -> None:
        """Counts bytes that are about to be made."""
        self._bytes += count
        if self._bytes > MOST_BYTES:
            raise ModelError(
                f"import of {self._path} would make more than {MOST_BYTES} bytes of constants that are not in "
                f"the file; "
                "firmware has no room for them"
            )

    def array(self, shape: Iterable[int], itemsize: int) -> None:
        """Counts an array that is about to be made."""
        self.bytes(math.prod(shape) * itemsize)

    def time(self) -> None:
        if time.monotonic() > self._end:
            raise ModelError(
                f"importing {self._path} takes more than {self._seconds:g} s; "
                f"the variable {TIME_VARIABLE} gives it more, if you trust the file"
            )


def _seconds_allowed() -> float:
    if asked.seconds is not None:
        return asked.seconds
    text = os.environ.get(TIME_VARIABLE, "")
    try:
        seconds = float(text) if text else MOST_SECONDS
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ModelError(f"{TIME_VARIABLE} is {text[:40]!r}; wanted a number of seconds")
    return seconds


# Checks that all front ends share, and the words of their refusals.

LARGEST_TENSOR: Final = 1 << 31  # Bytes, exclusive: kernels count in signed 32 bits.
ADVICE: Final = "rewrite the layer with supported operators"
SHAPE_OF_DATA: Final = "the shape of its result depends on data, and firmware needs every shape fixed"
NO_CONVERTER: Final = "there is no converter for this operator"
_LONGEST_LINE: Final = 500
_LONGEST_LIST: Final = 3000  # Characters of an error that lists problems.


def need_axis(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    need(-rank <= axis < rank, f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def need_type(dtype: str, known: Container[str], what: str) -> None:
    """Refuses a type that the front end does not know."""
    need(dtype in known, f"{what} has type {dtype}, which cannot be compiled")


def need_elements(info: TensorInfo, what: str) -> None:
    need(info.elements > 0, f"{what} ({info}) holds no elements; nothing to compute")


def need_size(info: TensorInfo, what: str) -> None:
    fits = info.size < LARGEST_TENSOR
    need(fits, f"{what} ({info}) has {info.size} bytes; at most {LARGEST_TENSOR - 1} can be compiled")


def shape_text(shape: Sequence[int | str]) -> str:
    return f"[{','.join(map(str, shape))}]"


def fixed_shape(
    path: Path, name: str, declared: Sequence[int | str], given: Sequence[int] | None, instead: str = ""
) -> Shape:
    """An input's shape, from the file or as the user gave it; fixed extents of the file cannot be changed.

    ``declared`` has a name or "?" for an extent that may vary; ``instead`` is what fixes these, too.
    """
    text, loose = shape_text(declared), [axis for axis, extent in enumerate(declared) if not isinstance(extent, int)]
    if given is None and loose:
        which = ", ".join(f'{axis} ("{declared[axis]}")' if declared[axis] != "?" else str(axis) for axis in loose)
        plural = "s" if len(loose) > 1 else ""
        example = ",".join(str(extent) if isinstance(extent, int) else "1" for extent in declared)
        raise ModelError(
            f'{path}: input "{name}" {text} has the dynamic dimension{plural} {which}; firmware needs every extent '
            f"fixed: {instead}add --input-shape {name}:{example}, or with the extent{plural} you want"
        )
    said = f"--input-shape {name}:{','.join(map(str, given or ()))}"
    shape = tuple(map(int, declared if given is None else given))
    need(len(shape) == len(declared), f'{path}: {said} has {len(shape)} extents; input "{name}" is {text}')
    for axis, (extent, wanted) in enumerate(zip(declared, shape, strict=True)):
        if isinstance(extent, int) and extent != wanted:
            raise ModelError(
                f'{path}: {said} contradicts the file: dimension {axis} of input "{name}" {text} is fixed at {extent}'
            )
    return shape


def at_run_time(role: str, name: str) -> ModelError:
    """The error for an operand that must be a constant and is not."""
    return ModelError(f'{role} "{name}" is computed at run time; only constant {role} can be compiled')


def unsupported(path: object, problems: list[str]) -> ModelError:
    """The error that lists everything in a model that cannot be converted, shortened to the first ones."""
    ends = accumulate(len(problem) for problem in problems)
    shown = problems[: max(1, sum(end <= _LONGEST_LIST for end in ends))]
    rest = f"; and {len(problems) - len(shown)} more" if len(shown) < len(problems) else ""
    return ModelError(f"cannot import {path}: {len(problems)} unsupported: {'; '.join(shown)}{rest}")


def first_line(error: Exception) -> str:
    """The first line of a library's error, without control characters; later lines are about its own code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return "".join(letter if letter.isprintable() else "?" for letter in lines[0][:_LONGEST_LINE]).rstrip(".;")
