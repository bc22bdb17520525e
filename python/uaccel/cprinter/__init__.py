"""The fallback that knows every operator: whatever TVM can legalise becomes a plain C99 function.

TVM's own printer of C is not used: it writes float constants with seven digits, leaves out the conversions that C
needs to compute as TIR does, and keeps intermediate tensors on the stack. This one is exact, warns nowhere, has no
undefined behaviour in its integer arithmetic and reads like C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from uaccel.cprinter.expression import one_line
from uaccel.cprinter.function import CFunction, function_of
from uaccel.cprinter.legalise import operator_name, steps_of
from uaccel.errors import ModelError
from uaccel.tvm_api import is_tuple, relax, tirx
from uaccel.tvm_api.refusals import TvmRefusalError

__all__ = ["CFunction", "compile_call"]


def compile_call(call: relax.Call, name: str) -> CFunction:
    """A Relax operator call as a C function called ``name``.

    Its tensors, those in tuples included, become parameters in their order; constants too, although the function
    rarely reads scalar ones, since their values go into the code.
    """
    what = f"{operator_name(call)} of {', '.join(describe(a) for a in tensors(call.args)) or 'nothing'}"
    with reported(what, "replace the operator in the model, or give it to an accelerator"):
        return function_of(steps_of(call), name)


@contextmanager
def reported(what: str, advice: str) -> Iterator[None]:
    """A refusal inside as one line: what could not become C, why, what to do."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{what} has no plain C: {error}; {advice}") from error
    except TvmRefusalError as error:
        reason = one_line(error, 200)
        raise ModelError(f"{what} has no plain C: {reason}; {advice}") from error


def tensors(arguments: Iterable[Any]) -> Iterator[Any]:
    """The arguments that are data, tuples flattened."""
    for argument in arguments:
        if is_tuple(argument):
            yield from tensors(argument.fields)
        elif isinstance(getattr(argument, "ty", None), (relax.TensorType, relax.TupleType)):
            yield argument


def describe(tensor: Any) -> str:
    """Type and shape of a tensor, whatever it is."""
    kind = getattr(tensor, "ty", None)
    if not isinstance(kind, relax.TensorType):
        return one_line(tensor)
    shape = (
        "?"
        if kind.shape is None
        else ",".join(str(int(e)) if isinstance(e, tirx.IntImm) else str(e) for e in kind.shape)
    )
    return f"{kind.dtype.dtype if kind.dtype is not None else 'unknown type'} [{shape}]"
