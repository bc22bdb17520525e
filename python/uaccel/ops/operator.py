"""Defines what every operator states: attributes, type rule, exact meaning, C kernels, and what passes may rely on."""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np

from uaccel.errors import InternalError, need
from uaccel.model import Array, TensorInfo
from uaccel.ops.kernel import Argument, Constant, Input, Kernel, Output, ParameterValue, Scratch, dtype_suffix, portable
from uaccel.ops.pointwise import BY_RELAX
from uaccel.tvm_api import is_constant, is_tuple, make_call, register_operator, relax, te, tirx
from uaccel.tvm_api.loops import te_extern_loops
from uaccel.util.option import dataclass_transform

# Operators: attributes, type rule, exact meaning, and how the CPU computes them.

NAMESPACE = "uaccel."


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Attributes:
    """Is the base of the operators' attribute records: integers, floats, strings and tuples of integers.

    By itself it stands for operators without attributes. Subclasses are frozen dataclasses without being declared so.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        dataclass(frozen=True, **options)(cls)

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
    """Describes one argument at a call site; ``constant`` is its value where it is known at compile time."""

    info: TensorInfo
    constant: Array | None = None

    @property
    def value(self) -> Array:
        if self.constant is None:
            raise ValueError(
                f"the operand {self.info} has no value, it comes at run time; look whether .constant is None first"
            )
        return self.constant


def operand_arguments(
    operands: Sequence[Operand], roles: Sequence[str], held: Mapping[str, Array] | None = None
) -> list[Argument]:
    """The arguments of kernel calls for operands: the layer's inputs in order, and constants by their roles.

    ``held`` has what kernels read in place of some constants.
    """
    inputs, held = itertools.count(), held or {}
    return [
        Input(next(inputs)) if operand.constant is None else Constant(role, held.get(role, operand.constant))
        for role, operand in zip(roles, operands, strict=True)
    ]


A = TypeVar("A", bound=Attributes)


@dataclass(frozen=True)
class Site(Generic[A]):
    """Describes a call of an operator in a model, for which a kernel is chosen."""

    attrs: A
    operands: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]

    @property
    def output(self) -> TensorInfo:
        return self.outputs[0]

    def input_indices(self) -> list[int | None]:
        """Gives for each operand the number of the layer's run-time input, None for a constant."""
        indices: list[int | None] = []
        count = 0
        for operand in self.operands:
            indices.append(None if operand.constant is not None else count)
            count += operand.constant is None
        return indices


class Elementwise(Enum):
    """Says of which arguments every element of the result depends on one element."""

    FIRST = "the first argument, whose shape it has; other arguments are tables"
    EACH = "each argument; they broadcast"


class Channels(Enum):
    """Says how the channels of a result, its last axis, depend on those of the first argument."""

    MIXED = "every channel of the result reads every channel"
    APART = "a channel of the result reads the channel of its number"


class Computable(Protocol):
    """Lists what choosing kernels for a layer, or for some of its rows, needs: integer operators and some of Relax."""

    @property
    def name(self) -> str: ...
    @property
    def full_name(self) -> str: ...
    @property
    def elementwise(self) -> Elementwise | None: ...
    def kernels(self, site: Site[Any]) -> Sequence[Kernel]: ...
    def macs(self, site: Site[Any]) -> int: ...


class IntegerOperator(abc.ABC, Generic[A]):
    """Defines an operator ``uaccel.<name>``; subclasses are stateless, and those that state a name are registered."""

    name: ClassVar[str]
    # Different inputs often give the same result, so verifying a network compares such a layer's input, too.
    hides_differences: ClassVar[bool] = False
    attributes: ClassVar[type[Attributes]]  # The type argument of the class.
    arguments: ClassVar[tuple[str, ...]] = ("input",)

    elementwise: ClassVar[Elementwise | None] = None
    channels: ClassVar[Channels | None] = None  # None where neither holds.
    keeps_number: ClassVar[bool] = False  # A channel of one number stays this number, clamped.
    variadic: ClassVar[bool] = False  # Calls may have any number of arguments.
    foldable: ClassVar[bool] = True  # A call with constants alone can be computed while the model is compiled.
    # The attribute that names the one axis that matters; in any other respect it is elementwise.
    channel_axis: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        bases = cls.__dict__.get("__orig_bases__", ())
        for given in (argument for base in bases for argument in typing.get_args(base)):
            if isinstance(given, type) and issubclass(given, Attributes):
                cls.attributes = given
        if "name" in cls.__dict__:
            _register(cls())

    @property
    def weighted(self) -> bool:
        return self.arguments[1:2] == ("weights",)

    @abc.abstractmethod
    def infer(self, attrs: A, *inputs: Any, **_: Any) -> TensorInfo | tuple[TensorInfo, ...]:
        """The type rule. Raise TypeError with the reason where the arguments do not fit."""

    @abc.abstractmethod
    def meaning(self, attrs: A, *inputs: Any, **_: Any) -> Any:
        """The exact meaning, as TE tensors over TE tensors: what every kernel must equal bit for bit."""

    def results(self, inputs: Sequence[Any], attrs: A) -> tuple[TensorInfo, ...]:
        """The types of the results for TE tensors."""
        found = self.infer(attrs, *(tensor_info(tensor) for tensor in inputs))
        return (found,) if isinstance(found, TensorInfo) else found

    def by_loops(self, inputs: Sequence[Any], attrs: A, write: Callable[..., None], name: str = "") -> Any:
        """A meaning whose elements depend on earlier ones: ``write`` fills all results (``te_extern_loops``)."""
        results = self.results(inputs, attrs)
        shown = [(result.shape, result.dtype) for result in results]
        made = te_extern_loops(shown, list(inputs), write, name or self.name)
        return made if len(results) > 1 else made[0]

    def kernels(self, site: Site[A]) -> Sequence[Kernel]:
        """The ways the CPU can compute it, most specialised first; none: C from its meaning, by the TIR fallback."""
        return ()

    def one_call(
        self,
        site: Site[A],
        parameters: Mapping[str, ParameterValue],
        types: str | None = None,
        *,
        struct: str = "",
        function: str = "",
        held: Mapping[str, Array] | None = None,
        **options: Any,
    ) -> list[Kernel]:
        """The usual case: one call to a portable kernel on the operands and the output.

        Structure and function are called ``uaccel_<name>`` unless they are given. ``types`` ends the function's name,
        by default the first operand's type. ``options`` are those of ``portable``.
        """
        struct = struct or f"uaccel_{self.name}"
        types = dtype_suffix(site.operands[0].info.dtype) if types is None else types
        name = "_".join(filter(None, (function or struct, types)))
        scratch = [Scratch()] if options.get("scratch") else []
        arguments = (*operand_arguments(site.operands, self.arguments, held), Output(0), *scratch)
        return [portable(name, struct, parameters, arguments, **options)]

    def macs(self, site: Site[A]) -> int:
        """Multiply-accumulates of one inference, counting nothing for other work.

        Weights are taken to have the output channel first: each element of the result uses all of its channel's.
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


class Each(IntegerOperator[A]):
    """Computes each element of the result from one of the first input; other arguments are tables."""

    elementwise = Elementwise.FIRST
    takes: ClassVar[tuple[str, ...]] = ()  # The types that the first input may have; none are any.

    def infer(self, attrs: A, *inputs: TensorInfo) -> TensorInfo:
        shape, dtype = inputs[0].shape, inputs[0].dtype
        fits = dtype in self.takes or not self.takes
        require(fits, f"{self.name}: input is {dtype}, wanted {' or '.join(self.takes)}")
        return TensorInfo(shape, getattr(attrs, "output_dtype", dtype))


Infos = Sequence[TensorInfo]


class ByLoops(IntegerOperator[A]):
    """States the meaning as loops where elements depend on earlier ones."""

    # Fills the results: it takes the inputs' types, the attributes, and the arrays of the inputs and of the results.
    write: Callable[..., None]

    def meaning(self, attrs: A, *inputs: Any) -> Any:
        infos = [tensor_info(tensor) for tensor in inputs]
        return self.by_loops(inputs, attrs, functools.partial(self.write, infos, attrs))


class EachAtOnce(Each[A]):
    """States the meaning of one element, as one expression."""

    @abc.abstractmethod
    def element(self, value: Any, attrs: A, *tables: Any) -> Any:
        """The element of the result, as a TE expression."""

    def meaning(self, attrs: A, data: Any, *tables: Any) -> Any:
        return te.compute(data.shape, lambda *i: self.element(data(*i), attrs, *tables), name=self.name)


_hints: dict[type, dict[str, Any]] = {}


def _type_hints(attributes: type[Attributes]) -> dict[str, Any]:
    if attributes not in _hints:
        _hints[attributes] = typing.get_type_hints(attributes)
    return _hints[attributes]


REGISTRY: dict[str, IntegerOperator[Any]] = {}


def _register(operator: IntegerOperator[Any]) -> None:
    """Makes an operator known to Relax and to ``operator_of``."""
    REGISTRY[operator.full_name] = operator

    def infer_type(call: Any, _context: Any) -> Any:
        return to_type(operator.infer(operator.attrs_of(call), *(info_of(arg) for arg in call.args)))

    def legalize(builder: Any, call: Any) -> Any:
        attrs = operator.attrs_of(call)
        return builder.call_te(
            lambda *args: operator.meaning(attrs, *args), *call.args, primfunc_name_hint=operator.name
        )

    count = -1 if operator.variadic else len(operator.arguments)
    register_operator(operator.full_name, (operator.__doc__ or "").strip(), count, infer_type, legalize)


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


def tensor_info(tensor: Any) -> TensorInfo:
    """Shape and dtype of a TE tensor, as the type rules take them."""
    return TensorInfo(tuple(int(extent) for extent in tensor.shape), str(tensor.dtype))


def has_static_shape(expr: Any) -> bool:
    """Whether the expression's type has a static shape, as ``info_of`` needs it."""
    shape = getattr(expr.ty, "shape", None)
    return shape is not None and all(isinstance(extent, tirx.IntImm) for extent in getattr(shape, "values", [None]))


def infos_of(expr: Any) -> tuple[TensorInfo, ...]:
    """The types of a tuple's fields; of any other expression its own."""
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
    """Raises TypeError, as type rules do, unless the condition holds."""
    need(condition, reason, TypeError)


# Traits of any operator call: integer operators declare their own, those of Relax stand here.

FLOATS: Final = ("float16", "float32", "float64")

QUANTIZE: Final = "relax.quantize"
DEQUANTIZE: Final = "relax.dequantize"
PERMUTE: Final = "relax.permute_dims"
RESHAPE: Final = "relax.reshape"
PAD: Final = "relax.nn.pad"

# The same elements in the same order, under another shape.
RESHAPING: Final = frozenset({RESHAPE, "relax.expand_dims", "relax.squeeze", "relax.flatten"})

_CONVOLUTIONS: Final = frozenset({"relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"})
_TRANSPOSED: Final = frozenset({"relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose"})


def name_of(call: Any) -> str:
    """The operator's full name; empty for the call of a function."""
    return str(getattr(call.op, "name", ""))


def elementwise_of(call: Any) -> Elementwise | None:
    operator = operator_of(call)
    if operator is not None:
        return operator.elementwise
    return Elementwise.EACH if name_of(call) in BY_RELAX else None


def permuted_axes(call: Any) -> tuple[int, ...]:
    """The axes of the argument in the result's order."""
    rank = len(call.ty.shape.values)
    if call.attrs.axes is None:
        return tuple(reversed(range(rank)))
    return tuple(int(axis) % rank for axis in call.attrs.axes)


def moved_widths(call: Any, layout: tuple[int, ...]) -> list[int]:
    """The widths that a pad adds before and behind each axis, for axes in another order."""
    widths = [int(width) for width in call.attrs.pad_width]
    return [width for axis in layout for width in widths[2 * axis : 2 * axis + 2]]


def pads_with_number(call: Any) -> bool:
    return name_of(call) == PAD and bool(call.attrs.pad_mode == "constant")


def macs_of(call: Any, site: Site[Any] | None = None) -> int:
    """Multiply-accumulates of a call; callers that know its ``site`` hand it over."""
    operator, site = operator_of(call), site or site_of(call, values=False)
    if operator is not None:
        return operator.macs(site)
    if call.op.name == "relax.matmul":
        return site.output.elements * site.operands[0].info.shape[-1]
    if call.op.name not in _CONVOLUTIONS | _TRANSPOSED:
        return 0
    data, weights = (operand.info for operand in site.operands[:2])
    moved, channels = (data, "I") if call.op.name in _TRANSPOSED else (site.output, "O")
    return moved.elements * weights.elements // weights.shape[str(call.attrs.kernel_layout).index(channels)]


def site_of(call: Any, *, values: bool = True) -> Site[Any]:
    """A call as its kernels see it; where shapes suffice, ``values`` of constants, which may be large, are left out."""
    operands = tuple(
        Operand(info_of(argument), argument.value.numpy() if values and is_constant(argument) else None)
        for argument in tensor_arguments(call.args)
    )
    operator = operator_of(call)
    return Site(operator.attrs_of(call) if operator else None, operands, infos_of(call))


def tensor_arguments(arguments: Any) -> Iterator[Any]:
    """The arguments that are data, tuples flattened; shapes and numbers are compile-time matters."""
    for argument in arguments:
        if is_tuple(argument):
            yield from tensor_arguments(argument.fields)
        elif isinstance(getattr(argument, "ty", None), relax.TensorType):
            yield argument
