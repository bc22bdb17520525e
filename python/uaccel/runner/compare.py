"""Arrays compared element by element."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array
from uaccel.report.run_json import json_number

# Tensors that a device computed, against what they should be: element by element, over all samples.

FLOAT_TOLERANCE: Final = 1e-5  # Of floats that the CPU computes, relative: two compilers may differ in the last bits.
FARTHEST: Final = 16  # Steps, from which on differences are counted together.
STEPS, RELATIVE = "steps", "relative"


@dataclass(frozen=True)
class Mismatch:
    """The first element of a tensor that is not as it should be, and how many more there are."""

    index: tuple[int, ...]
    expected: float | int
    got: float | int
    differing: int
    size: int

    def __str__(self) -> str:
        where = ",".join(map(str, self.index))
        many = f"{self.differing} of {self.size} elements differ"
        return f"[{where}] is {self.got}, expected {self.expected}; {many}"


@dataclass(frozen=True)
class Difference:
    """An element that differs, and where it is."""

    sample: int
    output: str
    index: tuple[int, ...]
    expected: float | int
    got: float | int
    kind: str = "output"
    differing: int = 1
    size: int = 1  # Elements of this tensor.

    def to_json(self) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "output": self.output,
            "index": list(self.index),
            "expected": json_number(self.expected),
            "got": json_number(self.got),
            "differing": self.differing,
            "size": self.size,
        }

    def __str__(self) -> str:
        where = ",".join(map(str, self.index))
        place = f'sample {self.sample}, {self.kind} "{self.output}", element [{where}]'
        many = f"{self.differing} of {self.size} elements differ"
        return f"{place} is {self.got}, expected {self.expected}; {many}"


def differing(expected: Array, got: Array, tolerance: float = 0) -> NDArray[np.bool_]:
    """Element by element. ``tolerance``: in steps of an integer type; of floats, which have one at least, relative to
    the largest of the tensor: what sums cancel leaves the errors of their parts."""
    if got.dtype.kind == "f":
        near = max(FLOAT_TOLERANCE, tolerance)
        size = float(np.abs(expected, where=np.isfinite(expected), out=np.zeros(expected.shape)).max(initial=0.0))
        return ~np.isclose(got, expected, rtol=near, atol=near * size, equal_nan=True)
    if tolerance and got.dtype.kind in "iu":
        return np.asarray(np.abs(got.astype(np.int64) - expected.astype(np.int64)) > tolerance)
    return np.asarray(got != expected)


def compare(got: Array, expected: Array, tolerance: float = 0) -> Mismatch | None:
    """The first element that differs, and how many do."""
    expected = np.asarray(expected).reshape(got.shape)
    where = np.argwhere(differing(expected, got, tolerance))
    if not len(where):
        return None
    index = tuple(int(i) for i in where[0])
    return Mismatch(index, expected[index].item(), got[index].item(), len(where), int(got.size))


def steps_between(got: Array, expected: Array) -> Counter[int]:
    """How many elements differ by how many steps of an integer type, far ones as ``FARTHEST``; none of floats."""
    if got.dtype.kind not in "iu":
        return Counter()
    apart = got.astype(np.int64).ravel() - np.asarray(expected).astype(np.int64).ravel()
    steps, numbers = np.unique(np.clip(apart, -FARTHEST, FARTHEST), return_counts=True)
    return Counter(dict(zip(steps.tolist(), numbers.tolist(), strict=True)))


def histogram(tensor: str, what: str, counts: Mapping[int, int]) -> dict[str, Any]:
    """As the JSON has it."""
    return {"tensor": tensor, "what": what, "counts": {str(step): counts[step] for step in sorted(counts)}}


@dataclass
class Comparison:
    """Of many tensors. ``tolerance`` is what accelerators that are not exact may differ by."""

    tolerance: float = 0
    compared: int = 0  # Elements.
    unequal: int = 0  # Elements whose bits differ.
    at_limits: int = 0  # Elements that are the smallest or the largest of their type, where much saturates.
    tensors: list[str] = field(default_factory=list)  # Compared besides the outputs, by name.
    # Difference, in steps of integers, and of floats relative to the largest of their tensor.
    largest: dict[str, float] = field(default_factory=dict)
    first: Difference | None = None
    beyond: Difference | None = None  # The first that is not within the tolerance.
    power: float = 0.0
    noise: float = 0.0
    classes: int = 0
    agreeing: int = 0
    # How far elements of integer tensors are off, by (name, kind).
    # Samples whose largest element stands where it should, of those that have classes.
    steps: dict[tuple[str, str], Counter[int]] = field(default_factory=dict)

    def add(self, sample: int, name: str, expected: Array, got: Array, kind: str = "output") -> None:
        expected = np.asarray(expected).reshape(got.shape)
        unequal = _bits(expected) != _bits(got)
        if kind != "output" and name not in self.tensors:
            self.tensors.append(name)
        self.compared += got.size
        self.unequal += int(unequal.sum())
        self.at_limits += _at_limits(got)
        counts = self.steps.setdefault((name, kind), Counter())
        counts.update(steps_between(got, expected))
        wide, other = got.astype(np.float64), expected.astype(np.float64)
        self.power += _sum_of_squares(other)
        self.classes += got.size > 1
        self.agreeing += got.size > 1 and int(np.argmax(got)) == int(np.argmax(expected))
        if unequal.any():
            self._note((sample, name, kind), expected, got, unequal)
            self.noise += _sum_of_squares(wide - other)

    def _note(self, place: tuple[int, str, str], expected: Array, got: Array, unequal: NDArray[np.bool_]) -> None:
        distance = float(np.nanmax(np.abs(got.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
        units = RELATIVE if got.dtype.kind == "f" else STEPS
        if units == RELATIVE:
            distance /= float(np.nanmax(np.abs(expected), initial=0.0)) or 1.0
        self.largest[units] = max(self.largest.get(units, 0.0), distance)
        self.first = self.first or _difference(place, expected, got, unequal)
        self.beyond = self.beyond or _difference(place, expected, got, differing(expected, got, self.tolerance))

    @property
    def bit_exact(self) -> bool:
        return not self.unequal

    @property
    def proves_little(self) -> bool:
        """Whatever is compared is saturated."""
        return 0 < self.compared == self.at_limits

    @property
    def snr_db(self) -> float | None:
        """Of the signal to the differences; None where nothing differs."""
        if not self.noise or not self.power:
            return None
        return 10 * math.log10(self.power / self.noise)

    def to_json(self) -> dict[str, Any]:
        units = max(self.largest, key=lambda unit: self.largest[unit], default=STEPS)
        snr = self.snr_db
        return {
            "bit_exact": self.bit_exact,
            "compared": self.compared,
            "largest_difference": json_number(self.largest.get(units, 0)),
            "units": units,
            "tolerance": self.tolerance or (FLOAT_TOLERANCE if RELATIVE in self.largest else 0),
            "snr_db": None if snr is None else round(snr, 2),
            "top_class_agrees": self.agreeing / self.classes if self.classes else None,
            "proves_little": self.proves_little,
            "first_difference": self.first.to_json() if self.first else None,
        } | ({} if self.bit_exact else {"within_tolerance": self.beyond is None, "differences": self._differences()})

    def _differences(self) -> list[dict[str, Any]]:
        return [histogram(name, kind, counts) for (name, kind), counts in self.steps.items() if counts]


def _difference(
    place: tuple[int, str, str], expected: Array, got: Array, where: NDArray[np.bool_]
) -> Difference | None:
    found = np.argwhere(where)
    if not len(found):
        return None
    index = tuple(int(i) for i in found[0])
    sample, name, kind = place
    return Difference(sample, name, index, expected[index].item(), got[index].item(), kind, len(found), got.size)


def _bits(array: Array) -> Array:
    """Floats as the integers that their bits are: 0 and -0 differ, and a NaN equals itself."""
    return array.view(f"u{array.itemsize}") if array.dtype.kind == "f" else array


def _at_limits(array: Array) -> int:
    if array.dtype.kind not in "iu" or array.itemsize > 2:
        return 0
    info = np.iinfo(array.dtype)
    return int(((array == info.min) | (array == info.max)).sum())


def _sum_of_squares(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.square(finite).sum())


@dataclass(frozen=True)
class Verdict:
    """``complaint`` is what is wrong, in words; empty where nothing is."""

    report: dict[str, Any]
    complaint: str = ""
    sample: int = 0  # The one that the complaint is about.


# Tensors by content.


def arrays_digest(samples: Iterable[Sequence[Array]]) -> str:
    """Of types, shapes and bytes."""
    digest = hashlib.sha256()
    for arrays in samples:
        for array in arrays:
            digest.update(f"{array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
