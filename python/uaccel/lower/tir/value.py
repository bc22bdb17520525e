"""Writes integer arithmetic of TIR as C without undefined behaviour, and the helper functions that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from itertools import product

import numpy as np

from uaccel.util import c_text
from uaccel.util.c_text import C_TYPES, FLOATS, bits, c_type, fits, is_signed, limits, sized_literal

# C expressions that know their type and the range of their value.
#
# TIR gives every expression a type, whereas C promotes and converts implicitly. So every printed expression carries the
# type that C gives it and the bounds of its value. They show whether a cast is needed, whether 32 bits are enough and
# whether an operation can overflow. Types have their TVM names ("int8", "float32", "bool").

INTEGERS = tuple(dtype for dtype in C_TYPES if dtype not in FLOATS)
PROMOTED = ("bool", "int8", "uint8", "int16", "uint16", "int32")  # Types that C promotes to int before it computes.


class Level(IntEnum):
    """Ranks expressions by how tightly they bind, loosest first."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    BITS = 4
    COMPARE = 5
    SHIFT = 6
    SUM = 7
    PRODUCT = 8
    UNARY = 9
    PRIMARY = 10


@dataclass(frozen=True)
class CValue:
    """Holds a C expression. ``low`` and ``high`` bound its value; a float may be NaN unless both are finite.

    ``wrapping``: the unsigned expression that was cast to this one. An operation that wraps as well uses it without
    the cast, since both are the same number modulo 2**bits.
    """

    text: str
    level: Level
    dtype: str
    low: float
    high: float
    literal: bool = False
    wrapping: CValue | None = None

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def within(self, dtype: str) -> bool:
        return fits(self.low, self.high, dtype)


def name_of(text: str, dtype: str, low: float | None = None, high: float | None = None) -> CValue:
    """A variable or an array element as a value."""
    bottom, top = limits(dtype)
    return CValue(text, Level.PRIMARY, dtype, bottom if low is None else low, top if high is None else high)


def operand(value: CValue, loosest: Level) -> str:
    """The text as an operand: in parentheses unless it binds at least as tightly as ``loosest``."""
    return value.text if value.level >= loosest else f"({value.text})"


def cast(value: CValue, dtype: str) -> CValue:
    """The C cast; the bounds stay those of the value where it fits."""
    low, high = (value.low, value.high) if value.within(dtype) else limits(dtype)
    text = f"({c_type(dtype)}){operand(value, Level.UNARY)}"
    return CValue(text, Level.UNARY, dtype, low, high)


def as_type(value: CValue, dtype: str) -> CValue:
    """The value in C type ``dtype``, with a cast unless it has it or is promoted to it anyway."""
    if value.dtype == dtype or (dtype == "int32" and value.dtype in PROMOTED):
        return value
    if value.wrapping is not None and value.wrapping.dtype == dtype:
        return value.wrapping
    if value.literal and value.within(dtype):
        return typed_literal(int(value.low), dtype)
    return cast(value, dtype)


def common_int(left: CValue, right: CValue, dtype: str) -> str:
    """The type in which C shall combine two operands of TIR type ``dtype``: int where it holds both."""
    if left.within("int32") and right.within("int32"):
        return "int32"
    return dtype if bits(dtype) >= 32 else "uint32"


def typed_literal(value: int, dtype: str) -> CValue:
    """A constant of one of the types that have a suffix: int64, uint32, uint64."""
    return _integer(sized_literal(value, dtype), value, dtype)


def int_literal(value: int) -> CValue:
    """A constant, as plain decimal wherever int holds it."""
    dtype = next(dtype for dtype in ("int32", "int64", "uint64") if fits(value, value, dtype))
    return _integer(c_text.int_literal(value), value, dtype)


def _integer(text: str, value: int, dtype: str) -> CValue:
    return CValue(text, _level(text), dtype, value, value, True)


def _level(text: str) -> Level:
    return Level.UNARY if text.startswith(("-", "(")) else Level.PRIMARY


def bool_literal(value: bool) -> CValue:
    return CValue("true" if value else "false", Level.PRIMARY, "bool", value, value, True)


def float_literal(value: float, dtype: str) -> CValue:
    """The shortest decimal that reads back as the same number."""
    number = float(np.dtype(dtype).type(value))
    text = c_text.float_literal(number, dtype)
    low, high = limits(dtype) if math.isnan(number) else (number, number)
    return CValue(text, _level(text), dtype, low, high, math.isfinite(number))


def retyped(value: CValue, low: float, high: float) -> CValue:
    """The same text with other bounds."""
    return replace(value, low=low, high=high)


# The small C functions that expressions call where no C operator means the same as TIR's.
#
# Each stands in an include guard, so that functions which were generated apart can share a translation unit.


def min_max(name: str, sign: str, dtype: str) -> str:
    """The minimum or maximum: with NaN the second operand, as in TVM's own code generators."""
    kind = c_type(dtype)
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n    return a {sign} b ? a : b;\n}}\n"


def short(dtype: str) -> str:
    """int8 -> i8, uint32 -> u32, float64 -> f64."""
    return f"{dtype[0]}{bits(dtype)}"


def quotient(name: str, dtype: str, *, floor: bool) -> str:
    """A quotient towards zero or minus infinity, defined for every operand: x / 0 is 0, the minimum / -1 wraps."""
    kind = c_type(dtype)
    guard = "    if (b == 0) {\n        return 0;\n    }\n"
    if dtype.startswith("int"):
        guard += f"    if (b == -1) {{\n        return ({kind})(0 - (u{kind})a);\n    }}\n"
    result = "a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)" if floor else "a / b"
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n{guard}    return {result};\n}}\n"


def remainder(name: str, dtype: str) -> str:
    """The remainder of the quotient towards zero; x % 0 and x % -1 are 0."""
    kind = c_type(dtype)
    condition = "b == 0 || b == -1" if dtype.startswith("int") else "b == 0"
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n    return {condition} ? 0 : a % b;\n}}\n"


def floor_remainder(name: str, dtype: str) -> str:
    """The remainder with the sign of the divisor; x % 0 and x % -1 are 0."""
    kind = c_type(dtype)
    return (
        f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n"
        f"    const {kind} r = b == 0 || b == -1 ? 0 : a % b;\n"
        f"    return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}}\n"
    )


def float_to_int(name: str, source: str, target: str) -> str:
    """A conversion towards zero that saturates, NaN to 0: a plain cast is undefined outside the range of the target.
    The upper limit is compared as maximum + 1, a power of two, since floats cannot hold every maximum exactly."""
    kind, suffix = c_type(target), "f" if source == "float32" else ""
    low, high = limits(target)
    top = f"{float(int(high) + 1)!r}{suffix}"
    bottom = f"{float(low)!r}{suffix}"
    macro = target.upper()
    least = f"{macro}_MIN" if low < 0 else "0"
    return (
        f"static inline {kind} {name}({c_type(source)} x)\n{{\n"
        f"    if (x >= {top}) {{\n        return {macro}_MAX;\n    }}\n"
        f"    if (x <= {bottom}) {{\n        return {least};\n    }}\n"
        f"    return x == x ? ({kind})x : 0;\n}}\n"
    )


def other_reading(name: str, source: str, target: str) -> str:
    """The same bits as a number of another type."""
    return (
        f"static inline {c_type(target)} {name}({c_type(source)} x)\n{{\n"
        f"    union {{\n        {c_type(source)} given;\n        {c_type(target)} read;\n    }} both;\n"
        f"    both.given = x;\n    return both.read;\n}}\n"
    )


_FAMILIES: dict[str, Callable[[str, str], str]] = {
    "min": lambda name, dtype: min_max(name, "<", dtype),
    "max": lambda name, dtype: min_max(name, ">", dtype),
    "div": partial(quotient, floor=False),
    "mod": remainder,
    "floordiv": partial(quotient, floor=True),
    "floormod": floor_remainder,
}


class Helpers:
    """Gives the names of helpers, and remembers which were asked for, to define them in front of the function."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}

    def of(self, family: str, dtype: str) -> str:
        """The name of ``family``'s function of two operands of one type."""
        name = f"uaccel_{family}_{short(dtype)}"
        self._sources.setdefault(name, _FAMILIES[family](name, dtype))
        return name

    def conversion(self, source: str, target: str) -> str:
        """The name of the function that converts floating point to int32, int64 or uint64."""
        name = f"uaccel_{short(source)}_to_{short(target)}"
        self._sources.setdefault(name, float_to_int(name, source, target))
        return name

    def same_bits(self, source: str, target: str) -> str:
        """The name of the function that reads the bits of one type as another, of the same width."""
        name = f"uaccel_{short(source)}_bits_{short(target)}"
        self._sources.setdefault(name, other_reading(name, source, target))
        return name

    def define(self, text: str) -> str:
        """The definitions of the helpers that ``text`` calls, in alphabetical order."""
        guarded = []
        for name, source in sorted(self._sources.items()):
            if f"{name}(" in text:
                guarded.append(f"#ifndef {name.upper()}\n#define {name.upper()}\n{source}#endif\n\n")
        return "".join(guarded)


# Integer arithmetic of TIR as C without undefined behaviour.
#
# TIR computes modulo 2**bits in the type that an expression has. Here an operation runs in int where its bounds show
# that it cannot overflow, in int64 where the type is that and the bounds allow it, and otherwise in unsigned
# arithmetic, which wraps by definition.

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


def bounds_of(function: Callable[[float, float], float], left: CValue, right: CValue) -> Bounds:
    """The bounds over all pairs of ends: right for a function that is monotone in each operand."""
    ends = [function(a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    return min(ends), max(ends)


def join(left: CValue, sign: str, right: CValue, dtype: str, bounds: Bounds) -> CValue:
    """``left sign right`` of C type ``dtype``; equal levels associate to the left."""
    level = _LEVELS[sign]
    text = f"{operand(left, level)} {sign} {operand(right, Level(level + 1))}"
    return CValue(text, level, dtype, *bounds)


def wrapped(value: CValue, dtype: str) -> CValue:
    """``value`` modulo 2**bits of ``dtype``: nothing to do where its bounds fit."""
    return value if value.within(dtype) else cast(value, dtype)


def convert(left: CValue, right: CValue, dtype: str) -> tuple[CValue, CValue]:
    """The operands such that C computes in ``dtype``; if signed, one cast is enough, since C converts the other."""
    if dtype == "int32":
        return as_type(left, dtype), as_type(right, dtype)
    if is_signed(dtype):
        if dtype in (left.dtype, right.dtype):
            return left, right
        return (as_type(left, dtype), right) if not left.literal else (left, as_type(right, dtype))
    return as_type(left, dtype), as_type(right, dtype)


def arithmetic(sign: str, left: CValue, right: CValue, dtype: str) -> CValue:
    """``+``, ``-`` or ``*`` in TIR type ``dtype``."""
    bounds = bounds_of(_EXACT[sign], left, right)
    within_int = all(v.within("int32") for v in (left, right)) and fits(*bounds, "int32")
    if within_int or (dtype == "int64" and fits(*bounds, dtype)):
        machine = "int32" if within_int else dtype
        return wrapped(join(*_infix(left, sign, right, machine), machine, bounds), dtype)
    machine = "uint64" if bits(dtype) == 64 else "uint32"
    bounds = bounds if fits(*bounds, machine) else limits(machine)
    return _to_type(join(*_infix(left, sign, right, machine), machine, bounds), dtype)


def _infix(left: CValue, sign: str, right: CValue, dtype: str) -> tuple[CValue, str, CValue]:
    first, second = convert(left, right, dtype)
    return first, sign, second


def _to_type(value: CValue, dtype: str) -> CValue:
    """The unsigned result cast to ``dtype``, which keeps its low bits."""
    if value.dtype == dtype:
        return value
    return replace(cast(retyped(value, *limits(value.dtype)), dtype), wrapping=value)


def division(kind: str, left: CValue, right: CValue, dtype: str, helpers: Helpers) -> CValue:
    """A division of ``kind`` div or mod (towards zero), floordiv or floormod (towards minus infinity). C's own operator
    is used where the bounds exclude a zero divisor and the minimum by -1, and floor and truncation agree; elsewhere a
    helper."""
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
    return wrapped(CValue(text, Level.PRIMARY, machine, *bounds), dtype)


def _overflows(left: CValue, right: CValue, machine: str) -> bool:
    """Whether the minimum divided by -1 can occur, whose quotient does not fit."""
    return left.low <= limits(machine)[0] < 0 and right.low <= -1 <= right.high


def _division_bounds(kind: str, left: CValue, right: CValue, machine: str) -> Bounds:
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


def bitwise(sign: str, left: CValue, right: CValue, dtype: str) -> CValue:
    """``&``, ``|`` or ``^``; of non-negative operands the result has no more bits than the longer one."""
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
    return CValue(text, Level.BITS, machine, low, high)


def complement(value: CValue, dtype: str) -> CValue:
    """``~``; for small unsigned types, which C promotes to int, the largest value minus this one instead."""
    if not is_signed(dtype) and bits(dtype) < 32:
        return arithmetic("-", int_literal(int(limits(dtype)[1])), value, dtype)
    machine = common_int(value, value, dtype) if is_signed(dtype) else dtype
    text = f"~{operand(as_type(value, machine), Level.UNARY)}"
    top = -1 if is_signed(dtype) else limits(dtype)[1]
    return CValue(text, Level.UNARY, machine, top - value.high, top - value.low)


def shift(sign: str, left: CValue, right: CValue, dtype: str) -> CValue:
    """``<<`` or ``>>``, arithmetic for signed types; distances are taken modulo the width (32 for smaller types)."""
    width = max(bits(dtype), 32)
    if right.low < 0 or right.high >= width:
        right = bitwise("&", right, int_literal(width - 1), dtype)
    return (_shift_left if sign == "<<" else _shift_right)(left, right, dtype)


def _shift_left(value: CValue, distance: CValue, dtype: str) -> CValue:
    wide = f"int{max(bits(dtype), 32)}" if is_signed(dtype) else f"uint{max(bits(dtype), 32)}"
    bounds = bounds_of(lambda a, b: int(a) << int(b), value, distance)
    if value.low >= 0 and fits(*bounds, wide):
        machine = "int32" if fits(*bounds, "int32") and distance.high < 32 else wide
        return wrapped(_shifted(value, "<<", distance, machine, bounds), dtype)
    machine = wide if wide.startswith("u") else f"u{wide}"
    return _to_type(_shifted(value, "<<", distance, machine, limits(machine)), dtype)


def _shift_right(value: CValue, distance: CValue, dtype: str) -> CValue:
    machine = "int32" if value.within("int32") and distance.high < 32 else dtype
    bounds = bounds_of(lambda a, b: int(a) >> int(b), value, distance)
    return _shifted(value, ">>", distance, machine, bounds)


def _shifted(value: CValue, sign: str, distance: CValue, machine: str, bounds: Bounds) -> CValue:
    text = f"{operand(as_type(value, machine), Level.UNARY)} {sign} {operand(distance, Level.UNARY)}"
    return CValue(text, Level.SHIFT, machine, *bounds)


def extremum(family: str, left: CValue, right: CValue, dtype: str, helpers: Helpers) -> CValue:
    """``min`` or ``max``; one operand alone where the bounds decide."""
    pick = min if family == "min" else max
    low, high = pick(left.low, right.low), pick(left.high, right.high)
    for winner, loser in ((left, right), (right, left)):
        if (winner.high <= loser.low) if family == "min" else (winner.low >= loser.high):
            return winner
    machine = common_int(left, right, dtype)
    text = f"{helpers.of(family, machine)}({as_type(left, machine).text}, {as_type(right, machine).text})"
    return CValue(text, Level.PRIMARY, machine, low, high)
