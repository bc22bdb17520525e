"""Finds inputs of a model that are indices, lengths or shifts, and the numbers that are in range for them.

Samples that are made up must be in range: the runtimes of the models' formats refuse others, and so could not say
whether the firmware is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tvm import DataType

from uaccel.tvm_api import bindings_of, is_call, is_constant, is_tuple, is_tuple_get_item, is_var, plain_attributes

Range = tuple[int, int]  # The least and the largest number.
SORTER: Final = "uaccel.top_k"
# Operators whose result holds numbers of their operands, or such numbers with an extent added where they are negative.
_PASS: Final = frozenset(
    f"relax.{name}"
    for name in (
        *("astype", "reshape", "expand_dims", "squeeze", "permute_dims", "flatten", "broadcast_to", "tile", "repeat"),
        *("concat", "stack", "split", "strided_slice", "where", "clip", "minimum", "maximum", "add", "floor_mod"),
        *("round", "floor", "trunc"),
    )
) | {SORTER}


def _shape(expr: Any) -> list[int]:
    return [int(extent) for extent in expr.ty.shape.values]


def _along(call: Any, default: int) -> Range:
    """Returns the indices along the axis of the first operand that the call's ``axis`` names."""
    axis = plain_attributes(call).axis
    shape = _shape(call.args[0])
    return (0, shape[default if axis is None else int(axis)] - 1) if shape else (0, 0)


def _first_axes(call: Any) -> Range:
    """Returns the indices that fit along each axis that a row of indices names."""
    attributes = plain_attributes(call)
    skipped = int(getattr(attributes, "batch_dims", 0) or 0)
    count = _shape(call.args[1])[-1]
    return 0, min(_shape(call.args[0])[skipped : skipped + count], default=1) - 1


def _lengths(call: Any) -> Range:
    return 1, _shape(call.args[0])[int(plain_attributes(call).seq_axis)]


def _steps(call: Any) -> Range:
    """Returns the lengths that sequences of a recurrent layer may have; masked means of none would be no numbers."""
    return 1, _shape(call.args[0])[0 if int(call.attrs["time_major"]) else 1]


def _integers(call: Any) -> list[Any]:
    return [arg for arg in call.args if arg.ty.dtype == "int32"]


def _bits(call: Any) -> Range:
    return 0, DataType(call.args[0].ty.dtype).bits - 1


def _classes(call: Any) -> Range:
    shape = _shape(call.args[0])
    return 0, shape[1 if len(shape) > 1 else 0] - 1


# For each operator that reads numbers as places: which operand has them, and the range that fits. None stands for the
# operand of 32-bit integers, which has no fixed place.
_READERS: Final[dict[str, tuple[int | None, Callable[[Any], Range]]]] = {
    "relax.take": (1, lambda call: _along(call, 0)),
    "relax.gather_elements": (1, lambda call: _along(call, 0)),
    "relax.scatter_elements": (1, lambda call: _along(call, 0)),
    "relax.gather_nd": (1, _first_axes),
    "relax.scatter_nd": (1, _first_axes),
    "relax.one_hot": (0, lambda call: (0, int(plain_attributes(call).depth) - 1)),
    "relax.reverse_sequence": (1, _lengths),
    "uaccel.recurrent": (None, _steps),
    "relax.left_shift": (1, _bits),
    "relax.right_shift": (1, _bits),
    "relax.nn.nll_loss": (1, _classes),
}


def input_ranges(function: Any) -> list[Range | None]:
    """Returns for each parameter of a function the numbers that are in range; None where all are.

    A parameter that several operators read gets what fits all of them."""
    parameters, bindings, _ = bindings_of(function)
    needs: dict[Any, Range] = {}
    sorters = {var for var, expr in bindings if is_call(expr) and _name(expr) == SORTER}
    for var, expr in reversed(bindings):
        if is_tuple_get_item(expr) and expr.tuple_value in sorters and expr.index > 0:
            continue  # positions of what was sorted
        for operand, wanted in _wanted(expr, needs.get(var)):
            known = needs.get(operand)
            needs[operand] = wanted if known is None else (max(known[0], wanted[0]), min(known[1], wanted[1]))
    found = [needs.get(parameter) for parameter in parameters]
    return [None if wanted is None or wanted[0] > wanted[1] else wanted for wanted in found]


def _wanted(expr: Any, passed: Range | None) -> list[tuple[Any, Range]]:
    """Returns which operands must be in which range, if the result must be in the range ``passed``."""
    if is_tuple_get_item(expr):
        return [] if passed is None else [(expr.tuple_value, passed)]
    if is_tuple(expr):
        return [] if passed is None else [(field, passed) for field in expr.fields if is_var(field)]
    if not is_call(expr):
        return []
    name = _name(expr)
    place, reader = _READERS.get(name, (0, None))
    places = [arg for arg in (_integers(expr) if place is None else [expr.args[place]]) if is_var(arg)]
    if reader is not None and places:
        return [(arg, reader(expr)) for arg in places]
    selects = name == "relax.multiply" and not any(map(is_constant, expr.args))  # by a mask of 0 and 1
    if passed is None or not (selects or name in _PASS):
        return []
    known = _moved(expr, passed) if name == "relax.add" else passed
    return [(operand, known) for operand in _operands(expr.args)]


def _name(call: Any) -> str:
    return str(getattr(call.op, "name", ""))


def _moved(call: Any, passed: Range) -> Range:
    """Returns what fits beside constants that are added, as in a slice from a start on.

    Where 0 would not fit, the sum is an index counted from the end, which is chosen for negative ones only."""
    added = [arg.value.numpy() for arg in call.args if is_constant(arg)]
    if not added:
        return passed
    low, high = passed[0] - int(added[0].min()), passed[1] - int(added[0].max())
    return (low, high) if low <= 0 <= high else passed


def _operands(args: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for arg in args:
        found += _operands(arg.fields) if is_tuple(arg) else [arg] if is_var(arg) else []
    return found
