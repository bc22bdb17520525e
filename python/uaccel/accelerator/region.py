"""What an accelerator is asked about and given to compute: operator calls with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand, Site, info_of, operator_of, type_info
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_var, plain_attributes, relax


@dataclass(frozen=True)
class Tensor:
    """A tensor that exists at run time, by its name in the module."""

    name: str
    info: TensorInfo


@dataclass(frozen=True)
class OpCall:
    """One operator call.

    ``attrs`` is the integer operator's record, or the attributes of Relax's own operator as plain values.
    ``sources`` names, for each operand, the tensor that it is; None for a constant. ``results`` names the outputs.
    """

    name: str
    op: str
    attrs: Any
    operands: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    sources: tuple[str | None, ...]
    results: tuple[str, ...]
    macs: int = 0

    @property
    def output(self) -> TensorInfo:
        return self.outputs[0]

    def __str__(self) -> str:
        return f"{self.name} ({self.op})"


@dataclass(frozen=True)
class Region:
    """Calls in order of execution, with the tensors that come in and go out.

    Of a region of one call, ``attrs``, ``operands`` and ``output`` are the call's.
    """

    calls: tuple[OpCall, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def root(self) -> OpCall:
        """The call that gives the result."""
        return self.calls[-1]

    @property
    def attrs(self) -> Any:
        return self.root.attrs

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.root.operands

    @property
    def output(self) -> TensorInfo:
        return self.root.output

    @property
    def macs(self) -> int:
        return sum(call.macs for call in self.calls)

    @property
    def bytes_moved(self) -> int:
        """Inputs, outputs and constants; what stays inside is not counted."""
        tensors = sum(tensor.info.size for tensor in (*self.inputs, *self.outputs))
        return tensors + sum(o.info.size for call in self.calls for o in call.operands if o.constant is not None)

    @property
    def interior(self) -> tuple[Tensor, ...]:
        """What one call gives another and nobody outside sees."""
        outside = {tensor.name for tensor in self.outputs}
        tensors = [Tensor(n, i) for call in self.calls for n, i in zip(call.results, call.outputs, strict=True)]
        return tuple(tensor for tensor in tensors if tensor.name not in outside)


Bindings = Sequence[tuple[Any, Any]]


def region_of(
    bindings: Bindings, inputs: Sequence[Any], outputs: Sequence[Any], names: Mapping[str, str] | None = None
) -> Region:
    """The region of these bindings, in their order; ``inputs`` and ``outputs`` are variables.

    ``names``: what calls are called by the names of their variables, where that is something else.
    """
    calls = tuple(op_call(var, expr, bindings, names) for var, expr in bindings if is_call(expr))
    return Region(calls, _tensors(inputs), _tensors(outputs))


def _tensors(variables: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(Tensor(var.name, info_of(var)) for var in variables)


def op_call(var: Any, expr: Any, bindings: Bindings, names: Mapping[str, str] | None = None) -> OpCall:
    """The facts of one binding; ``bindings`` tell what the fields of its result are called."""
    operands, sources = [], []
    for argument in tensor_arguments(expr.args):
        constant = argument.value.numpy() if is_constant(argument) else None
        operands.append(Operand(info_of(argument), constant))
        sources.append(argument.name if is_var(argument) else None)
    fields = getattr(expr.ty, "fields", None)
    outputs = (type_info(expr.ty),) if fields is None else tuple(type_info(field) for field in fields)
    results = (var.name,) if fields is None else _field_names(var, len(outputs), bindings)
    operator = operator_of(expr)
    attrs: Any = plain_attributes(expr) if operator is None else operator.attrs_of(expr)
    site = Site(attrs, tuple(operands), outputs)
    macs = plain_macs(expr, site) if operator is None else operator.macs(site)
    name = (names or {}).get(var.name, var.name)
    return OpCall(name, expr.op.name, attrs, site.operands, outputs, tuple(sources), results, macs)


def _field_names(var: Any, count: int, bindings: Bindings) -> tuple[str, ...]:
    names = [f"{var.name}_{index}" for index in range(count)]
    for bound, expr in bindings:
        if getattr(expr, "tuple_value", None) is not None and expr.tuple_value.same_as(var):
            names[int(expr.index)] = bound.name
    return tuple(names)


def plain_macs(expr: Any, site: Site[Any]) -> int:
    """Multiply-accumulates of Relax's own operators."""
    name = expr.op.name
    if name == "relax.matmul":
        return site.output.elements * site.operands[0].info.shape[-1]
    if name in ("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose"):
        data, weights = site.operands[0].info, site.operands[1].info
        return data.elements * weights.elements // weights.shape[str(expr.attrs.kernel_layout).index("I")]
    if name in ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"):
        weights = site.operands[1].info
        return site.output.elements * weights.elements // weights.shape[str(expr.attrs.kernel_layout).index("O")]
    return 0


def tensor_arguments(arguments: Any) -> Iterator[Any]:
    """The arguments that are data, tuples flattened; shapes and numbers are compile-time matters."""
    for argument in arguments:
        if is_tuple(argument):
            yield from tensor_arguments(argument.fields)
        elif isinstance(getattr(argument, "ty", None), relax.TensorType):
            yield argument
