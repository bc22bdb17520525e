"""Reads the JSON of a serialised program, and checks the type and the range of each value before anything uses it.

Functions take a value and ``what``, the words that an error calls it by. They return the value in its Python type, or
raise MisfitError. The conditions on input shapes, which a file states in Python, are parsed here too, not executed.
"""

from __future__ import annotations

import ast
import json
import keyword
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from uaccel.errors import ModelError
from uaccel.model import Shape

# Values of the JSON, each with its check.

T = TypeVar("T")

LARGEST_JSON: Final = 1 << 26  # Bytes; the Python objects that they become take about twenty times as many.
MOST_DIMENSIONS: Final = 16
_STRIDED: Final = 7  # PyTorch's number for the layout of dense tensors.
_INTEGERS: Final = range(-(1 << 63), 1 << 63)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,499}", re.ASCII)
# Symbolic sizes as SymPy prints them: a symbol with its assumptions, and what expressions of symbols consist of.
_SYMBOL: Final = re.compile(r"Symbol\('([a-z]{1,3}[0-9]{1,9})'(?:, [a-z_]{1,20}=(?:True|False))*\)", re.ASCII)
_FLOAT: Final = r"Float\('-?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:e[+-]?[0-9]{1,3})?', precision=[0-9]{1,3}\)"
_FUNCTIONS: Final = (
    *("Add", "And", "CeilDiv", "CeilToInt", "CleanDiv", "Equality", "FloatPow", "FloatTrueDiv", "FloorDiv"),
    *("FloorToInt", "GreaterThan", "Identity", "IntTrueDiv", "Integer", "LessThan", "Max", "Min", "Mod", "Mul"),
    *("Not", "Or", "Piecewise", "Pow", "PowByNatural", "PythonMod", "Rational", "RoundToInt", "StrictGreaterThan"),
    *("StrictLessThan", "ToFloat", "TruncToFloat", "TruncToInt", "Unequality", "Where", "true", "false"),
)
_TOKEN: Final = re.compile(
    rf"{_SYMBOL.pattern}|{_FLOAT}|\b(?:{'|'.join(_FUNCTIONS)})\b|-?[0-9]{{1,19}}\b|[(), ]", re.ASCII
)
_LONGEST_EXPRESSION: Final = 2000


class MisfitError(Exception):
    """Says what makes no sense in the JSON, in words that follow "its"."""


class Expression(str):
    """Holds a size that depends on others. It is never evaluated: operators run on shapes give their results' sizes."""


Extent = int | str  # A number, the name of a symbol, or an Expression.


def need(condition: object, problem: str, kind: Callable[[str], Exception] = MisfitError) -> None:
    if not condition:
        raise kind(problem)


def parsed(content: bytes | memoryview, what: str) -> Any:
    """Parse JSON that all readers understand alike: no key stands twice, and there is no NaN or infinity.

    An integer may have 20 characters, enough for any of 64 bits with its sign. Longer ones are refused before Python
    converts them, which takes a time that grows with the square of their length.
    """
    need(len(content) <= LARGEST_JSON, f"{what} has {len(content)} bytes, more than {LARGEST_JSON}")

    def fail(token: str) -> Any:
        raise MisfitError(f"{what} holds {token}, which is no JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(found := dict(pairs)) == len(pairs), f"{what} says one key twice")
        return found

    def whole(digits: str) -> int:
        return int(digits) if len(digits) <= 20 else fail(f"a number of {len(digits)} digits")

    try:
        return json.loads(bytes(content), object_pairs_hook=unique, parse_constant=fail, parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise MisfitError(f"{what} is no JSON") from error


def fields(value: Any, what: str, *wanted: str) -> list[Any]:
    """The wanted entries of an object, None for a missing one marked by ``?``. Unknown ones must be empty."""
    need(isinstance(value, dict), f"{what} is no object")
    names = [name.rstrip("?") for name in wanted]
    for name in wanted:
        need(name in value or name.endswith("?"), f"{what} has no {name}")
    for name, extra in value.items():
        need(name in names or extra in (None, False, [], {}), f"{what} has the unknown {name[:40]!r}")
    return [value.get(name) for name in names]


def tagged(value: Any, what: str) -> tuple[str, Any]:
    """Tag and content of a union, which JSON has as an object of one entry."""
    need(isinstance(value, dict) and len(value) == 1, f"{what} is no union")
    ((tag, content),) = value.items()
    return str(tag), content


def integer(value: Any, what: str) -> int:
    need(type(value) is int and value in _INTEGERS, f"{what} is no integer of 64 bits")
    return int(value)


def number(value: Any, what: str) -> float:
    """A float. PyTorch writes infinities and NaN, which JSON does not have, as text."""
    if value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    need(type(value) in (int, float), f"{what} is no number")
    return float(value)


def truth(value: Any, what: str) -> bool:
    need(type(value) is bool, f"{what} is neither true nor false")
    return bool(value)


def text(value: Any, what: str) -> str:
    need(isinstance(value, str) and len(value) < 1 << 16, f"{what} is no text")
    return str(value)


def identifier(value: Any, what: str) -> str:
    """The name of a tensor or a node. It must be a name in Python, because PyTorch generates Python code with it."""
    found = text(value, what)
    need(_NAME.fullmatch(found) and not keyword.iskeyword(found), f"{what} {found[:40]!r} is no name")
    return found


def path(value: Any, what: str) -> str:
    """The name of a parameter in its module, such as ``parts.0.weight``."""
    found = text(value, what)
    need(re.fullmatch(r"[\w.\-]{1,500}", found, re.ASCII), f"{what} {found[:40]!r} is no name")
    return found


def items(value: Any, what: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    need(isinstance(value, list), f"{what} is no list")
    return tuple(read(entry, f"{what} {place}") for place, entry in enumerate(value))


def entries(value: Any, what: str, read: Callable[[Any, str], T]) -> dict[str, T]:
    need(isinstance(value, dict), f"{what} is no object")
    return {str(key): read(entry, f"{what} {str(key)[:40]!r}") for key, entry in value.items()}


def extent(value: Any, what: str) -> Extent:
    """A size: an integer, a symbol, or an expression of both."""
    tag, content = tagged(value, what)
    return integer(content, what) if tag == "as_int" else symbolic(tag, content, what)


def symbolic(tag: str, content: Any, what: str) -> str:
    """The name of a symbol, or an Expression, whose text must consist of known tokens."""
    need(tag == "as_expr", f"{what} is {tag[:40]!r}, neither a number nor a symbol")
    said, hint = fields(content, what, "expr_str", "hint?")
    if hint is not None:
        number(tagged(hint, what)[1], f"{what}: hint")
    found = text(said, what)
    symbol = _SYMBOL.fullmatch(found)
    if symbol:
        return symbol.group(1)
    need(len(found) < _LONGEST_EXPRESSION and not _TOKEN.sub("", found), f"{what} {found[:40]!r} is no size")
    return Expression(found)


@dataclass(frozen=True)
class TensorMeta:
    """Holds type and layout of a tensor as the file says them; ``dtype`` is PyTorch's number for the type."""

    dtype: int
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    offset: Extent


def tensor_meta(value: Any, what: str) -> TensorMeta:
    dtype, sizes, _, place, steps, offset, layout = fields(
        value, what, "dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"
    )
    device(place, what)
    need(layout == _STRIDED, f"{what} is no dense tensor")
    fits = isinstance(sizes, list) and len(sizes) <= MOST_DIMENSIONS
    need(fits, f"{what} has more than {MOST_DIMENSIONS} dimensions")
    shape = items(sizes, f"{what}: size", extent)
    strides = items(steps, f"{what}: stride", extent)
    need(len(shape) == len(strides), f"{what} has {len(shape)} sizes and {len(strides)} strides")
    need(all(size >= 0 for size in shape if isinstance(size, int)), f"{what} has a negative size")
    return TensorMeta(integer(dtype, f"{what}: type"), shape, strides, extent(offset, f"{what}: offset"))


def device(value: Any, what: str) -> str:
    kind, _ = fields(value, what, "type", "index?")
    need(kind == "cpu", f"{what} lies on the device {str(kind)[:40]!r}; export on the CPU")
    return "cpu"


# Conditions on the extents of a program's inputs, under which the exported program is valid.
#
# The file states them in Python, and PyTorch executes this text. Here the text is parsed, and its syntax tree is
# evaluated by rules for the few forms that occur; any other form is refused. There is no power and no shift among them,
# so a condition of limited length cannot compute huge numbers.

_LONGEST: Final = 2000  # Characters of a condition.
_OF_TWO: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OF_ONE: Final[dict[type[ast.AST], Callable[[Any], Any]]] = {ast.Not: operator.not_, ast.USub: operator.neg}


def check_conditions(path: Path, conditions: tuple[str, ...], shapes: Mapping[str, Shape]) -> None:
    """Raise ModelError unless all conditions hold for inputs of these shapes."""
    for text in conditions:
        try:
            holds = len(text) < _LONGEST and _value(ast.parse(text, mode="eval").body, shapes)
        except (SyntaxError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
            raise MisfitError(f"condition {text[:80]!r} is not understood") from error
        if holds is not True:
            shown = ", ".join(f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items())
            raise ModelError(f"{path} does not take inputs of {shown}: it was exported for {text[:80]!r}")


def _value(node: ast.expr, shapes: Mapping[str, Shape]) -> Any:
    """Evaluate a syntax tree to a number or a truth value; ValueError for any form without a rule."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OF_TWO:
        return _OF_TWO[type(node.op)](_value(node.left, shapes), _value(node.right, shapes))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OF_ONE:
        return _OF_ONE[type(node.op)](_value(node.operand, shapes))
    if isinstance(node, ast.Compare) and all(type(one) in _OF_TWO for one in node.ops):
        values = [_value(part, shapes) for part in (node.left, *node.comparators)]
        return all(_OF_TWO[type(one)](*pair) for one, *pair in zip(node.ops, values, values[1:], strict=False))
    if isinstance(node, ast.BoolOp):
        parts = [_value(part, shapes) is True for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.Subscript):
        return _extent(node, shapes)
    raise ValueError(ast.dump(node)[:80])


def _extent(node: ast.Subscript, shapes: Mapping[str, Shape]) -> int:
    """The extent that a text such as ``L['x'][0].size()[1]`` means: here of axis 1 of the input ``x_0``."""
    call = node.value
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        raise ValueError("no extent")
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "size":
        raise ValueError("no extent")
    parts: list[str] = []
    place = call.func.value
    while isinstance(place, ast.Subscript):
        parts.insert(0, str(_key(place.slice)))
        place = place.value
    if not isinstance(place, ast.Name) or place.id != "L" or "_".join(parts) not in shapes:
        raise ValueError("no input")
    return shapes["_".join(parts)][int(_key(node.slice))]


def _key(node: ast.expr) -> Any:
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, str):
        raise ValueError("no key")
    return node.value
