"""Lowers an accelerator's region to a layer: calls of its driver and, if wanted, what the CPU does when they fail."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from uaccel.accelerator import Accelerator, Lowered
from uaccel.accelerator.region import Region
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError, need
from uaccel.kernels import Choice, Option, Selector, Work, pick
from uaccel.lower.program import Covered, Program
from uaccel.model import Origin
from uaccel.ops.kernel import Argument, Constant, Definition, Input, Kernel, KernelCall, Output, Scratch
from uaccel.ops.operator import Operand, info_of, infos_of, short_name, site_of, tensor_arguments
from uaccel.partition import EngineCall
from uaccel.partition.regions import pass_name
from uaccel.tvm_api import bindings_of, is_call, is_tuple, is_tuple_get_item, is_tuple_type, is_var
from uaccel.util.text import round_up

SCRATCH_ALIGNMENT = 16
# Files that uaccel writes into the dump of a region, besides the vendor's artefacts.
OWN_FILES = ("region.json", "constants.npz", "source.c")


@dataclass(frozen=True)
class EngineStep:
    """Holds what a call of an accelerator becomes."""

    op: str
    lowered: Lowered
    kernel: Kernel
    reason: str
    covers: tuple[Covered, ...]
    choice: Choice


class Lowerings:
    """Holds the lowerings of one region: those that the vendor offers, or one for each variant of its planner.

    A variant is planned only when it is asked for, since that takes long.
    """

    def __init__(self, call: EngineCall) -> None:
        self._call = call
        self._variants = call.accelerator.variants
        self._made = {0: _lowerings(call, 0)}

    @property
    def labels(self) -> list[str]:
        """The names or numbers of the lowerings, or the parameters of each variant."""
        if len(self._variants) == 1:
            return [made.name or f"lowering {number}" for number, made in enumerate(self._made[0], 1)]
        return [", ".join(f"{name} {value}" for name, value in variant.items()) for variant in self._variants]

    def __getitem__(self, number: int) -> Lowered:
        if len(self._variants) == 1:
            return self._made[0][number]
        if number not in self._made:
            self._made[number] = _lowerings(self._call, number)
        return self._made[number][0]

    def options(self) -> list[Option]:
        varies = len(self._variants) > 1
        return [
            Option(label, planned=partial(self._cycles, n) if varies else None) for n, label in enumerate(self.labels)
        ]

    def _cycles(self, number: int) -> float | None:
        return self[number].cycles


Known = dict[object, Lowerings]  # The lowerings of regions by key, kept for other partitions of the same model.


def engine_step(
    call: EngineCall, origins: Mapping[str, Origin], reasons: Mapping[str, str], selector: Selector, known: Known
) -> EngineStep:
    """Asks the accelerator's description for the calls; ``origins`` and ``reasons`` are by layer of the model. Where
    the description offers several lowerings of one region, ``selector`` picks."""
    accelerator = call.accelerator
    key = _key(call)
    if key not in known:
        known[key] = Lowerings(call)
    lowerings = known[key]
    choice = _choice(call, lowerings, selector)
    lowered = lowerings[choice.picked]
    covers = tuple(
        Covered(
            c.name,
            short_name(c.op),
            origins.get(c.name, Origin(-1, c.op, c.name)),
            c.output,
            c.macs,
            reasons.get(c.name, ""),
        )
        for c in call.covers
    )
    why = dict.fromkeys(covered.reason for covered in covers if covered.reason)
    functions = ", ".join(dict.fromkeys(c.function for c in lowered.calls))
    return EngineStep(
        covers[0].op if len(covers) == 1 else "region" if covers else short_name(call.region.root.op),
        lowered,
        Kernel(accelerator.name, lowered.calls, scratch=lowered.scratch),
        "; ".join([*why, f"driver function{'s' if ', ' in functions else ''} {functions}"]),
        covers,
        choice,
    )


def _key(call: EngineCall) -> object:
    """A key of the region's content, names and constants' bytes included: regions with the same key are the same."""
    region, digest = call.region, hashlib.sha256()
    for operand in (operand for inside in region.calls for operand in inside.operands):
        if operand.constant is not None:
            digest.update(operand.constant.tobytes())
    calls = tuple((c.name, c.op, str(c.attrs), str(c.outputs), c.sources, c.results) for c in region.calls)
    operation = call.operation.name if call.operation is not None else ""
    return call.accelerator.name, operation, calls, region.inputs, region.outputs, digest.digest()


def _lowerings(call: EngineCall, variant: int) -> tuple[Lowered, ...]:
    """The lowerings that the vendor's function makes of a region, checked."""
    accelerator = call.accelerator
    what = f"lower of operation '{call.operation.name}'" if call.operation and call.operation.lower else "stream"
    with vendors(accelerator.folder, f"{what}, given {call.layer},"):
        lowerings = accelerator.lowerings(call.operation, call.region, variant)
    for made in lowerings:
        complaint = complaint_about(made, call.region)
        need(not complaint, f"{accelerator.folder}: {what}, given {call.layer}, returned {complaint}", AcceleratorError)
    if accelerator.parameters and len(lowerings) > 1:
        raise AcceleratorError(
            f"{accelerator.folder}: {what}, given {call.layer}, returned {len(lowerings)} ways for one choice of its "
            "parameters; wanted one"
        )
    return lowerings


def _choice(call: EngineCall, lowerings: Lowerings, selector: Selector) -> Choice:
    covered = "; ".join(f"{short_name(c.op)} {c.output}" for c in call.covers)
    operation = call.operation.name if call.operation else "stream"
    site = f"{call.accelerator.name}.{operation}: {covered}"
    work = Work(sum(c.macs for c in call.covers), sum(c.output.elements for c in call.covers))
    return pick(selector, site, lowerings.options(), work)


def complaint_about(lowered: Any, region: Region) -> str:
    """Says what is wrong with a vendor's lowering; empty where nothing is."""
    if not lowered.calls or not all(isinstance(made, KernelCall) for made in lowered.calls):
        return "no calls; wanted library_call(...)s, one at least"
    if not isinstance(lowered.scratch, int) or lowered.scratch < 0:
        return f"scratch={lowered.scratch!r}; wanted a number of bytes"
    if lowered.source is not None and not isinstance(lowered.source, Definition):
        return f"source={lowered.source!r}; wanted Definition(name, C, headers)"
    for name, content in lowered.artefacts.items():
        if not isinstance(name, str) or Path(name).name != name or name in OWN_FILES:
            return f"an artefact called {name!r}; wanted a plain file name, and not {' or '.join(OWN_FILES)}"
        if not isinstance(content, (str, bytes)):
            return f"artefact {name} as {type(content).__name__}; wanted text or bytes"
    return next(filter(None, (_complaint_about_call(made, lowered, region) for made in lowered.calls)), "")


def _complaint_about_call(made: KernelCall, lowered: Lowered, region: Region) -> str:
    """Says which input, output or scratch byte a call names that does not exist; empty where there is none."""
    for argument in made.arguments:
        if isinstance(argument, (Input, Output)):
            side, tensors = ("input", region.inputs) if isinstance(argument, Input) else ("output", region.outputs)
            if not 0 <= argument.index < len(tensors):
                return f"{made.function} with {side} {argument.index}, and the region has {len(tensors)}"
            if not 0 <= argument.offset < max(1, tensors[argument.index].info.size):
                return f"{made.function} with {side} {argument.index} from byte {argument.offset}, which it has not"
        elif isinstance(argument, Scratch) and not 0 <= argument.offset < lowered.scratch:
            return (
                f"{made.function} with scratch memory from byte {argument.offset}, and asks for {lowered.scratch} bytes"
            )
    return ""


def after_lowering(program: Program, accelerators: Sequence[Accelerator]) -> Program:
    """Runs the vendors' passes over the layers; the model's inputs, outputs and state must stay as they are."""
    for accelerator in accelerators:
        for change in accelerator.after_lowering:
            what = f"after_lowering pass '{pass_name(change)}'"
            with vendors(accelerator.folder, what):
                changed = change(program)
            if not isinstance(changed, Program):
                raise AcceleratorError(
                    f"{accelerator.folder}: {what} returned {type(changed).__name__}; wanted the program"
                )
            if (changed.inputs, changed.outputs) != (program.inputs, program.outputs):
                raise AcceleratorError(f"{accelerator.folder}: {what} changed the model's inputs or outputs; keep them")
            if changed.state != program.state:
                raise AcceleratorError(f"{accelerator.folder}: {what} changed the model's state; keep it")
            program = changed
    return program


Choose = Callable[[Any, tuple[Operand, ...], str], "tuple[Kernel, Definition | None]"]


def on_cpu(function: Any, choose: Choose, symbol: str) -> tuple[Kernel, Definition | None]:
    """Computes the region by the CPU's kernels, one after the other; values between them lie in scratch memory."""
    return _OnCpu(function, choose, symbol).kernel()


class _OnCpu:
    """Lowers a region for the CPU. Its scratch memory has first all values, then what one kernel at a time needs."""

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
            base = round_up(self.values, SCRATCH_ALIGNMENT)
            self.calls += [_moved(call, inputs, outputs, base) for call in kernel.calls]
            self.extra = max(self.extra, kernel.scratch)
        for index, var in enumerate(self.results):
            if self.places[var] != Output(index):  # an input, or given twice
                self.calls.append(_moved(_copy(info_of(var).size).calls[0], [self.places[var]], [Output(index)], 0))
        scratch = round_up(self.values, SCRATCH_ALIGNMENT) + self.extra if self.extra else self.values
        return Kernel("cpu", tuple(self.calls), scratch=scratch), _together(self.symbol, self.definitions)

    def _bind(self, var: Any, expr: Any) -> tuple[Kernel, list[Argument], list[Argument]]:
        operands = site_of(expr).operands
        kernel, definition = self.choose(expr, operands, f"{self.symbol}_{var.name}")
        if definition is not None:
            self.definitions.append(definition)
        inputs = [self.places[argument] for argument in tensor_arguments(expr.args) if is_var(argument)]
        if kernel.view and var not in self.outputs:
            self.places[var] = inputs[0]
            return Kernel("view", ()), [], []
        outputs = self._take(var)
        if kernel.view:
            kernel = _copy(operands[0].info.size)
        return kernel, inputs, outputs

    def _take(self, var: Any) -> list[Argument]:
        """The places of a result, or of each field of one: an output of the region, or scratch memory."""
        if not is_tuple_type(var):
            self.places[var] = self.outputs.get(var) or self._scratch(info_of(var).size)
            return [self.places[var]]
        taken: list[Argument] = []
        for index, info in enumerate(infos_of(var)):
            user = next((v for v, e in self.bindings if _is_field(e, var, index)), None)
            place = self.outputs.get(user) or self._scratch(info.size)
            if user is not None:
                self.places[user] = place
            taken.append(place)
        return taken

    def _scratch(self, size: int) -> Scratch:
        offset = round_up(self.values, SCRATCH_ALIGNMENT)
        self.values = offset + size
        return Scratch(offset)


def _is_field(expr: Any, of: Any, index: int) -> bool:
    return is_tuple_get_item(expr) and bool(expr.tuple_value.same_as(of)) and int(expr.index) == index


def _moved(call: KernelCall, inputs: Sequence[Argument], outputs: Sequence[Argument], base: int) -> KernelCall:
    """The call with its tensors where the region has them, and its own scratch memory from ``base`` on."""

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
