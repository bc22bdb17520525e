"""What an operation matches: a pattern of TVM's, or the name of an operator, which stands for any call of it.

``pattern("uaccel.conv2d")`` matches a call; ``pattern("uaccel.add", pattern("uaccel.conv2d"), ANY)`` one whose first
operand is a convolution (with ``| pattern("uaccel.add", ANY, "uaccel.conv2d")`` either operand; only ``relax.add`` and
``relax.multiply`` match either way round by themselves). Names without a dot are uaccel's integer operators. TVM's own
combinators (``is_op``, ``wildcard``, ``|``, ``has_dtype``) work alike.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Final

import uaccel.ops
from uaccel.basics.suggest import did_you_mean
from uaccel.ops.base import NAMESPACE, REGISTRY
from uaccel.tvm_api import (
    CallPattern,
    DFPattern,
    OrPattern,
    operator_names,
    operator_pattern,
    pattern_operator,
    wildcard,
)

for _module in pkgutil.iter_modules(uaccel.ops.__path__):
    importlib.import_module(f"uaccel.ops.{_module.name}")  # each registers its operators

ANY: Final = wildcard()
"""Any operand."""


def pattern(operator: str, *operands: Any) -> Any:
    """A call of ``operator``; without ``operands`` whatever they are, else the first of them as stated."""
    name = full_name(operator)
    try:
        anything = operator_pattern(name)
    except KeyError:
        known = (entry for entry in operator_names() if entry.startswith((NAMESPACE, "relax.")))
        raise ValueError(f"there is no operator '{operator}'{did_you_mean(name, known)}") from None
    if not operands:
        return anything
    for number, operand in enumerate(operands, 1):
        if not isinstance(operand, (str, DFPattern)):
            raise TypeError(f"operand {number} of {name} is {operand!r}, wanted a pattern or an operator's name")
    stated = [pattern(operand) if isinstance(operand, str) else operand for operand in operands]
    rest = [wildcard() for _ in range(max(0, arity(anything) - len(stated)))]
    return CallPattern(anything.op, [*stated, *rest], False)


def full_name(operator: str) -> str:
    """``conv2d`` -> ``uaccel.conv2d``; a name with a dot stays as it is."""
    return operator if "." in operator else NAMESPACE + operator


def arity(call: Any) -> int:
    """How many operands the operator of a call pattern takes."""
    operator = pattern_operator(call)
    known = REGISTRY.get(operator.name)
    return len(known.arguments) if known is not None else int(operator.num_inputs)


def why_never(candidate: Any) -> str | None:
    """Why a pattern cannot match any call, None where it can."""
    if not isinstance(candidate, DFPattern):
        return f"it is {type(candidate).__name__}, wanted a pattern or an operator's name"
    if isinstance(candidate, OrPattern):
        reasons = [why_never(candidate.left), why_never(candidate.right)]
        return None if None in reasons else reasons[0]
    if not isinstance(candidate, CallPattern):
        return "its outermost part is no operator call, so that nothing says which operator is meant"
    return _call_never(candidate)


def _call_never(call: Any) -> str | None:
    operator = pattern_operator(call)
    if operator is None:
        return "what it calls is no operator of a fixed name"
    wanted = arity(call)
    if call.args and wanted >= 0 and len(call.args) != wanted:
        return f"{operator.name} takes {wanted} operands and the pattern has {len(call.args)}"
    reasons = (why_never(argument) for argument in call.args if isinstance(argument, CallPattern | OrPattern))
    return next((reason for reason in reasons if reason is not None), None)


def operators_of(candidate: Any) -> list[str]:
    """The operators that a pattern's outermost call may be."""
    if isinstance(candidate, OrPattern):
        return operators_of(candidate.left) + operators_of(candidate.right)
    operator = pattern_operator(candidate)
    return [operator.name] if operator is not None else []
