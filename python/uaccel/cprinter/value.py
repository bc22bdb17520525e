"""C expressions that know their type and the range of their value.

TIR gives every expression a type, C promotes and converts behind one's back. So every expression that is printed
carries the type that C gives it and the bounds of its value: whoever uses it sees whether a cast is needed, whether
32 bits are enough and whether an operation can overflow. Types go by their TVM names ("int8", "float32", "bool").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from uaccel.ctext import literals
from uaccel.ctext.literals import sized_literal
from uaccel.ctext.types import C_TYPES, FLOATS, bits, c_type, fits, limits

INTEGERS = tuple(dtype for dtype in C_TYPES if dtype not in FLOATS)
PROMOTED = ("bool", "int8", "uint8", "int16", "uint16", "int32")
"""What C turns into int before it computes."""


class Level(IntEnum):
    """How tightly an expression binds, loosest first."""

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
class Value:
    """``low`` and ``high`` bound the value; a float may be NaN unless both are finite.

    ``wrapping`` is the same number modulo 2**bits as an unsigned expression, where it was computed as one.
    """

    text: str
    level: Level
    dtype: str
    low: float
    high: float
    literal: bool = False
    wrapping: Value | None = None

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def within(self, dtype: str) -> bool:
        return fits(self.low, self.high, dtype)


def name_of(text: str, dtype: str, low: float | None = None, high: float | None = None) -> Value:
    """A variable or an array element."""
    bottom, top = limits(dtype)
    return Value(text, Level.PRIMARY, dtype, bottom if low is None else low, top if high is None else high)


def operand(value: Value, loosest: Level) -> str:
    """The text as an operand: in parentheses unless it binds at least as tightly as ``loosest``."""
    return value.text if value.level >= loosest else f"({value.text})"


def cast(value: Value, dtype: str) -> Value:
    """The C cast; the bounds stay those of the value where it fits."""
    low, high = (value.low, value.high) if value.within(dtype) else limits(dtype)
    text = f"({c_type(dtype)}){operand(value, Level.UNARY)}"
    return Value(text, Level.UNARY, dtype, low, high)


def as_type(value: Value, dtype: str) -> Value:
    """The value in C type ``dtype``, with a cast unless it has it or is promoted to it anyway."""
    if value.dtype == dtype or (dtype == "int32" and value.dtype in PROMOTED):
        return value
    if value.wrapping is not None and value.wrapping.dtype == dtype:
        return value.wrapping
    if value.literal and value.within(dtype):
        return typed_literal(int(value.low), dtype)
    return cast(value, dtype)


def common_int(left: Value, right: Value, dtype: str) -> str:
    """The type in which C shall combine two operands of TIR type ``dtype``: int where it holds both."""
    if left.within("int32") and right.within("int32"):
        return "int32"
    return dtype if bits(dtype) >= 32 else "uint32"


def typed_literal(value: int, dtype: str) -> Value:
    """A constant of one of the types that have a suffix: int64, uint32, uint64."""
    return _integer(sized_literal(value, dtype), value, dtype)


def int_literal(value: int) -> Value:
    """A constant, as plain decimal wherever int holds it."""
    dtype = next(dtype for dtype in ("int32", "int64", "uint64") if fits(value, value, dtype))
    return _integer(literals.int_literal(value), value, dtype)


def _integer(text: str, value: int, dtype: str) -> Value:
    return Value(text, _level(text), dtype, value, value, True)


def _level(text: str) -> Level:
    return Level.UNARY if text.startswith(("-", "(")) else Level.PRIMARY


def bool_literal(value: bool) -> Value:
    return Value("true" if value else "false", Level.PRIMARY, "bool", value, value, True)


def float_literal(value: float, dtype: str) -> Value:
    """The shortest decimal that reads back as the same number."""
    number = float(np.dtype(dtype).type(value))
    text = literals.float_literal(number, dtype)
    low, high = limits(dtype) if math.isnan(number) else (number, number)
    return Value(text, _level(text), dtype, low, high, math.isfinite(number))


def retyped(value: Value, low: float, high: float) -> Value:
    """The same text with other bounds."""
    return replace(value, low=low, high=high)
