"""Defines one operator for a chain of float operators that compute element by element: ``x * clip(x + 3, 0, 6) / 6``.

A chain is text, since attributes are: a step for each operator, of its name in Relax and its arguments. An argument is
the tensor that the chain begins with (``x``), the result of the step before (``_``), or a number in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from uaccel.ops.operator import Attributes, EachAtOnce
from uaccel.tvm_api import tirx

FIRST, BEFORE = "x", "_"
FLOAT: Final = "float32"


def _clip(x: Any, low: Any, high: Any) -> Any:
    return tirx.max(tirx.min(x, high), low)


def _bounded_below(x: Any) -> Any:
    return tirx.max(x, tirx.const(0.0, FLOAT))


def _leaky(x: Any, slope: Any) -> Any:
    return tirx.Select(x > tirx.const(0.0, FLOAT), x, x * slope)


# What an operator computes of an element, as TVM's own lowering does; by its name in Relax. One float operation has one
# rounding, so that a chain gives the bytes of its operators, one after the other.
STEPS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: tirx.div(x, y),
    "maximum": lambda x, y: tirx.max(x, y),
    "minimum": lambda x, y: tirx.min(x, y),
    "clip": _clip,
    "negative": lambda x: -x,
    "abs": lambda x: tirx.abs(x),
    "exp": lambda x: tirx.exp(x),
    "erf": lambda x: tirx.erf(x),
    "sigmoid": lambda x: tirx.sigmoid(x),
    "tanh": lambda x: tirx.tanh(x),
    "sqrt": lambda x: tirx.sqrt(x),
    "nn.relu": _bounded_below,
    "nn.leakyrelu": _leaky,
}


def step(name: str, arguments: Sequence[str | float]) -> str:
    """Returns the text of a step."""
    words = (one if isinstance(one, str) else float(one).hex() for one in arguments)
    return " ".join((name, *words))


class ChainAttrs(Attributes):
    """``steps`` is the text of the steps, joined by semicolons."""

    steps: str


class FloatChain(EachAtOnce[ChainAttrs]):
    """Computes an element through all steps; nothing between them is kept."""

    name = "chain_float"
    arguments = ("input",)
    takes = (FLOAT,)

    def element(self, value: Any, attrs: ChainAttrs, *tables: Any) -> Any:
        result = value
        for words in map(str.split, attrs.steps.split(";")):
            known = {FIRST: value, BEFORE: result}
            given = (known[word] if word in known else _number(word) for word in words[1:])
            result = STEPS[words[0]](*given)
        return result


def _number(word: str) -> Any:
    return tirx.const(float(np.float32(float.fromhex(word))), FLOAT)
