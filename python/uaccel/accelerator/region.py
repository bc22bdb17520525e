"""Describes regions, which checks and lowerings of accelerators are given, and the calls that lowerings return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from uaccel.accelerator.machine import Tile
from uaccel.model import TensorInfo
from uaccel.ops.kernel import Argument, Constant, Definition, Input, KernelCall, Output, Scratch
from uaccel.ops.operator import Operand, info_of, macs_of, operator_of, site_of, tensor_arguments
from uaccel.tvm_api import field_names, is_call, is_tuple_type, is_var, plain_attributes

# Regions: operator calls with all that is known of them.


@dataclass(frozen=True)
class Tensor:
    """Names a tensor that exists at run time, as the module does."""

    name: str
    info: TensorInfo


@dataclass(frozen=True)
class OpCall:
    """Describes one operator call.

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
    """Holds calls in order of execution, with the tensors that come in and go out.

    ``attrs``, ``operands`` and ``output`` are those of the last call, which gives the result.
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
        """The bytes of inputs, outputs and constants; tensors inside are not counted."""
        tensors = sum(tensor.info.size for tensor in (*self.inputs, *self.outputs))
        return tensors + sum(o.info.size for call in self.calls for o in call.operands if o.constant is not None)

    @property
    def interior(self) -> tuple[Tensor, ...]:
        """The tensors that one call gives another and nobody outside sees."""
        outside = {tensor.name for tensor in self.outputs}
        tensors = [Tensor(n, i) for call in self.calls for n, i in zip(call.results, call.outputs, strict=True)]
        return tuple(tensor for tensor in tensors if tensor.name not in outside)


Bindings = Sequence[tuple[Any, Any]]


def region_of(
    bindings: Bindings, inputs: Sequence[Any], outputs: Sequence[Any], names: Mapping[str, str] | None = None
) -> Region:
    """The region of these bindings, in their order; ``inputs`` and ``outputs`` are variables. ``names``: the names of
    calls by those of their variables, where they differ."""
    calls = tuple(op_call(var, expr, bindings, names) for var, expr in bindings if is_call(expr))
    return Region(calls, _tensors(inputs), _tensors(outputs))


def _tensors(variables: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(Tensor(var.name, info_of(var)) for var in variables)


def op_call(var: Any, expr: Any, bindings: Bindings, names: Mapping[str, str] | None = None) -> OpCall:
    """Describes the call of one binding; ``bindings`` give the names of its result's fields."""
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


# How a region runs: C calls into the driver, with what they need in memory and in flash.


@dataclass(frozen=True)
class Lowered:
    """Holds what a region becomes.

    ``scratch``: bytes of memory that the calls share while they run. ``source``: C that goes into the model's source
    beside them. ``artefacts``: files by name for a reader (JSON, disassembly), which ``compile --dump`` writes.
    ``labels``: those of a stream's commands, in their order, which a trace of a run shows (``run --trace``).
    ``name``: the name among several ways to compute one region, of which ``uaccel tune`` measures each.
    ``cycles``: those that the device will take, if that is more exact than the sum of the operations' ``cost``.
    ``instructions``: those that the driver takes of the CPU for all the calls; without them a rule estimates.
    ``moved``: bytes that the device carries between memory and chip, where they are known; ``moved_by``: the same for
    each operator by its name. ``tiles``: what lies in memories on chip, by the numbers of commands, for reports.
    """

    calls: tuple[KernelCall, ...]
    scratch: int = 0
    source: Definition | None = None
    artefacts: Mapping[str, str | bytes] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    name: str = ""
    cycles: float | None = None
    instructions: float | None = None
    moved: int | None = None
    moved_by: Mapping[str, int] = field(default_factory=dict)
    tiles: Sequence[Tile] = ()


def library_call(function: str, *arguments: Argument | SupportsIndex | SupportsFloat) -> KernelCall:
    """Makes the call ``function(arguments...)``: tensors by address, numbers as they are. The C function returns 0 or
    an error code."""
    if not str(function).isidentifier():
        raise TypeError(f"library_call: {function!r} is no name of a C function")
    made = tuple(_argument(function, number, argument) for number, argument in enumerate(arguments, 1))
    return KernelCall(function, "", "", {}, made, checked=True)


def _argument(function: str, number: int, value: Any) -> Argument | int | float:
    """The argument, with numpy's numbers as Python's, so that C does not depend on how they were computed."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, Constant) and not isinstance(value.data, np.ndarray):
        raise TypeError(f"argument {number} of {function}: Constant({value.role!r}) holds no numpy array")
    if isinstance(value, (Input, Output, Constant, Scratch)):
        return value
    raise TypeError(
        f"argument {number} of {function} is {type(value).__name__}; wanted Input(i), Output(i), "
        "Constant(role, array), Scratch(offset) or a number"
    )
