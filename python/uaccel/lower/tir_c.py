"""The fallback that knows every operator: whatever TVM can legalise becomes a plain C99 function.

TVM's own printer of C is not used: it writes float constants with seven digits, leaves out the conversions that C
needs to compute as TIR does, and keeps intermediate tensors on the stack. This one is exact, warns nowhere, has no
undefined behaviour in its integer arithmetic and reads like C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from uaccel.errors import ModelError
from uaccel.lower.tir_c_expr import one_line
from uaccel.lower.tir_c_function import CFunction, function_of
from uaccel.lower.tir_c_legalise import Place, Step, Steps, operator_name, steps_of
from uaccel.lower.tir_c_reduce import nodes
from uaccel.lower.tir_c_stmt import data_source
from uaccel.model import TensorInfo
from uaccel.tvm_api import TvmRefusalError, buffer_dtype, is_tuple, lower_blocks, relax, tirx, with_plain_buffers

__all__ = ["CFunction", "compile_call", "compile_prim_func"]


def compile_call(call: relax.Call, name: str) -> CFunction:
    """A Relax operator call as a C function called ``name``.

    Its tensors, those in tuples included, become parameters in their order; constants too, although the function
    rarely reads scalar ones, since their values go into the code.
    """
    what = f"{operator_name(call)} of {', '.join(describe(a) for a in tensors(call.args)) or 'nothing'}"
    with reported(what, "replace the operator in the model, or give it to an accelerator"):
        return function_of(steps_of(call), name)


def compile_prim_func(func: tirx.PrimFunc, name: str) -> CFunction:
    """A TIR function as a C function called ``name``.

    The buffers that it stores to are the outputs, the others the inputs. What it calls as ``call_extern`` is called by
    that name; who includes the source declares it.
    """
    with reported(
        f"TIR function {name}",
        "change the function: buffers of fixed shape and C99 types as parameters, no calls into a run time",
    ):
        return function_of(single_step(func), name)


@contextmanager
def reported(what: str, advice: str) -> Iterator[None]:
    """A refusal inside as one line: what could not become C, why, what to do."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{what} has no plain C: {error}; {advice}") from error
    except TvmRefusalError as error:
        reason = one_line(error, 200)
        raise ModelError(f"{what} has no plain C: TVM cannot lower it ({reason}); {advice}") from error


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


def single_step(func: Any) -> Steps:
    """A TIR function as the only step, its parameters sorted into inputs and outputs."""
    written = written_parameters(func)
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    places: list[Place] = []
    for position, parameter in enumerate(func.params):
        side, kind = (outputs, "out") if position in written else (inputs, "in")
        places.append((kind, len(side)))
        side.append(parameter_info(func, parameter))
    return Steps(tuple(inputs), tuple(outputs), (Step(func, tuple(places)),))


def written_parameters(func: Any) -> set[int]:
    """The positions of the parameters that are stored to."""
    flat = lower_blocks(with_plain_buffers(func))
    roots: dict[Any, int] = {parameter: position for position, parameter in enumerate(flat.params)}
    for declaration in nodes(flat.body, tirx.DeclBuffer):
        if data_source(declaration) in roots:
            roots[declaration.buffer] = roots[data_source(declaration)]
    return {roots[store.buffer] for store in nodes(flat.body, tirx.BufferStore) if store.buffer in roots}


def parameter_info(func: Any, parameter: Any) -> TensorInfo:
    """Shape and type of a buffer parameter, or of the buffer that is declared on a pointer parameter."""
    views = [d.buffer for d in nodes(func.body, tirx.DeclBuffer) if data_source(d).same_as(parameter)]
    for buffer in (parameter, *views):
        if isinstance(buffer.ty, tirx.BufferType):
            if not all(isinstance(extent, tirx.IntImm) for extent in buffer.ty.shape):
                raise ModelError(f"the shape of parameter {parameter.name} is only known at run time")
            return TensorInfo(tuple(int(extent) for extent in buffer.ty.shape), buffer_dtype(buffer))
    raise ModelError(f"parameter {parameter.name} is not a buffer")
