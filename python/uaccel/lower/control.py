"""Control flow as a layer: C of ``if`` and ``while`` that calls the layers of its functions.

The tensors of a function lie in the layer's scratch memory, planned as a program's are. Only one function runs at a
time, so that they share it. What it takes is copied in, and what it gives is copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uaccel.lower.placement import Placement, place
from uaccel.lower.program import Layer, Program, Value
from uaccel.model import ImportedModel, Signature, TensorInfo, TensorSpec, unique_names
from uaccel.ops.base import Operand, operand_arguments
from uaccel.ops.control import PARTS, ControlAttrs, Kind, parts_of, signature_of
from uaccel.ops.kernel import Definition, Kernel, KernelCall, Output, Scratch

HEADERS = ("string.h", "stdbool.h", "stdint.h")
Lower = Callable[[ImportedModel, str], Program]


@dataclass(frozen=True)
class ControlStep:
    kernel: Kernel
    definition: Definition
    inner: tuple[Layer, ...]


def control_step(
    attrs: ControlAttrs, operands: Sequence[Operand], outputs: Sequence[TensorInfo], symbol: str, lower: Lower
) -> ControlStep:
    """``symbol``: the C function's name. ``lower`` gives the program of a function."""
    kind = Kind(attrs.kind)
    names = [f"{symbol}_{part}" for part in PARTS[kind]]
    first, second = (
        _part(lower(_model(module, name), name), name) for module, name in zip(parts_of(attrs), names, strict=True)
    )
    sizes = [operand.info.size for operand in operands]
    body = _choice(first, second, sizes) if kind is Kind.IF else _loop(first, second, sizes)
    parameters = [f"const void *in{i}" for i in range(len(operands))]
    parameters += [f"void *out{i}" for i in range(len(outputs))]
    head = f"static void {symbol}({', '.join([*parameters, 'uint8_t *scratch'])})"
    source = "\n".join([head, "{", *(f"    {line}" for line in body), "}", ""])
    arguments = operand_arguments(operands, [f"constant{i}" for i in range(len(operands))])
    arguments += [*(Output(i) for i in range(len(outputs))), Scratch()]
    kernel = Kernel(
        "control",
        (KernelCall(symbol, "", "", {}, tuple(arguments)),),
        scratch=max(8, first.placement.arena, second.placement.arena),
    )
    return ControlStep(kernel, Definition(symbol, source, HEADERS), (*first.layers, *second.layers))


@dataclass(frozen=True)
class _Part:
    """A function of the model, lowered; its layers have names that no other has."""

    program: Program
    placement: Placement
    layers: tuple[Layer, ...]

    def calls(self) -> list[str]:
        return [f"{self._call(layer)};" for layer in self.layers if not layer.is_view]

    def _call(self, layer: Layer) -> str:
        arguments = [self.at(value) for value in (*layer.inputs, *layer.outputs)]
        if layer.kernel.scratch:
            arguments.append(_memory(self.placement.scratch[layer.index].offset))
        return f"layer_{layer.name}({', '.join(arguments)})"

    def at(self, value: Value) -> str:
        return _memory(self.placement.places[value.name].offset)


def _memory(offset: int) -> str:
    return f"(void *)(scratch + {offset})" if offset else "(void *)scratch"


def _part(program: Program, prefix: str) -> _Part:
    layers = tuple(replace(layer, name=f"{prefix}_{layer.name}") for layer in program.layers)
    return _Part(program, place(program, workspace_io=True), layers)


def _model(module: Any, name: str) -> ImportedModel:
    taken, given = signature_of(module)
    parameters = [parameter.name for parameter in module["main"].params]
    inputs = tuple(TensorSpec(n, info) for n, info in zip(unique_names(parameters), taken, strict=True))
    outputs = tuple(TensorSpec(f"result_{i}", info) for i, info in enumerate(given))
    return ImportedModel(name, "relax", "", module, Signature(inputs, outputs), {}, {})


def _copies(targets: Sequence[str], sources: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [f"memcpy({to}, {of}, {size});" for to, of, size in zip(targets, sources, sizes, strict=True)]


def _run(part: _Part, sources: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [*_copies([part.at(value) for value in part.program.inputs], sources, sizes), *part.calls()]


def _given(part: _Part) -> list[str]:
    """Copies of the results into the layer's outputs."""
    values = part.program.outputs
    targets = [f"out{i}" for i in range(len(values))]
    return _copies(targets, [part.at(value) for value in values], [value.info.size for value in values])


def _choice(then: _Part, otherwise: _Part, sizes: Sequence[int]) -> list[str]:
    sources = [f"in{i + 1}" for i in range(len(sizes) - 1)]
    blocks = [[*_run(part, sources, sizes[1:]), *_given(part)] for part in (then, otherwise)]
    return [
        "if (*(const uint8_t *)in0 != 0) {",
        *(f"    {line}" for line in blocks[0]),
        "} else {",
        *(f"    {line}" for line in blocks[1]),
        "}",
    ]


def _loop(condition: _Part, body: _Part, sizes: Sequence[int]) -> list[str]:
    """What the body gives lies in the outputs between its turns."""
    state = [f"out{i}" for i in range(len(sizes))]
    return [
        *_copies(state, [f"in{i}" for i in range(len(sizes))], sizes),
        "for (;;) {",
        *(f"    {line}" for line in _run(condition, state, sizes)),
        f"    if (*(const uint8_t *){condition.at(condition.program.outputs[0])} == 0) {{",
        "        return;",
        "    }",
        *(f"    {line}" for line in [*_run(body, state, sizes), *_given(body)]),
        "}",
    ]
