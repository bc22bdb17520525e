"""An operator call as steps: TIR functions over the call's tensors, intermediate tensors and constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from uaccel.cprinter.expression import RUN_TIME_ONLY, one_line
from uaccel.ctext.types import c_type
from uaccel.errors import ModelError
from uaccel.model import TensorInfo
from uaccel.tvm_api import (
    Op,
    is_call,
    is_constant,
    is_tuple,
    is_tuple_get_item,
    is_var,
    main_bindings,
    main_result,
    relax,
    tirx,
)
from uaccel.tvm_api.tir import copying_function, legalise

Place = tuple[str, int]
"""Which tensor: ("in", i), ("out", i), ("temporary", i) or ("constant", i)."""


@dataclass(frozen=True)
class Step:
    """``places`` stand for the parameters of ``func``."""

    func: Any
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Steps:
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[Step, ...]
    temporaries: tuple[TensorInfo, ...] = ()
    constants: tuple[Any, ...] = ()


def operator_name(call: Any) -> str:
    return str(call.op.name) if isinstance(call.op, Op) else one_line(call.op)


def tensor_info(kind: Any) -> TensorInfo:
    """A tensor type as plain data, if its shape is static and C has its element type."""
    if not isinstance(kind, relax.TensorType):
        raise ModelError("it computes something that is no tensor")
    shape = kind.shape
    if shape is None or not all(isinstance(extent, tirx.IntImm) for extent in shape):
        raise ModelError(f"the shape of {one_line(kind)} is only known at run time")
    dtype = str(kind.dtype.dtype)
    c_type(dtype)
    return TensorInfo(tuple(int(extent) for extent in shape), dtype)


def tensor_infos(kind: Any) -> list[TensorInfo]:
    """The tensors of a type, tuples flattened."""
    if isinstance(kind, relax.TupleType):
        return [info for part in kind.fields for info in tensor_infos(part)]
    return [tensor_info(kind)]


class Arguments:
    """A call's arguments with fresh variables for its tensors; constants stay, so that TVM can specialise."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.infos: list[TensorInfo] = []
        self.variables: list[Any] = []
        self.places: dict[Any, Place] = {}
        self.replaced = [self._replace(argument) for argument in arguments]

    def _replace(self, argument: Any) -> Any:
        if is_tuple(argument):
            return relax.Tuple([self._replace(part) for part in argument.fields])
        if is_var(argument) and isinstance(argument.ty, relax.TupleType):
            return relax.Tuple([self._tensor(part) for part in argument.ty.fields])
        if is_constant(argument):
            self.infos.append(tensor_info(argument.ty))
            self.places.setdefault(argument, ("in", len(self.infos) - 1))
            return argument
        return (
            self._tensor(argument.ty) if is_var(argument) and not isinstance(argument.ty, relax.ShapeType) else argument
        )

    def _tensor(self, kind: Any) -> Any:
        info = tensor_info(kind)
        variable = relax.Var(f"in{len(self.infos)}", relax.TensorType(info.shape, info.dtype))
        self.places[variable] = ("in", len(self.infos))
        self.infos.append(info)
        self.variables.append(variable)
        return variable


@dataclass
class Reader:
    """Reads the bindings of a legalised function; tensors are named by places, tuples are lists of them."""

    module: Any
    known: dict[Any, Any]
    steps: list[Step] = field(default_factory=list)
    temporaries: list[TensorInfo] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def read(self) -> Any:
        for variable, expression in main_bindings(self.module)[1]:
            self.known[variable] = self.value(expression)
        return self.value(main_result(self.module))

    def value(self, expression: Any) -> Any:
        if is_tuple(expression):
            return [self.value(part) for part in expression.fields]
        if is_tuple_get_item(expression):
            return self.value(expression.tuple_value)[expression.index]
        if expression in self.known:
            return self.known[expression]
        if is_constant(expression):
            self.constants.append(expression.value.numpy())
            return ("constant", len(self.constants) - 1)
        return self.call(expression)

    def call(self, expression: Any) -> Any:
        if not is_call(expression) or operator_name(expression) != "relax.call_tir" or len(expression.args) != 2:
            raise ModelError(RUN_TIME_ONLY)
        sources = [self.value(argument) for argument in expression.args[1].fields]
        kinds = expression.ty_args[0]
        results = []
        for info in tensor_infos(kinds):
            self.temporaries.append(info)
            results.append(("temporary", len(self.temporaries) - 1))
        self.steps.append(Step(self.module[expression.args[0]], (*sources, *results)))
        return results if isinstance(kinds, relax.TupleType) else results[0]


def flattened(result: Any) -> Iterator[Place]:
    if isinstance(result, list):
        for part in result:
            yield from flattened(part)
    else:
        yield result


def within_bounds(call: Any) -> Any:
    """The call, where it gathers elements with indices taken to the nearest valid one rather than trusted."""
    if operator_name(call) != "relax.take" or call.attrs.mode != "fast":
        return call
    return relax.op.take(*call.args, axis=call.attrs.axis, mode="clip")


def steps_of(call: Any) -> Steps:
    """The TIR functions that compute an operator call."""
    call = within_bounds(call)
    arguments = Arguments(call.args)
    module = legalise(relax.Call(call.op, arguments.replaced, call.attrs, call.ty_args), arguments.variables)
    parameters = dict(zip(main_bindings(module)[0], arguments.variables, strict=True))
    known = dict(arguments.places) | {new: arguments.places[old] for new, old in parameters.items()}
    reader = Reader(module, known)
    outputs = list(flattened(reader.read()))
    infos = tensor_infos(module["main"].ret_ty)
    return with_outputs(reader, tuple(arguments.infos), tuple(infos), outputs)


def with_outputs(
    reader: Reader, inputs: tuple[TensorInfo, ...], infos: tuple[TensorInfo, ...], outputs: Sequence[Place]
) -> Steps:
    """Temporaries that are outputs become outputs; what is an output twice, or is an input, is copied."""
    renamed: dict[Place, Place] = {}
    copies = []
    for index, (place, info) in enumerate(zip(outputs, infos, strict=True)):
        if place[0] == "temporary" and place not in renamed:
            renamed[place] = ("out", index)
        else:
            copies.append(Step(copying_function(info.shape, info.dtype), (renamed.get(place, place), ("out", index))))
    steps = [Step(step.func, tuple(renamed.get(place, place) for place in step.places)) for step in reader.steps]
    return Steps(inputs, infos, (*steps, *copies), tuple(reader.temporaries), tuple(reader.constants))
