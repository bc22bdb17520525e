"""What every layer's function has: parameters, a comment, the addresses of what its calls are given."""

from __future__ import annotations

from dataclasses import dataclass

from uaccel.ctext.layout import quoted, wrapped_comment
from uaccel.ctext.literals import float_literal, int_literal
from uaccel.ctext.types import storage_type
from uaccel.lower.program import Layer, Value
from uaccel.ops.kernel import Constant, Input, Output, ParameterValue, Scratch


@dataclass(frozen=True)
class Parameter:
    """A parameter of a layer's function."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}{self.name}" if self.type.endswith("*") else f"{self.type} {self.name}"


def is_untyped(layer: Layer) -> bool:
    """A function of TVM's has types of its own."""
    return layer.definition is not None and not layer.on_accelerator


def layer_parameters(layer: Layer) -> list[Parameter]:
    """Typed pointers, or ``void *``."""
    found = []
    for side, values, const in (("input", layer.inputs, "const "), ("output", layer.outputs, "")):
        types = ["void" if is_untyped(layer) else storage_type(value.info.dtype) for value in values]
        found += [Parameter(f"{const}{kind} *", f"{side}{i}") for i, kind in enumerate(types)]
    return found + ([Parameter("void *", "scratch")] if layer.kernel.scratch else [])


def function_name(layer: Layer) -> str:
    return f"layer_{layer.name}"


def layer_comment(layer: Layer) -> str:
    """Layer, shapes, quantisation and engine."""
    origin = layer.origin
    source = f"operator {origin.index} of the model, {origin.op}" if origin.index >= 0 else "added by the compiler"
    lines = [f"{layer.name}: {source}"]
    lines.append(f"  tensor  {quoted(layer.origin.tensor)}")
    lines += [f"  input   {_describe(value)}" for value in layer.inputs]
    lines += [f"  output  {_describe(value)}" for value in layer.outputs]
    lines.append(f"  engine  {layer.engine}: {layer.reason}")
    if layer.macs:
        lines.append(f"  work    {layer.macs} multiply-accumulates")
    return wrapped_comment(lines, indent=10)


def _describe(value: Value) -> str:
    quantisation = value.spec.quantisation
    return f"{value.info}" + (f", {quantisation}" if quantisation else "")


def parameter_literal(value: ParameterValue) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(parameter_literal(v) for v in value) + "}"
    if isinstance(value, float):
        return float_literal(value, "float32")
    if 1 << 31 <= value < 1 << 32:  # the fields that hold such values are bytes side by side
        return f"0x{value:08X}u"
    return int_literal(value)


def constant_name(call: int, constant: Constant) -> str:
    return f"{constant.role}{call}" if call else constant.role


def address(layer: Layer, argument: Input | Output | Scratch) -> str:
    """In the layer's function, whose parameters have the tensors' types, or none at all where TVM made its code."""
    if isinstance(argument, Scratch):
        return f"(void *)((uint8_t *)scratch + {argument.offset})" if argument.offset else "scratch"
    side, values = ("input", layer.inputs) if isinstance(argument, Input) else ("output", layer.outputs)
    name = f"{side}{argument.index}"
    if argument.offset and is_untyped(layer):
        const = "const " if isinstance(argument, Input) else ""
        return f"({const}void *)(({const}uint8_t *){name} + {argument.offset})"
    elements = argument.offset // values[argument.index].info.itemsize
    return f"{name} + {elements}" if elements else name
