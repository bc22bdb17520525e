"""Defines control flow: IF runs one of two functions, WHILE one as long as another holds.

The functions are modules of Relax, which attributes cannot hold: they name them by their digests.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError
from uaccel.model import Array, TensorInfo
from uaccel.ops import exact
from uaccel.ops.operator import Attributes, IntegerOperator, require, type_info
from uaccel.tvm_api.executor import Executor, calling, digest_of

MOST_TURNS: Final = 1 << 20  # A loop that is computed here is given up after so many turns: it may never end.


# ``IF`` takes a condition and the arguments of both functions; ``WHILE`` takes the arguments of condition and body,
# which the body returns for the next turn.
IF, WHILE = "if", "while"
PARTS: Final[Mapping[str, tuple[str, str]]] = {IF: ("then", "otherwise"), WHILE: ("condition", "body")}


class ControlAttrs(Attributes):
    """``parts`` is the key of the two functions, whose roles ``PARTS`` names."""

    kind: str
    parts: str


_parts: Final[dict[str, tuple[Any, Any]]] = {}  # All functions that this process has met, by their digests.


def control_attrs(kind: str, first: Any, second: Any) -> ControlAttrs:
    """Attributes for two modules, whose ``main`` is the function each; they are kept by their digests."""
    key = f"{digest_of(first)}_{digest_of(second)}"
    _parts[key] = (first, second)
    return ControlAttrs(kind, key)


def parts_of(attrs: ControlAttrs) -> tuple[Any, Any]:
    """The two modules."""
    return _parts[attrs.parts]


def signature_of(module: Any) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    """The parameters and the results of a part."""
    function = module["main"]
    result = function.ret_ty
    results = getattr(result, "fields", [result])
    return tuple(type_info(p.ty) for p in function.params), tuple(map(type_info, results))


def _is_bool(infos: Sequence[TensorInfo]) -> bool:
    return len(infos) == 1 and infos[0].dtype == "bool" and infos[0].elements == 1


class Control(IntegerOperator[ControlAttrs]):
    """Runs functions; its C calls the layers of these functions (``lower/from_relax.py``)."""

    arguments = ("tensors",)
    variadic = True
    foldable = False  # a loop may never end

    def infer(self, attrs: ControlAttrs, *inputs: TensorInfo) -> TensorInfo | tuple[TensorInfo, ...]:
        (taken, given), (also, others) = map(signature_of, parts_of(attrs))
        names = PARTS[attrs.kind]
        if attrs.kind == IF:
            require(_is_bool(inputs[:1]), f"its condition is {_told(inputs[:1])}, wanted one bool")
            require(given == others, f"{names[0]} gives {_told(given)} and {names[1]} gives {_told(others)}")
            inputs = inputs[1:]
        else:
            require(_is_bool(given), f"its condition gives {_told(given)}, wanted one bool")
            require(others == tuple(inputs), f"its body gives {_told(others)} of {_told(inputs)}")
        for name, wanted in zip(names, (taken, also), strict=True):
            require(tuple(inputs) == wanted, f"its {name} takes {_told(wanted)}, given are {_told(inputs)}")
        return others[0] if len(others) == 1 else others

    def meaning(self, attrs: ControlAttrs, *inputs: Any) -> Any:
        results = self.infer(attrs, *(exact.info(tensor) for tensor in inputs))
        outputs = [results] if isinstance(results, TensorInfo) else list(results)
        key = f"{attrs.kind}.{attrs.parts}"
        made = calling(functools.partial(_computed, attrs), key, list(inputs), [(o.shape, o.dtype) for o in outputs])
        return made[0] if isinstance(results, TensorInfo) else made


def _told(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(map(str, infos)) or "nothing"


class If(Control):
    """Gives the results of one of two functions."""

    name = "if"


class While(Control):
    """Gives the values that the body has made of the inputs when the condition no longer holds."""

    name = "while"


@functools.lru_cache(maxsize=16)
def _executors(attrs: ControlAttrs) -> tuple[Executor, Executor]:
    first, second = parts_of(attrs)
    return Executor(first), Executor(second)


def _computed(attrs: ControlAttrs, values: Sequence[Array]) -> Sequence[Array]:
    first, second = _executors(attrs)
    if attrs.kind == IF:
        return (first if bool(np.ravel(values[0])[0]) else second).run(values[1:])
    for _ in range(MOST_TURNS):
        if not bool(np.ravel(first.run(values)[0])[0]):
            return values
        values = second.run(values)
    raise ModelError(f"a loop turns more than {MOST_TURNS:,} times; nobody can tell whether it ends")
