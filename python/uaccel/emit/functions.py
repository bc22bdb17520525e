"""One C function a layer; layers of equal shape share the specialised code and bring their own constants."""

from __future__ import annotations

from collections import defaultdict

from uaccel.ctext.layout import wrapped, wrapped_comment
from uaccel.ctext.types import storage_type
from uaccel.emit.ahead import Ahead
from uaccel.emit.engines import engine_function
from uaccel.emit.layer_text import (
    Parameter,
    address,
    constant_name,
    function_name,
    is_untyped,
    layer_comment,
    layer_parameters,
    parameter_literal,
)
from uaccel.emit.streaming import streaming_function
from uaccel.emit.weights import ConstantPool
from uaccel.lower.program import Layer, Program
from uaccel.ops.kernel import Constant, KernelCall

Key = tuple[object, ...]


def shape_key(layer: Layer) -> Key:
    """Layers with the same key differ in nothing but their constants."""
    calls = []
    for call in layer.kernel.calls:
        arguments = [_argument_key(argument) for argument in call.arguments]
        calls.append((call.function, tuple(call.parameters.items()), tuple(arguments)))
    values = tuple(value.info.dtype for value in (*layer.inputs, *layer.outputs))
    return (tuple(calls), values, len(layer.inputs), layer.kernel.scratch > 0)


def _argument_key(argument: object) -> object:
    if isinstance(argument, Constant):
        return ("constant", argument.role, str(argument.data.dtype))
    return argument


class LayerFunctions:
    """Renders the functions of a program."""

    def __init__(self, program: Program, pool: ConstantPool, ahead: Ahead) -> None:
        self.program = program
        self.pool = pool
        self.ahead = ahead
        groups: dict[Key, list[Layer]] = defaultdict(list)
        for layer in self._layers(program):
            if not layer.is_view and layer.definition is None and not layer.on_accelerator and not layer.streaming:
                groups[shape_key(layer)].append(layer)
        self._shared = {key: layers for key, layers in groups.items() if len(layers) > 1}
        self._shared_names = {key: f"shared_by_{layers[0].name}" for key, layers in self._shared.items()}

    def render(self) -> str:
        parts = [self._shared_function(key, layers) for key, layers in self._shared.items()]
        parts += [self._own(layer) for layer in self._layers(self.program) if layer.on_accelerator or not layer.is_view]
        return "\n".join(parts)

    def of(self, layer: Layer) -> str:
        """What computes this layer: its function, the CPU's in an accelerator's place, and what it shares."""
        forms = [form for form in layer.functions if form.on_accelerator or not form.is_view]
        plain = [f for f in forms if f.definition is None and not f.on_accelerator and not f.streaming]
        keys = dict.fromkeys(shape_key(form) for form in plain)
        parts = [self._shared_function(key, self._shared[key]) for key in keys if key in self._shared]
        return "\n".join([*parts, *map(self._own, forms)])

    def _own(self, layer: Layer) -> str:
        if layer.on_accelerator:
            return engine_function(layer, self.pool, self.program.engine(layer))
        return streaming_function(layer) if layer.streaming is not None else self._function(layer)

    @staticmethod
    def _layers(program: Program) -> list[Layer]:
        """Those of the CPU in place of an accelerator included."""
        return [variant for layer in program.layers for variant in layer.functions]

    def _shared_function(self, key: Key, layers: list[Layer]) -> str:
        layer = layers[0]
        parameters = layer_parameters(layer) + self._constant_parameters(layer)
        users = ", ".join(entry.name for entry in layers)
        head = wrapped_comment([f"The same shapes and parameters in {len(layers)} layers, compiled once:", users])
        body = "".join(self._call(layer, i, call, shared=True) for i, call in enumerate(layer.kernel.calls))
        signature = wrapped(f"UACCEL_LAYER void {self._shared_names[key]}", map(str, parameters))
        return f"{head}\n{signature}\n{{\n{body}}}\n"

    @staticmethod
    def _constant_parameters(layer: Layer) -> list[Parameter]:
        return [
            Parameter(f"const {storage_type(str(argument.data.dtype))} *", constant_name(i, argument))
            for i, call in enumerate(layer.kernel.calls)
            for argument in call.arguments
            if isinstance(argument, Constant)
        ]

    def _function(self, layer: Layer) -> str:
        key = shape_key(layer)
        parameters = layer_parameters(layer)
        if layer.definition is None and key in self._shared:
            symbols = [
                self._constant(layer, i, j, argument)
                for i, call in enumerate(layer.kernel.calls)
                for j, argument in enumerate(call.arguments)
                if isinstance(argument, Constant)
            ]
            arguments = [parameter.name for parameter in parameters] + symbols
            body = wrapped(f"    {self._shared_names[key]}", arguments) + ";\n"
        else:
            calls = enumerate(layer.kernel.calls)
            body = "".join(self._call(layer, i, call) for i, call in calls)
        taken = parameters + self.ahead.parameters(layer)
        signature = wrapped(f"UACCEL_LAYER void {function_name(layer)}", map(str, taken))
        definition = f"{layer.definition.source}\n" if layer.definition else ""
        return f"{definition}{layer_comment(layer)}\n{signature}\n{{\n{body}}}\n"

    def _constant(self, layer: Layer, call: int, position: int, constant: Constant) -> str:
        return self.ahead.value(layer, self.pool.symbol(layer, call, position), str(constant.data.dtype))

    def _call(self, layer: Layer, index: int, call: KernelCall, *, shared: bool = False) -> str:
        """``shared``: in a function that is given the constants."""
        arguments = []
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, Constant):
                own = self._constant(layer, index, position, argument)
                name = constant_name(index, argument) if shared else own
                is_bool = is_untyped(layer) and str(argument.data.dtype) == "bool"
                arguments.append(f"(const bool *){name}" if is_bool else name)
            elif not isinstance(argument, (int, float)):
                arguments.append(address(layer, argument))
        if not call.struct:
            return wrapped(f"    {call.function}", arguments) + ";\n"
        structure = "parameters" if len(layer.kernel.calls) == 1 else f"parameters{index}"
        fields = _fields(call)
        definition = f"    static const struct {call.struct} {structure} = {{\n{fields}    }};\n"
        return definition + wrapped(f"    {call.function}", [f"&{structure}", *arguments]) + ";\n"


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
