"""One C function a layer; layers of equal shape share the specialised code and bring their own constants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from uaccel.emit.ctext import c_type, parameter_literal, quoted, wrapped, wrapped_comment
from uaccel.emit.weights import ConstantPool
from uaccel.lower.program import Layer, Program, Value
from uaccel.ops.kernel import Argument, Constant, Input, KernelCall, Output, Scratch

Key = tuple[object, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a layer's function."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}{self.name}" if self.type.endswith("*") else f"{self.type} {self.name}"


def layer_parameters(layer: Layer) -> list[Parameter]:
    """Typed pointers; ``void *`` for a function of TVM's, which has types of its own."""
    if layer.definition is not None:
        inputs = [Parameter("const void *", f"input{i}") for i in range(len(layer.inputs))]
        outputs = [Parameter("void *", f"output{i}") for i in range(len(layer.outputs))]
        return [*inputs, *outputs, *_scratch_parameter(layer)]
    inputs = [Parameter(f"const {c_type(v.info.dtype)} *", f"input{i}") for i, v in enumerate(layer.inputs)]
    outputs = [Parameter(f"{c_type(v.info.dtype)} *", f"output{i}") for i, v in enumerate(layer.outputs)]
    return [*inputs, *outputs, *_scratch_parameter(layer)]


def _scratch_parameter(layer: Layer) -> list[Parameter]:
    return [Parameter("void *", "scratch")] if layer.kernel.scratch else []


def shape_key(layer: Layer) -> Key:
    """Layers with the same key differ in nothing but their constants."""
    calls = []
    for call in layer.kernel.calls:
        arguments = [_argument_key(argument) for argument in call.arguments]
        calls.append((call.function, tuple(call.parameters.items()), tuple(arguments)))
    values = tuple(value.info.dtype for value in (*layer.inputs, *layer.outputs))
    return (tuple(calls), values, len(layer.inputs), layer.kernel.scratch > 0)


def _argument_key(argument: Argument) -> object:
    if isinstance(argument, Constant):
        return ("constant", argument.role, str(argument.data.dtype))
    return argument


class LayerFunctions:
    """Renders the functions of a program."""

    def __init__(self, program: Program, pool: ConstantPool) -> None:
        self.program = program
        self.pool = pool
        groups: dict[Key, list[Layer]] = defaultdict(list)
        for layer in program.layers:
            if not layer.is_view and layer.definition is None:
                groups[shape_key(layer)].append(layer)
        self._shared = {key: layers for key, layers in groups.items() if len(layers) > 1}
        self._shared_names = {key: f"shared_by_{layers[0].name}" for key, layers in self._shared.items()}

    def render(self) -> str:
        parts = [self._shared_function(key, layers) for key, layers in self._shared.items()]
        parts += [self._function(layer) for layer in self.program.layers if not layer.is_view]
        return "\n".join(parts)

    def _shared_function(self, key: Key, layers: list[Layer]) -> str:
        layer = layers[0]
        parameters = layer_parameters(layer) + self._constant_parameters(layer)
        users = ", ".join(entry.name for entry in layers)
        head = wrapped_comment([f"The same shapes and parameters in {len(layers)} layers, compiled once:", users])
        body = "".join(self._call(layer, i, call, constants=None) for i, call in enumerate(layer.kernel.calls))
        signature = wrapped(f"static UACCEL_SHARED void {self._shared_names[key]}", map(str, parameters))
        return f"{head}\n{signature}\n{{\n{body}}}\n"

    @staticmethod
    def _constant_parameters(layer: Layer) -> list[Parameter]:
        return [
            Parameter(f"const {c_type(str(argument.data.dtype))} *", _constant_name(i, argument))
            for i, call in enumerate(layer.kernel.calls)
            for argument in call.arguments
            if isinstance(argument, Constant)
        ]

    def _function(self, layer: Layer) -> str:
        key = shape_key(layer)
        parameters = layer_parameters(layer)
        if layer.definition is None and key in self._shared:
            symbols = [
                self.pool.symbol(layer, i, j)
                for i, call in enumerate(layer.kernel.calls)
                for j, argument in enumerate(call.arguments)
                if isinstance(argument, Constant)
            ]
            arguments = [parameter.name for parameter in parameters] + symbols
            body = wrapped(f"    {self._shared_names[key]}", arguments) + ";\n"
        else:
            calls = enumerate(layer.kernel.calls)
            body = "".join(self._call(layer, i, call, constants=self.pool) for i, call in calls)
        signature = wrapped(f"static void {function_name(layer)}", map(str, parameters))
        definition = f"{layer.definition.source}\n" if layer.definition else ""
        return f"{definition}{layer_comment(layer)}\n{signature}\n{{\n{body}}}\n"

    def _call(self, layer: Layer, index: int, call: KernelCall, constants: ConstantPool | None) -> str:
        arguments = []
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, Constant):
                name = constants.symbol(layer, index, position) if constants else _constant_name(index, argument)
                arguments.append(name)
            else:
                arguments.append(_address(layer, argument))
        if not call.struct:
            return wrapped(f"    {call.function}", arguments) + ";\n"
        structure = "parameters" if len(layer.kernel.calls) == 1 else f"parameters{index}"
        fields = _fields(call)
        definition = f"    static const struct {call.struct} {structure} = {{\n{fields}    }};\n"
        return definition + wrapped(f"    {call.function}", [f"&{structure}", *arguments]) + ";\n"


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


def _constant_name(call: int, constant: Constant) -> str:
    return f"{constant.role}{call}" if call else constant.role


def _address(layer: Layer, argument: Input | Output | Scratch) -> str:
    if isinstance(argument, Scratch):
        return f"(uint8_t *)scratch + {argument.offset}" if argument.offset else "scratch"
    side, values = ("input", layer.inputs) if isinstance(argument, Input) else ("output", layer.outputs)
    name = f"{side}{argument.index}"
    elements = argument.offset // values[argument.index].info.itemsize
    return f"{name} + {elements}" if elements else name


def _fields(call: KernelCall) -> str:
    """Designated initialisers, a few a line; zeros are said too, since a reader looks for them."""
    items = [f".{name} = {parameter_literal(value)}" for name, value in call.parameters.items()]
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > 95:
            lines.append(line)
            line = ""
        line = f"{line}, {item}" if line else item
    lines.append(line)
    return "".join(f"        {entry},\n" for entry in lines if entry)
