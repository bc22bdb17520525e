"""Writes expressions of TIR as C, and names as C identifiers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.lower.tir import value as printed
from uaccel.lower.tir.value import CValue, Level, cast, operand
from uaccel.tvm_api import tirx
from uaccel.tvm_api.tir import Call, TensorLoad, dtype_of, lower_intrinsic
from uaccel.util.c_text import FLOATS, bits, c_type, fits, limits
from uaccel.util.text import is_reserved

# Functions whose bounds are those of their argument's ends.
MONOTONE: dict[str, Callable[[float], float]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round, "nearbyint": round, "rint": round,
}  # fmt: skip
# Intrinsics for which TVM has no rule that leads to C, and their function in math.h.
LIBRARY = {"tirx.fabs": "fabs", "tirx.fmod": "fmod"}

_CALL = re.compile(r"(?:\(\w+\))?[a-z]\w*\(.*\)$")
RUN_TIME_ONLY = "it calls into a run time that plain C does not have"


@dataclass(frozen=True)
class Storage:
    """Holds where a buffer lies: an array, or one variable; ``low`` and ``high`` if tighter than the type's bounds."""

    name: str
    dtype: str
    scalar: bool = False
    low: float | None = None
    high: float | None = None

    def at(self, index: str) -> CValue:
        text = self.name if self.scalar else f"{self.name}[{index}]"
        return printed.name_of(text, self.dtype, self.low, self.high)


@dataclass
class Scope:
    """Holds what the names in a piece of TIR stand for."""

    variables: dict[Any, CValue] = field(default_factory=dict)
    storage: dict[Any, Storage] = field(default_factory=dict)
    helpers: printed.Helpers = field(default_factory=printed.Helpers)


class ExpressionPrinter:
    """Writes TIR expressions: ``printer(node)`` is the C expression of a node."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        # Calls of functions, and casts of such, that read no array: they may be computed ahead of a statement.
        self.calls: dict[str, CValue] = {}

    def __call__(self, node: Any) -> CValue:
        method = _PRINTERS.get(type(node))
        if method is None:
            raise ModelError(f"no C for a {type(node).__name__} expression of the intermediate code: {one_line(node)}")
        value = settled(method(self, node))
        if value.level >= Level.UNARY and _CALL.match(value.text) and "[" not in value.text:
            self.calls[value.text] = value
        return value

    def element(self, buffer: Any, indices: Any) -> CValue:
        """The element of a flattened buffer, as an lvalue."""
        storage = self.scope.storage.get(buffer)
        if storage is None or len(indices) != 1:
            raise ModelError(f"no C for an access to buffer {buffer.name}: it is not flat, or no parameter holds it")
        return storage.at(self(indices[0]).text)

    def variable(self, node: Any) -> CValue:
        need(node in self.scope.variables, f"{node.name} is only known at run time")
        return self.scope.variables[node]

    def load(self, node: Any) -> CValue:
        return self.element(node.source, node.indices)

    def integer_constant(self, node: Any) -> CValue:
        return (
            printed.bool_literal(bool(node.value)) if dtype_of(node) == "bool" else printed.int_literal(int(node.value))
        )

    def float_constant(self, node: Any) -> CValue:
        return printed.float_literal(float(node.value), supported(dtype_of(node)))

    def let(self, node: Any) -> CValue:
        self.scope.variables[node.var] = self(node.value)
        return self(node.body)

    def binary(self, node: Any) -> CValue:
        """Arithmetic, bit operations, shifts, minimum and maximum."""
        dtype = supported(dtype_of(node))
        left, right = self(node.a), self(node.b)
        name = type(node).__name__
        if dtype in FLOATS:
            return float_binary(name, left, right, dtype, self.scope.helpers)
        if name in _ARITHMETIC:
            return printed.arithmetic(_ARITHMETIC[name], left, right, dtype)
        if name in _DIVISIONS:
            return printed.division(_DIVISIONS[name], left, right, dtype, self.scope.helpers)
        return printed.extremum(name.lower(), left, right, dtype, self.scope.helpers)

    def comparison(self, node: Any) -> CValue:
        left, right = self(node.a), self(node.b)
        if not left.is_float:
            machine = printed.common_int(left, right, supported(dtype_of(node.a)))
            left, right = printed.as_type(left, machine), printed.as_type(right, machine)
        sign = _COMPARISONS[type(node).__name__]
        known = decided(sign, left, right)
        if known is not None:
            return printed.bool_literal(known)
        text = f"{operand(left, Level.SHIFT)} {sign} {operand(right, Level.SHIFT)}"
        return CValue(text, Level.COMPARE, "bool", 0, 1)

    def conjunction(self, node: Any) -> CValue:
        """``&&`` and ``||``; one within the other is put in parentheses."""
        sign, level = ("&&", Level.AND) if isinstance(node, tirx.And) else ("||", Level.OR)
        parts = [self(node.a), self(node.b)]
        absorbing = sign == "||"
        for part, other in (parts, parts[::-1]):
            if part.literal:
                return part if bool(part.low) == absorbing else other
        texts = [p.text if p.level == level else operand(p, Level.COMPARE) for p in parts]
        return CValue(f" {sign} ".join(texts), level, "bool", 0, 1)

    def negation(self, node: Any) -> CValue:
        value = self(node.a)
        if value.literal:
            return printed.bool_literal(not value.low)
        return CValue(f"!{operand(value, Level.UNARY)}", Level.UNARY, "bool", 0, 1)

    def choice(self, condition: Any, chosen: Any, otherwise: Any, dtype: str) -> CValue:
        test, first, second = self(condition), self(chosen), self(otherwise)
        if test.literal:
            return first if test.low else second
        if dtype not in FLOATS and dtype != "bool":
            machine = printed.common_int(first, second, dtype)
            first, second = printed.as_type(first, machine), printed.as_type(second, machine)
            dtype = machine
        texts = [operand(v, Level.COMPARE) for v in (test, first, second)]
        low, high = min(first.low, second.low), max(first.high, second.high)
        return CValue(f"{texts[0]} ? {texts[1]} : {texts[2]}", Level.CONDITIONAL, dtype, low, high)

    def select(self, node: Any) -> CValue:
        return self.choice(node.condition, node.true_value, node.false_value, supported(dtype_of(node)))

    def if_then_else(self, node: Any) -> CValue:
        condition, chosen, otherwise = node.args
        return self.choice(condition, chosen, otherwise, supported(dtype_of(node)))

    def conversion(self, node: Any) -> CValue:
        dtype, value = supported(dtype_of(node)), self(node.value)
        if dtype == "bool":
            return self._truth(value)
        if dtype in FLOATS:
            return to_float(value, dtype)
        if value.is_float:
            return self._truncation(value, dtype)
        return value if value.within(dtype) else cast(value, dtype)

    def _truth(self, value: CValue) -> CValue:
        if value.dtype == "bool":
            return value
        zero = "0" if not value.is_float else printed.float_literal(0, value.dtype).text
        return CValue(f"{operand(value, Level.SHIFT)} != {zero}", Level.COMPARE, "bool", 0, 1)

    def _truncation(self, value: CValue, dtype: str) -> CValue:
        """Floating point to integer: a plain cast where the bounds allow it, saturating otherwise.

        The narrow types go through int32 and keep the low bits, which is what processors do.
        """
        if math.isfinite(value.low) and math.isfinite(value.high):
            low, high = math.trunc(value.low), math.trunc(value.high)
            target = "int32" if fits(low, high, "int32") and fits(low, high, dtype) and bits(dtype) > 32 else dtype
            if fits(low, high, target):
                return printed.retyped(cast(printed.retyped(value, *limits(value.dtype)), target), low, high)
        wide = {"uint32": "int64", "int64": "int64", "uint64": "uint64"}.get(dtype, "int32")
        text = f"{self.scope.helpers.conversion(value.dtype, wide)}({value.text})"
        whole = CValue(text, Level.PRIMARY, wide, *limits(wide))
        return whole if wide == dtype else cast(whole, dtype)

    def call(self, node: Any) -> CValue:
        name = getattr(node.op, "name", "")
        special = _CALLS.get(name)
        if special is not None:
            return special(self, node)
        if name in LIBRARY:
            return self.library(LIBRARY[name], node.args, dtype_of(node))
        lowered = lower_intrinsic(node)
        if lowered is None:
            raise ModelError(f"{RUN_TIME_ONLY} ({plain(name).removeprefix('tvm_')})")
        return self(lowered)

    def library(self, function: str, arguments: Any, dtype: str) -> CValue:
        """A function of math.h, in its variant for the type."""
        values = [self(a) for a in arguments]
        name = function + ("f" if supported(dtype) == "float32" else "")
        return library_call(name, function, values, dtype)

    def extern(self, node: Any) -> CValue:
        """A C function by name; what TVM lowers intrinsics of mathematics to arrives here too."""
        name, dtype = plain(node.args[0].value), dtype_of(node)
        base = name[:-1] if dtype == "float32" else name
        values = [self(argument) for argument in node.args[1:]]
        return library_call(name, base, values, dtype)

    def bits(self, node: Any) -> CValue:
        """Shifts and bit operations that arrive as calls or nodes."""
        name, dtype = type(node).__name__, supported(dtype_of(node))
        if isinstance(node, tirx.BitwiseNot):
            return printed.complement(self(node.a), dtype)
        left, right = self(node.a), self(node.b)
        if name in _SHIFTS:
            return printed.shift(_SHIFTS[name], left, right, dtype)
        return printed.bitwise(_BITS[name], left, right, dtype)

    def same_bits(self, node: Any) -> CValue:
        value, dtype = self(node.args[0]), supported(dtype_of(node))
        if not (value.is_float or dtype in FLOATS):
            return cast(value, dtype)
        text = f"{self.scope.helpers.same_bits(value.dtype, dtype)}({value.text})"
        return CValue(text, Level.PRIMARY, dtype, *limits(dtype))

    def not_a_number(self, node: Any) -> CValue:
        value = operand(self(node.args[0]), Level.SHIFT)
        return CValue(f"{value} != {value}", Level.COMPARE, "bool", 0, 1)


_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*"}
_DIVISIONS = {"Div": "div", "Mod": "mod", "FloorDiv": "floordiv", "FloorMod": "floormod"}
_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_BITS = {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^"}
_SHIFTS = {"LShift": "<<", "RShift": ">>"}
_BINARY = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)

_PRINTERS: dict[type, Callable[[ExpressionPrinter, Any], CValue]] = {
    tirx.Var: ExpressionPrinter.variable,
    tirx.IntImm: ExpressionPrinter.integer_constant,
    tirx.FloatImm: ExpressionPrinter.float_constant,
    tirx.Let: ExpressionPrinter.let,
    tirx.Cast: ExpressionPrinter.conversion,
    tirx.Select: ExpressionPrinter.select,
    tirx.Not: ExpressionPrinter.negation,
    tirx.And: ExpressionPrinter.conjunction,
    tirx.Or: ExpressionPrinter.conjunction,
    TensorLoad: ExpressionPrinter.load,
    Call: ExpressionPrinter.call,
    **dict.fromkeys(_BINARY, ExpressionPrinter.binary),
    **dict.fromkeys((tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE), ExpressionPrinter.comparison),
    **dict.fromkeys((tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.BitwiseNot), ExpressionPrinter.bits),
    **dict.fromkeys((tirx.LShift, tirx.RShift), ExpressionPrinter.bits),
}

_CALLS: dict[str, Callable[[ExpressionPrinter, Any], CValue]] = {
    "prim.if_then_else": ExpressionPrinter.if_then_else,
    "prim.likely": lambda printer, node: printer(node.args[0]),
    "tirx.call_pure_extern": ExpressionPrinter.extern,
    "tirx.reinterpret": ExpressionPrinter.same_bits,
    "tirx.isnan": ExpressionPrinter.not_a_number,
}


def supported(dtype: str) -> str:
    """``dtype``, if C99 has it."""
    c_type(dtype)
    return dtype


def plain(name: str) -> str:
    """An operator's name without its dialect."""
    return name.rsplit(".", 1)[-1]


def one_line(node: Any, limit: int = 80) -> str:
    text = " ".join(str(node).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def settled(value: CValue) -> CValue:
    """The constant where the bounds leave one integer."""
    if value.literal or value.low != value.high or value.dtype not in printed.INTEGERS:
        return value
    return printed.bool_literal(bool(value.low)) if value.dtype == "bool" else printed.int_literal(int(value.low))


def decided(sign: str, left: CValue, right: CValue) -> bool | None:
    """The comparison's result where the bounds of integers fix it."""
    if left.is_float or right.is_float:
        return None
    if left.text == right.text:
        return sign in ("==", "<=", ">=")
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    if sign in ("==", "!="):
        apart = left.high < right.low or right.high < left.low
        return (sign == "!=") if apart else None
    if (left.high < right.low) or (sign == "<=" and left.high <= right.low):
        return True
    if (left.low > right.high) or (sign == "<" and left.low >= right.high):
        return False
    return None


def to_float(value: CValue, dtype: str) -> CValue:
    if value.dtype == dtype:
        return value
    if value.literal:
        return printed.float_literal(value.low, dtype)
    number = np.dtype(dtype).type
    low, high = float(number(value.low)), float(number(value.high))
    return CValue(f"({c_type(dtype)}){operand(value, Level.UNARY)}", Level.UNARY, dtype, low, high)


def float_binary(name: str, left: CValue, right: CValue, dtype: str, helpers: printed.Helpers) -> CValue:
    sign = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}.get(name)
    if sign is not None:
        return _float_join(sign, left, right, dtype)
    if name in ("Min", "Max"):
        text = f"{helpers.of(name.lower(), dtype)}({left.text}, {right.text})"
        return CValue(text, Level.PRIMARY, dtype, *_extremum_bounds(name, left, right))
    suffix = "f" if dtype == "float32" else ""
    unbounded = limits(dtype)
    if name == "Mod":
        return CValue(f"fmod{suffix}({left.text}, {right.text})", Level.PRIMARY, dtype, *unbounded)
    quotient = _float_join("/", left, right, dtype)
    floored = CValue(f"floor{suffix}({quotient.text})", Level.PRIMARY, dtype, *unbounded)
    return floored if name == "FloorDiv" else _float_join("-", left, _float_join("*", floored, right, dtype), dtype)


def _float_join(sign: str, left: CValue, right: CValue, dtype: str) -> CValue:
    finite = all(math.isfinite(end) for v in (left, right) for end in (v.low, v.high))
    bounds = limits(dtype)
    if finite and (sign != "/" or right.low > 0 or right.high < 0):
        exact: dict[str, Callable[[float, float], float]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a / b,
        }
        bounds = _rounded_outwards(printed.bounds_of(exact[sign], left, right), dtype)
    return printed.join(left, sign, right, dtype, bounds)


def _rounded_outwards(bounds: tuple[float, float], dtype: str) -> tuple[float, float]:
    """The bounds one step of ``dtype`` wider on each side, which is more than rounding can add."""
    number = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        low = np.nextafter(number(bounds[0]), number(-np.inf))
        high = np.nextafter(number(bounds[1]), number(np.inf))
    return float(low), float(high)


def _extremum_bounds(name: str, left: CValue, right: CValue) -> tuple[float, float]:
    """The bounds of min or max: NaN on the left yields the right operand, and NaN on the right yields NaN."""
    if not (math.isfinite(right.low) and math.isfinite(right.high)):
        return -math.inf, math.inf
    pick = min if name == "Min" else max
    low, high = pick(left.low, right.low), pick(left.high, right.high)
    return low, high


def library_call(name: str, base: str, arguments: list[CValue], dtype: str) -> CValue:
    """A call of a C function; ``base``, its name without the suffix of its type, gives the bounds of its result."""
    bounds = limits(supported(dtype))
    first = arguments[0] if arguments else None
    if base in MONOTONE and first is not None and math.isfinite(first.low) and math.isfinite(first.high):
        bounds = MONOTONE[base](first.low), MONOTONE[base](first.high)
    return CValue(f"{name}({', '.join(a.text for a in arguments)})", Level.PRIMARY, dtype, *bounds)


# C names for what TIR names, unique within the block where they hold.

_LIBRARY = """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp2 fabs floor fmod hypot ldexp log
log10 log1p log2 nearbyint nextafter pow rint round sin sinh sqrt tan tanh trunc"""
LIBRARY_FUNCTIONS = frozenset(name + suffix for name in _LIBRARY.split() for suffix in ("", "f"))


def identifier(name: str) -> str:
    """``name`` as a C identifier, without traces of the tool that made it."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    cleaned = re.sub("tvm", "ir", cleaned, flags=re.IGNORECASE)
    cleaned = re.sub(r"^cse_v(\d+)", r"common\1", cleaned)
    cleaned = re.sub(r"^T_", "", cleaned) or "value"
    return f"v{cleaned}" if cleaned[0].isdigit() else cleaned


class Names:
    """Gives unique names; those of a block are free again after it."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._scopes: list[set[str]] = [set(taken | LIBRARY_FUNCTIONS)]

    def fresh(self, wanted: str) -> str:
        base = identifier(wanted)
        name, count = base, 1
        while is_reserved(name) or any(name in scope for scope in self._scopes):
            count += 1
            name = f"{base}_{count}"
        self._scopes[-1].add(name)
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        self._scopes.append(set())
        yield
        self._scopes.pop()
