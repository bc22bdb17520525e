"""What every integer operator states: attributes, type rule, exact meaning, and how the CPU computes it."""

from __future__ import annotations

import abc
import dataclasses
import itertools
import math
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from uaccel.errors import InternalError
from uaccel.model import Array, TensorInfo
from uaccel.ops.kernel import Argument, Constant, Input, Kernel
from uaccel.tvm_api import make_call, register_operator, relax, tirx

NAMESPACE = "uaccel."


@dataclass(frozen=True)
class Attributes:
    """Base of the operators' attribute records: integers, floats, strings and tuples of integers."""

    def to_node(self) -> dict[str, Any]:
        return {f.name: _encode(getattr(self, f.name)) for f in dataclasses.fields(self)}


def _encode(value: Any) -> Any:
    return [int(v) for v in value] if isinstance(value, tuple) else value


def _decode(value: Any, hint: Any) -> Any:
    if hint in (int, float, str, bool):
        return hint(value)
    return tuple(int(v) for v in value)


@dataclass(frozen=True)
class Operand:
    """One argument at a call site; ``constant`` holds its value where it is known at compile time."""

    info: TensorInfo
    constant: Array | None = None

    @property
    def value(self) -> Array:
        if self.constant is None:
            raise InternalError("an operand was expected to be constant and is not")
        return self.constant


def operand_arguments(operands: Sequence[Operand], roles: Sequence[str]) -> list[Argument]:
    """What calls are given for operands: the layer's inputs in order, and constants by their roles."""
    inputs = itertools.count()
    return [
        Input(next(inputs)) if operand.constant is None else Constant(role, operand.constant)
        for role, operand in zip(roles, operands, strict=True)
    ]


A = TypeVar("A", bound=Attributes)


@dataclass(frozen=True)
class Site(Generic[A]):
    """A call of an operator in a model: what a kernel is chosen for."""

    attrs: A
    operands: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    def output(self) -> TensorInfo:
        return self.outputs[0]

    def input_indices(self) -> list[int | None]:
        """For each operand the number of the layer's run-time input, None for a constant."""
        indices: list[int | None] = []
        count = 0
        for operand in self.operands:
            indices.append(None if operand.constant is not None else count)
            count += operand.constant is None
        return indices


class Elementwise(Enum):
    """Every element of the result depends on one element of ..."""

    FIRST = "the first argument, whose shape it has; other arguments are tables"
    EACH = "each argument; they broadcast"


class Channels(Enum):
    """What a layer does with the last axis of its first argument, whose place the result's channels take."""

    MIXED = "every channel of the result reads every channel"
    APART = "a channel of the result reads the channel of its number"


class Computable(Protocol):
    """What kernels are chosen for, and can be chosen for some rows of: integer operators, and some of Relax's own."""

    @property
    def name(self) -> str: ...
    @property
    def full_name(self) -> str: ...
    @property
    def elementwise(self) -> Elementwise | None: ...
    def kernels(self, site: Site[Any]) -> Sequence[Kernel]: ...
    def macs(self, site: Site[Any]) -> int: ...


class IntegerOperator(abc.ABC, Generic[A]):
    """An operator ``uaccel.<name>``; subclasses are stateless and registered once, by ``register``."""

    name: ClassVar[str]
    hides_differences: ClassVar[bool] = False
    """Different inputs often give the same result: what tests a network looks at its input, too."""
    attributes: ClassVar[type[Attributes]]
    """What the class is generic in."""
    arguments: ClassVar[tuple[str, ...]]

    elementwise: ClassVar[Elementwise | None] = None
    channels: ClassVar[Channels | None] = None
    """None where they are treated in a way of the operator's own."""
    keeps_number: ClassVar[bool] = False
    """A channel of one number stays this number, clamped."""
    variadic: ClassVar[bool] = False
    """Calls have as many arguments as they like."""
    foldable: ClassVar[bool] = True
    """Of constants alone it can be computed while the model is compiled."""
    channel_axis: ClassVar[str] = ""
    """The attribute that names the one axis that matters; in any other respect it is elementwise."""

    def __init_subclass__(cls) -> None:
        bases = cls.__dict__.get("__orig_bases__", ())
        for given in (argument for base in bases for argument in typing.get_args(base)):
            if isinstance(given, type) and issubclass(given, Attributes):
                cls.attributes = given

    @property
    def weighted(self) -> bool:
        return self.arguments[1:2] == ("weights",)

    @abc.abstractmethod
    def infer(self, inputs: Sequence[TensorInfo], attrs: A) -> TensorInfo | tuple[TensorInfo, ...]:
        """The type rule. Raise TypeError with the reason where the arguments do not fit."""

    @abc.abstractmethod
    def meaning(self, inputs: Sequence[Any], attrs: A) -> Any:
        """The exact meaning, as TE tensors over TE tensors: what every kernel must equal bit for bit."""

    def kernels(self, site: Site[A]) -> Sequence[Kernel]:
        """The ways the CPU can compute it, most specialised first; none: C from its meaning, by the TIR fallback."""
        return ()

    def macs(self, site: Site[A]) -> int:
        """Multiply-accumulates of one inference, counting nothing for other work.

        Of weights that have an output channel first: each element of the result takes all of its channel's.
        """
        return site.output.elements * math.prod(site.operands[1].info.shape[1:]) if self.weighted else 0

    @property
    def full_name(self) -> str:
        return NAMESPACE + self.name

    def __call__(self, *args: Any, attrs: A) -> relax.Call:
        return make_call(self.full_name, list(args), attrs.to_node())

    def attrs_of(self, call: relax.Call) -> A:
        hints = _type_hints(self.attributes)
        values = {name: _decode(call.attrs[name], hint) for name, hint in hints.items()}
        return typing.cast(A, self.attributes(**values))


_hints: dict[type, dict[str, Any]] = {}


def _type_hints(attributes: type[Attributes]) -> dict[str, Any]:
    if attributes not in _hints:
        _hints[attributes] = typing.get_type_hints(attributes)
    return _hints[attributes]


REGISTRY: dict[str, IntegerOperator[Any]] = {}

Class = TypeVar("Class", bound="type[IntegerOperator[Any]]")


def register(cls: Class) -> Class:
    """Class decorator: make the operator known to Relax and to ``operator_of``."""
    operator = cls()
    REGISTRY[operator.full_name] = operator

    def infer_type(call: Any, _context: Any) -> Any:
        return to_type(operator.infer([info_of(arg) for arg in call.args], operator.attrs_of(call)))

    def legalize(builder: Any, call: Any) -> Any:
        attrs = operator.attrs_of(call)
        return builder.call_te(
            lambda *args: operator.meaning(args, attrs), *call.args, primfunc_name_hint=operator.name
        )

    count = -1 if operator.variadic else len(operator.arguments)
    register_operator(operator.full_name, (cls.__doc__ or "").strip(), count, infer_type, legalize)
    return cls


def get(cls: type[IntegerOperator[A]]) -> IntegerOperator[A]:
    """The registered instance of an operator class."""
    return REGISTRY[NAMESPACE + cls.name]


def operator_of(call: Any) -> IntegerOperator[Any] | None:
    """The integer operator that a Relax call applies, None for any other call."""
    name = getattr(getattr(call, "op", None), "name", None)
    return REGISTRY.get(name) if name else None


def short_name(operator: str) -> str:
    """``uaccel.conv2d`` and ``relax.reshape`` as people say them."""
    return operator.removeprefix(NAMESPACE).removeprefix("relax.")


def info_of(expr: Any) -> TensorInfo:
    """The static type of a Relax expression."""
    return type_info(expr.ty)


def has_static_shape(expr: Any) -> bool:
    """Whether ``info_of`` can tell of it."""
    shape = getattr(expr.ty, "shape", None)
    return shape is not None and all(isinstance(extent, tirx.IntImm) for extent in getattr(shape, "values", [None]))


def infos_of(expr: Any) -> tuple[TensorInfo, ...]:
    """The types of an expression's fields, its own where it is no tuple."""
    return tuple(map(type_info, getattr(expr.ty, "fields", [expr.ty])))


def type_info(ty: Any) -> TensorInfo:
    """A Relax tensor type as plain data; dynamic shapes are refused by the front ends before."""
    if ty.shape is None or str(ty.dtype) == "":
        raise InternalError(f"a tensor of unknown shape or dtype: {ty}")
    return TensorInfo(tuple(int(extent) for extent in ty.shape.values), str(ty.dtype))


def to_type(info: TensorInfo | tuple[TensorInfo, ...]) -> Any:
    if isinstance(info, TensorInfo):
        return relax.TensorType(info.shape, info.dtype)
    return relax.TupleType([to_type(entry) for entry in info])


def constant(array: Array) -> Any:
    """A Relax constant of exactly this array."""
    return relax.const(np.asarray(array, order="C"), str(array.dtype))


def require(condition: bool, reason: str) -> None:
    """For type rules."""
    if not condition:
        raise TypeError(reason)


def same_padding(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Zeros before and after, as TFLite's SAME padding places them."""
    effective = (kernel - 1) * dilation + 1
    out = math.ceil(extent / stride)
    total = max(0, (out - 1) * stride + effective - extent)
    return total // 2, total - total // 2


def window_count(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How often a window fits along one axis."""
    return (extent + before + after - ((kernel - 1) * dilation + 1)) // stride + 1
