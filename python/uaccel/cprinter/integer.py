"""Integer arithmetic of TIR as C without undefined behaviour.

TIR computes modulo 2**bits in the type that an expression has. Here an operation runs in int where its bounds show that
nothing is lost, in 64 bits where the type has them, and otherwise in unsigned arithmetic, which wraps by definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from uaccel.cprinter.helpers import Helpers
from uaccel.cprinter.value import Level, Value, as_type, cast, common_int, int_literal, operand, retyped
from uaccel.ctext.types import bits, fits, is_signed, limits

Bounds = tuple[float, float]

_EXACT: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_LEVELS = {"+": Level.SUM, "-": Level.SUM, "*": Level.PRODUCT, "/": Level.PRODUCT, "%": Level.PRODUCT}


def bounds_of(function: Callable[[float, float], float], left: Value, right: Value) -> Bounds:
    """Over all pairs of ends: right for what is monotone in each operand."""
    ends = [function(a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    return min(ends), max(ends)


def join(left: Value, sign: str, right: Value, dtype: str, bounds: Bounds) -> Value:
    """``left sign right`` of C type ``dtype``; equal levels associate to the left."""
    level = _LEVELS[sign]
    text = f"{operand(left, level)} {sign} {operand(right, Level(level + 1))}"
    return Value(text, level, dtype, *bounds)


def wrapped(value: Value, dtype: str) -> Value:
    """``value`` modulo 2**bits of ``dtype``: nothing to do where its bounds fit."""
    return value if value.within(dtype) else cast(value, dtype)


def convert(left: Value, right: Value, dtype: str) -> tuple[Value, Value]:
    """The operands such that C computes in ``dtype``: one cast does, since the other operand follows."""
    if dtype == "int32":
        return as_type(left, dtype), as_type(right, dtype)
    if is_signed(dtype):
        if dtype in (left.dtype, right.dtype):
            return left, right
        return (as_type(left, dtype), right) if not left.literal else (left, as_type(right, dtype))
    return as_type(left, dtype), as_type(right, dtype)


def arithmetic(sign: str, left: Value, right: Value, dtype: str) -> Value:
    """``+``, ``-`` or ``*`` in TIR type ``dtype``."""
    bounds = bounds_of(_EXACT[sign], left, right)
    within_int = all(v.within("int32") for v in (left, right)) and fits(*bounds, "int32")
    if within_int or (dtype == "int64" and fits(*bounds, dtype)):
        machine = "int32" if within_int else dtype
        return wrapped(join(*_infix(left, sign, right, machine), machine, bounds), dtype)
    machine = "uint64" if bits(dtype) == 64 else "uint32"
    bounds = bounds if fits(*bounds, machine) else limits(machine)
    return _to_type(join(*_infix(left, sign, right, machine), machine, bounds), dtype)


def _infix(left: Value, sign: str, right: Value, dtype: str) -> tuple[Value, str, Value]:
    first, second = convert(left, right, dtype)
    return first, sign, second


def _to_type(value: Value, dtype: str) -> Value:
    """An unsigned result as ``dtype``, whose bits it holds."""
    if value.dtype == dtype:
        return value
    return replace(cast(retyped(value, *limits(value.dtype)), dtype), wrapping=value)


def division(kind: str, left: Value, right: Value, dtype: str, helpers: Helpers) -> Value:
    """``kind`` is div or mod (towards zero), floordiv or floormod (towards minus infinity)."""
    machine = common_int(left, right, dtype)
    if _overflows(left, right, machine) and bits(dtype) > bits(machine):
        machine = dtype
    bounds = _division_bounds(kind, left, right, machine)
    truncates = not kind.startswith("floor") or (left.low >= 0 and right.low > 0) or not is_signed(machine)
    nonzero = right.low > 0 or right.high < 0
    if truncates and nonzero and not _overflows(left, right, machine):
        first, second = convert(left, right, machine)
        return wrapped(join(first, "/" if kind.endswith("div") else "%", second, machine, bounds), dtype)
    family = kind if is_signed(machine) else kind.removeprefix("floor")
    text = f"{helpers.of(family, machine)}({as_type(left, machine).text}, {as_type(right, machine).text})"
    return wrapped(Value(text, Level.PRIMARY, machine, *bounds), dtype)


def _overflows(left: Value, right: Value, machine: str) -> bool:
    """The minimum divided by -1 can occur."""
    return left.low <= limits(machine)[0] < 0 and right.low <= -1 <= right.high


def _division_bounds(kind: str, left: Value, right: Value, machine: str) -> Bounds:
    if right.low > 0 and kind.endswith("div"):
        floors = kind == "floordiv"
        return bounds_of(lambda a, b: a // b if floors or a >= 0 else -(-a // b), left, right)
    if right.low > 0:
        top = right.high - 1
        if kind == "floormod" and left.low < 0:
            return 0, top
        return max(min(left.low, 0), -top), min(max(left.high, 0), top)
    largest = max(abs(end) for end in (left.low, left.high))
    if kind == "floormod":
        largest = max(abs(end) for end in (right.low, right.high))
    bottom, top = limits(machine)
    return max(-largest, bottom), min(largest, top)


def bitwise(sign: str, left: Value, right: Value, dtype: str) -> Value:
    """``&``, ``|`` or ``^``."""
    machine = common_int(left, right, dtype)
    first, second = as_type(left, machine), as_type(right, machine)
    text = f"{operand(first, Level.UNARY)} {sign} {operand(second, Level.UNARY)}"
    low, high = limits(dtype)
    if left.literal and right.literal:
        low = high = _BITWISE[sign](int(left.low), int(right.low))
    elif sign == "&" and max(left.low, right.low) >= 0:
        low, high = 0, min(v.high for v in (left, right) if v.low >= 0)
    elif min(left.low, right.low) >= 0:
        low, high = 0, (1 << int(max(left.high, right.high)).bit_length()) - 1
    return Value(text, Level.BITS, machine, low, high)


def complement(value: Value, dtype: str) -> Value:
    """``~``; for what C would promote to a signed type, the distance from the largest value."""
    if not is_signed(dtype) and bits(dtype) < 32:
        return arithmetic("-", int_literal(int(limits(dtype)[1])), value, dtype)
    machine = common_int(value, value, dtype) if is_signed(dtype) else dtype
    text = f"~{operand(as_type(value, machine), Level.UNARY)}"
    top = -1 if is_signed(dtype) else limits(dtype)[1]
    return Value(text, Level.UNARY, machine, top - value.high, top - value.low)


def shift(sign: str, left: Value, right: Value, dtype: str) -> Value:
    """``<<`` or ``>>``, arithmetic for signed types; distances count modulo the width, at least 32."""
    width = max(bits(dtype), 32)
    if right.low < 0 or right.high >= width:
        right = bitwise("&", right, int_literal(width - 1), dtype)
    return (_shift_left if sign == "<<" else _shift_right)(left, right, dtype)


def _shift_left(value: Value, distance: Value, dtype: str) -> Value:
    wide = f"int{max(bits(dtype), 32)}" if is_signed(dtype) else f"uint{max(bits(dtype), 32)}"
    bounds = bounds_of(lambda a, b: int(a) << int(b), value, distance)
    if value.low >= 0 and fits(*bounds, wide):
        machine = "int32" if fits(*bounds, "int32") and distance.high < 32 else wide
        return wrapped(_shifted(value, "<<", distance, machine, bounds), dtype)
    machine = wide if wide.startswith("u") else f"u{wide}"
    return _to_type(_shifted(value, "<<", distance, machine, limits(machine)), dtype)


def _shift_right(value: Value, distance: Value, dtype: str) -> Value:
    machine = "int32" if value.within("int32") and distance.high < 32 else dtype
    bounds = bounds_of(lambda a, b: int(a) >> int(b), value, distance)
    return _shifted(value, ">>", distance, machine, bounds)


def _shifted(value: Value, sign: str, distance: Value, machine: str, bounds: Bounds) -> Value:
    text = f"{operand(as_type(value, machine), Level.UNARY)} {sign} {operand(distance, Level.UNARY)}"
    return Value(text, Level.SHIFT, machine, *bounds)


def extremum(family: str, left: Value, right: Value, dtype: str, helpers: Helpers) -> Value:
    """``min`` or ``max``; the one operand where the bounds decide."""
    pick = min if family == "min" else max
    low, high = pick(left.low, right.low), pick(left.high, right.high)
    for winner, loser in ((left, right), (right, left)):
        if (winner.high <= loser.low) if family == "min" else (winner.low >= loser.high):
            return winner
    machine = common_int(left, right, dtype)
    text = f"{helpers.of(family, machine)}({as_type(left, machine).text}, {as_type(right, machine).text})"
    return Value(text, Level.PRIMARY, machine, low, high)
