"""What an accelerator is asked about and given to compute: operator calls with all that is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.base import Operand, info_of, operator_of
from uaccel.ops.traits import macs_of, site_of, tensor_arguments
from uaccel.tvm_api import field_names, is_call, is_tuple_type, is_var, plain_attributes


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
    site, operator = site_of(expr), operator_of(expr)
    sources = tuple(argument.name if is_var(argument) else None for argument in tensor_arguments(expr.args))
    results: tuple[str, ...] = (var.name,)
    if is_tuple_type(expr):
        fields = field_names(bindings)
        results = tuple(fields.get((var, index), f"{var.name}_{index}") for index in range(len(site.outputs)))
    attrs: Any = plain_attributes(expr) if operator is None else site.attrs
    name = (names or {}).get(var.name, var.name)
    macs = macs_of(expr, site)
    return OpCall(name, expr.op.name, attrs, site.operands, site.outputs, sources, results, macs)
