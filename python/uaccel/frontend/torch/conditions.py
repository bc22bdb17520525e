"""The conditions under which a program is what it is: comparisons of the extents of its inputs.

The file says them in Python, and PyTorch has Python run them. Here they are read, by rules for the few forms that there
are.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.torch.serialised import MisfitError
from uaccel.model import Shape

_LONGEST: Final = 2000
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
    """That all of them hold for inputs of these shapes."""
    for text in conditions:
        try:
            holds = len(text) < _LONGEST and _value(ast.parse(text, mode="eval").body, shapes)
        except (SyntaxError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
            raise MisfitError(f"condition {text[:80]!r} is not understood") from error
        if holds is not True:
            shown = ", ".join(f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items())
            raise ModelError(f"{path} does not take inputs of {shown}: it was exported for {text[:80]!r}")


def _value(node: ast.expr, shapes: Mapping[str, Shape]) -> Any:
    """A number or a truth; ValueError for any other form."""
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
    """``L['x'][0].size()[1]``: of the input ``x_0``."""
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
