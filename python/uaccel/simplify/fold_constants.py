"""Calls whose arguments are all constants are computed now, by their exact meaning, and become constants."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError
from uaccel.ops.base import constant, info_of, operator_of
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_var, main_bindings, rebuild_main, relax
from uaccel.tvm_api.executor import Executor

MOST_BYTES: Final = 1 << 28
MOST_SECONDS: Final = 30.0
"""Each call costs as much as compiling it, some 50 ms, however small it is; a sound model has one a convolution."""
MOST_STEPS: Final = 1 << 42
"""Elements of a result by those of its largest operand, which no operator goes through more often."""


@dataclass(frozen=True)
class FoldConstants:
    """Before: any module. After: no call has constants alone for arguments, but where its result is a tuple."""

    name: str = "fold_constants"

    def __call__(self, module: Any) -> Any:
        return _folded(module, time.process_time() + MOST_SECONDS)


def _folded(module: Any, end: float) -> Any:
    """``end``: of the time that there is, by the processor's clock."""
    while True:
        foldable = {var: expr for var, expr in main_bindings(module)[1] if _is_foldable(var, expr)}
        if not foldable:
            return module
        _check_effort(foldable)

        def fold(var: Any, expr: Any) -> Any:
            if not _is_foldable(var, expr):
                return expr
            if time.process_time() > end:
                raise ModelError(
                    f"what the model computes from constants alone takes more than {MOST_SECONDS:g} s of a processor; "
                    "compute it before you export the model"
                )
            return constant(evaluate(expr))

        module = rebuild_main(module, fold)


def _check_effort(calls: Mapping[Any, Any]) -> None:
    """A file of few bytes may ask for much: memory for the results, and steps to get there."""
    made = 0
    for var, expr in calls.items():
        info = info_of(var)
        made += info.size
        widest = max((_elements(arg) for arg in _arguments(expr)), default=1)
        if made > MOST_BYTES or info.elements * widest > MOST_STEPS:
            raise ModelError(
                f"{var.name} computes {info} from constants alone, which is too much to do while compiling; "
                "compute it before you export the model"
            )


def _elements(arg: Any) -> int:
    return int(math.prod(arg.value.shape)) if is_constant(arg) else 1


def _arguments(expr: Any) -> list[Any]:
    return [entry for arg in expr.args for entry in (arg.fields if is_tuple(arg) else [arg])]


def _is_foldable(var: Any, expr: Any) -> bool:
    """A call on tensors that are all known, with one tensor as its result."""
    if not is_call(expr) or hasattr(var.ty, "fields"):
        return False
    operator = operator_of(expr)
    if operator is not None and not operator.foldable:
        return False
    arguments = _arguments(expr)
    return any(is_constant(arg) for arg in arguments) and not any(is_var(arg) for arg in arguments)


def evaluate(call: Any) -> Any:
    """The value of a call whose arguments are constants."""
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            result = builder.emit_output(relax.Call(call.op, list(call.args), call.attrs, call.ty_args))
        builder.emit_func_output(result)
    return np.asarray(Executor(builder.get()).run([])[0])
