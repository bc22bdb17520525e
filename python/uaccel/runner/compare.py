"""Compares arrays element by element and collects the differences over all samples of a run."""

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
from uaccel.util.text import named

# Tensors that a device computed, compared with what they should be.

FLOAT_TOLERANCE: Final = 1e-5  # Relative, for floats of the CPU: code of two compilers may differ in the last bits.
# Layers round as well as inputs, and independent errors add up like the root of their number: this stands for 256.
LAYERS_ROUND: Final = 16
FARTHEST: Final = 16  # Steps; larger differences are counted as this many.
STEPS, RELATIVE = "steps", "relative"


@dataclass(frozen=True)
class Mismatch:
    """Tells of one tensor the first element that is wrong, and how many are."""

    index: tuple[int, ...]
    expected: float | int | str  # Words where no element can be compared.
    got: float | int | str
    differing: int = 1
    size: int = 1  # Elements of the tensor.

    def to_json(self) -> dict[str, Any]:
        told = {"index": list(self.index), "expected": json_number(self.expected), "got": json_number(self.got)}
        return told | named(self, "differing", "size")

    def __str__(self) -> str:
        where = ",".join(map(str, self.index))
        many = f"{self.differing} of {self.size} elements differ"
        return f"[{where}] is {self.got}, expected {self.expected}; {many}"


@dataclass(frozen=True)
class Difference:
    """Tells where a run differs: in which sample and tensor, and there from which element on."""

    sample: int
    output: str
    mismatch: Mismatch
    kind: str = "output"

    def to_json(self) -> dict[str, Any]:
        return named(self, "sample", "output") | self.mismatch.to_json()

    def __str__(self) -> str:
        return f'sample {self.sample}, {self.kind} "{self.output}", element {self.mismatch}'


def differing(expected: Array, got: Array, tolerance: float = 0) -> NDArray[np.bool_]:
    """Says of each element whether it is off by more than ``tolerance``.

    For integers that is in steps. For floats it is relative to the element plus the tensor's maximum, and at least
    ``FLOAT_TOLERANCE``. The maximum is used since a small sum may be the difference of large terms: its error
    is as large as that of the terms."""
    if got.dtype.kind == "f":
        near = max(FLOAT_TOLERANCE, tolerance)
        size = float(np.abs(expected, where=np.isfinite(expected), out=np.zeros(expected.shape)).max(initial=0.0))
        return ~np.isclose(got, expected, rtol=near, atol=near * size, equal_nan=True)
    if tolerance and got.dtype.kind in "iu":
        return np.asarray(np.abs(got.astype(np.int64) - expected.astype(np.int64)) > tolerance)
    return np.asarray(got != expected)


def compare(got: Array, expected: Array, tolerance: float = 0) -> Mismatch | None:
    """Returns the first element that differs, and how many do; None if all agree."""
    expected = np.asarray(expected).reshape(got.shape)
    return _first(expected, got, differing(expected, got, tolerance))


def _first(expected: Array, got: Array, where: NDArray[np.bool_]) -> Mismatch | None:
    found = np.argwhere(where)
    if not len(found):
        return None
    index = tuple(int(i) for i in found[0])
    return Mismatch(index, expected[index].item(), got[index].item(), len(found), int(got.size))


def steps_between(got: Array, expected: Array) -> Counter[int]:
    """Counts how many elements differ by how many steps, far ones as ``FARTHEST``; floats are not counted."""
    if got.dtype.kind not in "iu":
        return Counter()
    apart = got.astype(np.int64).ravel() - np.asarray(expected).astype(np.int64).ravel()
    steps, numbers = np.unique(np.clip(apart, -FARTHEST, FARTHEST), return_counts=True)
    return Counter(dict(zip(steps.tolist(), numbers.tolist(), strict=True)))


def histogram(tensor: str, what: str, counts: Mapping[int, int]) -> dict[str, Any]:
    """Returns counts of differences in the form that the JSON has."""
    return {"tensor": tensor, "what": what, "counts": {str(step): counts[step] for step in sorted(counts)}}


def moved(value: Array, rng: np.random.Generator, roundings: int = 1, zero: float = 0.0) -> Array:
    """Moves floats up or down by so many roundings; other types stay. A zero moves as the number ``zero`` would."""
    if value.dtype != np.float32:
        return value
    finite = np.where(np.isfinite(value), value, np.float32(0))
    steps = np.where(rng.random(value.shape) < 0.5, -roundings, roundings) * np.spacing(
        np.where(finite == 0, np.float32(zero), np.abs(finite))
    )
    return np.where(np.isfinite(value), finite + steps.astype(np.float32), value)


def relative_distance(value: Array, other: Array) -> float:
    """The largest difference of float tensors as a share of the largest value; 0 for others, and beside NaN."""
    if value.dtype.kind != "f":
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(value.astype(np.float64) - other.astype(np.float64))
    size = float(np.abs(value[np.isfinite(value)]).max(initial=0.0))
    return float(apart[np.isfinite(apart)].max(initial=0.0)) / size if size else 0.0


@dataclass(frozen=True)
class Move:
    """Says how far an output moves between runs: ``relative`` for floats, and which other elements changed."""

    relative: float = 0.0
    changed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((), np.bool_))

    @classmethod
    def between(cls, one: Array, other: Array) -> Move:
        """Outputs of different shapes cannot be compared, and show no movement."""
        if one.shape != other.shape:
            return cls()
        return cls(relative_distance(one, other)) if one.dtype.kind == "f" else cls(0.0, np.asarray(one != other))

    def __or__(self, other: Move) -> Move:
        return Move(max(self.relative, other.relative), np.logical_or(self.changed, other.changed))


@dataclass
class _Spread:
    """Tells how much the elements of a tensor differ over all samples."""

    elements: int = 0
    at_limits: int = 0  # Elements that are the smallest or the largest of their type, where much saturates.
    numbers: int = 0  # Elements that are not NaN.
    low: float = math.inf
    high: float = -math.inf
    first: bytes | None = None
    alike: bool = True  # Whether the tensor is the same in all samples.

    def add(self, value: Array) -> None:
        numbers = value[~np.isnan(value)] if value.dtype.kind == "f" else value
        self.elements += value.size
        self.at_limits += _at_limits(value)
        self.numbers += numbers.size
        if numbers.size:
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        content = value.tobytes()
        self.alike = self.alike and content == (self.first if self.first is not None else content)
        self.first = content if self.first is None else self.first

    def shows_nothing(self, *, varied: bool) -> bool:
        """Whether it is empty, all NaN, saturated everywhere, one number, or the same for samples that differ."""
        one_number = self.elements > 1 and self.numbers == self.elements and self.low == self.high
        return not self.numbers or self.elements == self.at_limits or one_number or (varied and self.alike)


@dataclass
class Comparison:
    """Sums up how many tensors compare. ``tolerance``: how far accelerators that are not exact may be off.

    ``rounding``: how far rounding may move a float tensor, by name and kind, relative to its largest value."""

    tolerance: float = 0
    rounding: Mapping[tuple[str, str], float] = field(default_factory=dict)
    compared: int = 0  # Elements.
    unequal: int = 0  # Elements whose bits differ.
    varied: bool = False  # Whether the samples differ from each other.
    spreads: dict[tuple[str, str], _Spread] = field(default_factory=dict)  # By (name, kind) of the tensor.
    tensors: list[str] = field(default_factory=list)  # Compared besides the outputs, by name.
    # The largest difference: in steps for integers, and for floats relative to the largest value of the tensor.
    largest: dict[str, float] = field(default_factory=dict)
    first: Difference | None = None
    beyond: Difference | None = None  # The first that is not within the tolerance.
    power: float = 0.0  # Sum of squares of what was expected.
    noise: float = 0.0  # Sum of squares of the differences.
    classes: int = 0  # Tensors of more than one element, one for each sample: their largest may be a class.
    agreeing: int = 0  # How many of them have their largest element where it should be.
    # How far elements of integer tensors are off, by (name, kind).
    steps: dict[tuple[str, str], Counter[int]] = field(default_factory=dict)

    def add(self, sample: int, name: str, expected: Array, got: Array, kind: str = "output") -> None:
        expected = np.asarray(expected).reshape(got.shape)
        unequal = _bits(expected) != _bits(got)
        if kind != "output" and name not in self.tensors:
            self.tensors.append(name)
        self.compared += got.size
        self.unequal += int(unequal.sum())
        self.spreads.setdefault((name, kind), _Spread()).add(got)
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
        room = max(self.tolerance, self.rounding.get(place[1:], 0) if units == RELATIVE else 0)
        self.beyond = self.beyond or _difference(place, expected, got, differing(expected, got, room))

    def _room(self) -> tuple[float, ...]:
        """The tolerances of the floats that were compared."""
        return (FLOAT_TOLERANCE, *(self.rounding.get(key, 0) for key in self.spreads))

    @property
    def bit_exact(self) -> bool:
        return not self.unequal

    @property
    def proves_little(self) -> bool:
        """Whether no compared tensor shows anything: then a wrong sum would show nowhere."""
        return all(spread.shows_nothing(varied=self.varied) for spread in self.spreads.values())

    @property
    def snr_db(self) -> float | None:
        """The ratio of signal to differences in dB; None where nothing differs."""
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
            "tolerance": max(self.tolerance, *self._room()) if RELATIVE in self.largest else self.tolerance,
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
    mismatch, (sample, name, kind) = _first(expected, got, where), place
    return None if mismatch is None else Difference(sample, name, mismatch, kind)


def _bits(array: Array) -> Array:
    """Returns floats as the integers of their bits: then 0 and -0 differ. All NaN are one, whatever their bits."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array).view(f"u{array.itemsize}")


def _at_limits(array: Array) -> int:
    """Counts elements at the ends of their type, for integers of 8 and 16 bits."""
    if array.dtype.kind not in "iu" or array.itemsize > 2:
        return 0
    info = np.iinfo(array.dtype)
    return int(((array == info.min) | (array == info.max)).sum())


def _sum_of_squares(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.square(finite).sum())


@dataclass(frozen=True)
class Verdict:
    """Holds what verification found. ``complaint`` says in words what is wrong; it is empty if nothing is."""

    report: dict[str, Any]
    complaint: str = ""
    sample: int = 0  # The one that the complaint is about.


# A digest of tensors, for keys of the cache.


def arrays_digest(samples: Iterable[Sequence[Array]]) -> str:
    """Returns a digest of the types, shapes and bytes of all arrays."""
    digest = hashlib.sha256()
    for arrays in samples:
        for array in arrays:
            digest.update(f"{array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
