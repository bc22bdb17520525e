"""Compares a run with references that do not use the compiler's integer arithmetic, and says where they disagree.

These are the runtime of the model's own format, which shares nothing with the compiler, and the quantised program in
float64. Outputs are compared in steps of their scales. How far a reference may be off stands in ``differences.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import Array, ImportedModel
from uaccel.ops.operator import operator_of
from uaccel.ops.quantize import Dequantize
from uaccel.report.run_json import json_number
from uaccel.runner.compare import Difference, Mismatch, Move
from uaccel.runner.differences import Allowance
from uaccel.tvm_api import bindings_of, is_call, is_tuple
from uaccel.util.text import named

Samples = Sequence[Sequence[Array]]
UNDECIDED: Final = 2  # A decision that may fall either way need not change in a few draws: so many for each that does.


@dataclass
class Opinion:
    """Counts how elements compare with a reference.

    ``largest``: the largest difference of outputs without a scale, as a share of the largest value. ``no_number``: how
    many samples are not compared, because the program quantises a NaN for them. ``off``: how many elements differ, and
    ``beyond`` how many of them by more than is allowed; ``first``: the first of these, else the first that differs.
    ``verb``: what the reference does with a number."""

    runtime: str
    elements: int = 0
    equal: int = 0
    one_step: int = 0
    more: int = 0
    largest: float | None = None
    no_number: int = 0
    compared: int = 0  # Elements of all outputs.
    off: int = 0
    beyond: int = 0
    first: Difference | None = field(default=None, repr=False)
    verb: str = "computes"

    def to_json(self) -> dict[str, Any]:
        return {
            **named(self, "runtime", "elements", "equal", "one_step", "more"),
            "largest_relative_difference": self.largest if self.largest is None else json_number(self.largest),
            "no_number": self.no_number,
        }

    def complaint(self, allowed: Allowance) -> str:
        """Says where the reference disagrees; empty if all is within what is documented.

        One element may be off wherever any may: a share of few elements would be none."""
        few = max(1.0, allowed.off * self.compared) if allowed.off else 0.0
        if self.first is None or (self.beyond <= allowed.farther * self.compared and self.off <= few):
            return ""
        first = self.first.mismatch
        where = ",".join(map(str, first.index))
        place = f'sample {self.first.sample}, output "{self.first.output}", element [{where}]'
        said = f"{place} is {first.got}, {self.runtime} {self.verb} {first.expected}"
        return f"{said}; {self.off} of {self.compared} elements differ, more than is documented"


def compared(
    model: ImportedModel,
    name: str,
    outputs: Samples,
    wanted: Sequence[Sequence[Array] | None],
    allowed: Allowance,
    moves: Sequence[Sequence[Move]] = (),
) -> Opinion:
    """Compares outputs with those that reference ``name`` gives for the same samples; None where it gives none.

    ``moves``: how far the reference's own outputs move, which is allowed as well."""
    found, scales = Opinion(name), _scales(model)
    for number, (given, expected) in enumerate(zip(outputs, wanted, strict=True)):
        if expected is None:
            continue
        if len(expected) != len(given):
            found.first = Difference(number, "", Mismatch((), f"{len(expected)} outputs", f"one of {len(given)}"))
            found.off, found.beyond = found.off + 1, found.beyond + 1
            continue
        rooms = moves[number] if number < len(moves) else [Move()] * len(given)
        pairs = zip(given, expected, strict=True)
        for spec, pair, scale, room in zip(model.signature.outputs, pairs, scales, rooms, strict=True):
            _add(found, (number, spec.name), pair, scale, allowed, room)
    return found


def _add(
    found: Opinion,
    where: tuple[int, str],
    pair: tuple[Array, Array],
    scale: float | None,
    allowed: Allowance,
    room: Move,
) -> None:
    """Compares one output of one sample. Firmware has room for the most rows there can be, and its first ones count."""
    whole, other = pair
    value = whole[tuple(map(slice, other.shape))] if whole.ndim == other.ndim else whole
    if value.shape != other.shape:
        right, seen = (f"a tensor {list(one.shape)}" for one in (other, value))
        found.first = Difference(*where, Mismatch((), right, seen))
        found.off, found.beyond = found.off + value.size, found.beyond + max(value.size, 1)
        return
    if scale:
        off, beyond = _steps(found, value, other, scale, allowed)
        if _decides(value) and off.sum() <= UNDECIDED * room.changed.sum():
            off = beyond = np.zeros_like(off)
    else:
        off = beyond = _floats(found, value, other, max(allowed.relative, room.relative))
    first = not found.beyond if beyond.any() else found.first is None
    found.compared, found.off = found.compared + value.size, found.off + int(off.sum())
    found.beyond += int(beyond.sum())
    if first and off.any():
        place = tuple(int(i) for i in np.argwhere(beyond if beyond.any() else off)[0])
        found.first = Difference(*where, Mismatch(place, other[place].item(), value[place].item()))


def _steps(
    found: Opinion, value: Array, other: Array, scale: float, allowed: Allowance
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Counts how many steps an output with a scale is off; returns which elements are off, and which by too many."""
    with np.errstate(invalid="ignore"):
        apart = np.rint(np.abs(value.astype(np.float64) - other.astype(np.float64)) / scale)
    apart = np.where(np.isnan(value) & np.isnan(other), 0, np.nan_to_num(apart, nan=np.inf))
    found.elements += apart.size
    found.equal += int((apart == 0).sum())
    found.one_step += int((apart == 1).sum())
    found.more = found.elements - found.equal - found.one_step
    return np.asarray(apart > 0), np.asarray(apart > allowed.steps)


def _decides(value: Array) -> bool:
    """Says whether an output holds indices or truths. Bytes have scales, in which an integer model is judged."""
    return value.dtype.kind == "b" or (value.dtype.kind in "iu" and value.itemsize > 2)


def _floats(found: Opinion, value: Array, other: Array, most: float) -> NDArray[np.bool_]:
    """Measures how far an output without a scale is off, as a share of the reference's largest value."""
    wide, right = value.astype(np.float64), other.astype(np.float64)
    same = (wide == right) | (np.isnan(wide) & np.isnan(right))
    finite = np.isfinite(wide) & np.isfinite(right)
    size = float(np.abs(right[np.isfinite(right)]).max(initial=0.0)) or 1.0
    apart = np.zeros(value.shape)
    apart[finite] = np.abs(wide[finite] - right[finite]) / size
    apart[~finite & ~same] = np.inf
    found.largest = max(found.largest or 0.0, float(apart.max(initial=0.0)))
    return np.asarray(apart > most)


def _scales(model: ImportedModel) -> list[float | None]:
    """Returns the step of each output: the scale of a dequantised one, 1 for integers, None for other floats."""
    _, bindings, result = bindings_of(model.module["main"])
    definitions = dict(bindings)
    results = list(result.fields) if is_tuple(result) else [result]
    return [
        _scale(definitions, var) if spec.info.dtype == "float32" else 1.0
        for spec, var in zip(model.signature.outputs, results, strict=False)  # a state's new values come last
    ]


def _scale(definitions: dict[Any, Any], var: Any) -> float | None:
    call = definitions.get(var)
    operator = operator_of(call) if call is not None and is_call(call) else None
    return float(operator.attrs_of(call).scale) if isinstance(operator, Dequantize) else None
