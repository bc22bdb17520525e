"""An accelerator's region as a layer: the calls of its driver and, where wanted, what the CPU does when it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uaccel.accelerator import Lowered
from uaccel.accelerator.region import tensor_arguments
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.lower.program import Covered
from uaccel.model import Origin
from uaccel.ops.base import Operand, info_of, short_name, type_info
from uaccel.ops.kernel import Argument, Constant, Definition, Input, Kernel, KernelCall, Output, Scratch
from uaccel.partition import EngineCall
from uaccel.tvm_api import bindings_of, is_call, is_constant, is_tuple, is_tuple_get_item, is_var

SCRATCH_ALIGNMENT = 16


@dataclass(frozen=True)
class EngineStep:
    """What an engine's call becomes."""

    lowered: Lowered
    kernel: Kernel
    reason: str
    covers: tuple[Covered, ...]


def engine_step(call: EngineCall, origins: Mapping[str, Origin]) -> EngineStep:
    """Ask the accelerator's description for the calls; what goes wrong in it is told with its place."""
    accelerator, region = call.accelerator, call.region
    try:
        lowered = accelerator.lower(call.operation, region)
    except UaccelError:
        raise
    except Exception as error:  # whatever a vendor's function raises
        what = f"operation '{call.operation.name}'" if call.operation else "the stream"
        raise AcceleratorError(
            f"{accelerator.folder}: lowering {call.layer} by {what} failed: {type(error).__name__}: {error}"
        ) from error
    _require_known_arguments(call, lowered)
    kernel = Kernel(accelerator.name, lowered.calls, scratch=lowered.scratch)
    covers = tuple(
        Covered(c.name, short_name(c.op), origins.get(c.name, Origin(-1, c.op, c.name)), c.output, c.macs)
        for c in call.covers
    )
    functions = ", ".join(dict.fromkeys(c.function for c in lowered.calls))
    return EngineStep(lowered, kernel, f"driver function {functions} of {accelerator.name}", covers)


def _require_known_arguments(call: EngineCall, lowered: Lowered) -> None:
    """What a vendor's function names must be there."""
    for made in lowered.calls:
        for argument in made.arguments:
            count = len(call.region.inputs) if isinstance(argument, Input) else len(call.region.outputs)
            if isinstance(argument, (Input, Output)) and not 0 <= argument.index < count:
                side = type(argument).__name__.lower()
                raise AcceleratorError(
                    f"{call.accelerator.folder}: {made.function} of layer {call.layer} is given {side} "
                    f"{argument.index}, and the region has {count}"
                )
            if isinstance(argument, Scratch) and argument.offset >= lowered.scratch:
                raise AcceleratorError(
                    f"{call.accelerator.folder}: {made.function} of layer {call.layer} is given scratch memory at "
                    f"{argument.offset}, and asks for {lowered.scratch} bytes of it"
                )


Choose = Callable[[Any, tuple[Operand, ...], str], "tuple[Kernel, Definition | None]"]


def on_cpu(function: Any, choose: Choose, symbol: str) -> tuple[Kernel, Definition | None]:
    """The region by the CPU's kernels, one after the other; what they hand on lies in scratch memory."""
    return _OnCpu(function, choose, symbol).kernel()


class _OnCpu:
    def __init__(self, function: Any, choose: Choose, symbol: str) -> None:
        parameters, self.bindings, result = bindings_of(function)
        self.choose, self.symbol = choose, symbol
        self.places: dict[Any, Argument] = {var: Input(i) for i, var in enumerate(parameters)}
        self.results = list(result.fields) if is_tuple(result) else [result]
        self.outputs = {var: Output(index) for index, var in reversed(list(enumerate(self.results)))}
        self.definitions: list[Definition] = []
        self.calls: list[KernelCall] = []
        self.values = 0
        self.extra = 0

    def kernel(self) -> tuple[Kernel, Definition | None]:
        made = []
        for var, expr in self.bindings:
            if is_call(expr):
                made.append(self._bind(var, expr))
        for kernel, inputs, outputs in made:
            base = self._rounded(self.values)
            self.calls += [_moved(call, inputs, outputs, base) for call in kernel.calls]
            self.extra = max(self.extra, kernel.scratch)
        for index, var in enumerate(self.results):
            if self.places[var] != Output(index):  # an input, or given twice
                self.calls.append(_moved(_copy(info_of(var).size).calls[0], [self.places[var]], [Output(index)], 0))
        scratch = self._rounded(self.values) + self.extra if self.extra else self.values
        return Kernel("cpu", tuple(self.calls), scratch=scratch), _together(self.symbol, self.definitions)

    def _bind(self, var: Any, expr: Any) -> tuple[Kernel, list[Argument], list[Argument]]:
        arguments = list(tensor_arguments(expr.args))
        operands = tuple(Operand(info_of(a), a.value.numpy() if is_constant(a) else None) for a in arguments)
        kernel, definition = self.choose(expr, operands, f"{self.symbol}_{var.name}")
        if definition is not None:
            self.definitions.append(definition)
        inputs = [self.places[a] for a in arguments if is_var(a)]
        if kernel.view and var not in self.outputs:
            self.places[var] = inputs[0]
            return Kernel("view", ()), [], []
        outputs = self._take(var)
        if kernel.view:
            kernel = _copy(operands[0].info.size)
        return kernel, inputs, outputs

    def _take(self, var: Any) -> list[Argument]:
        """Memory for a result, or for each field of one."""
        fields = getattr(var.ty, "fields", None)
        if fields is None:
            self.places[var] = self.outputs.get(var) or self._scratch(type_info(var.ty).size)
            return [self.places[var]]
        taken: list[Argument] = []
        for index, field in enumerate(fields):
            user = next((v for v, e in self.bindings if _is_field(e, var, index)), None)
            place = self.outputs.get(user) or self._scratch(type_info(field).size)
            if user is not None:
                self.places[user] = place
            taken.append(place)
        return taken

    def _scratch(self, size: int) -> Scratch:
        offset = self._rounded(self.values)
        self.values = offset + size
        return Scratch(offset)

    @staticmethod
    def _rounded(size: int) -> int:
        return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


def _is_field(expr: Any, of: Any, index: int) -> bool:
    return is_tuple_get_item(expr) and bool(expr.tuple_value.same_as(of)) and int(expr.index) == index


def _moved(call: KernelCall, inputs: Sequence[Argument], outputs: Sequence[Argument], base: int) -> KernelCall:
    """A call with its tensors where the region has them, its own scratch memory behind theirs."""

    def place(argument: Any) -> Any:
        if isinstance(argument, Scratch):
            return Scratch(base + argument.offset)
        if isinstance(argument, (Input, Output)):
            known = (inputs if isinstance(argument, Input) else outputs)[argument.index]
            return known if isinstance(known, Constant) else replace(known, offset=known.offset + argument.offset)
        return argument

    return replace(call, arguments=tuple(place(argument) for argument in call.arguments))


def _copy(size: int) -> Kernel:
    call = KernelCall("uaccel_copy", "uaccel_layout.h", "uaccel_copy", {"bytes": size}, (Input(0), Output(0)))
    return Kernel("portable", (call,))


def _together(symbol: str, definitions: Sequence[Definition]) -> Definition | None:
    if not definitions:
        return None
    headers = tuple(sorted({header for definition in definitions for header in definition.headers}))
    return Definition(symbol, "\n".join(definition.source for definition in definitions), headers)
