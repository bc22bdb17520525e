"""Prints a C function for each layer: on the CPU by kernel calls, on an accelerator by calls of its driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from uaccel.codegen.layer_text import (
    Parameter,
    constant_name,
    function_name,
    is_untyped,
    layer_comment,
    layer_parameters,
    parameter_address,
    parameter_literal,
    streaming_function,
)
from uaccel.codegen.weights import ConstantPool, PrefetchPlan
from uaccel.lower.placement import ELEMENT_ALIGNMENT
from uaccel.lower.program import Engine, Layer, Program
from uaccel.ops.kernel import KINDS, Argument, Constant, Input, KernelCall, Output, Scratch
from uaccel.util.c_text import storage_type, wrap_call, wrapped_comment

# Layers of accelerators: device hooks around driver calls, errors, and recovery after a failure.


def hook(engine: Engine, what: str) -> str:
    """The name of a device hook by microTVM's rule."""
    return f"TVMDevice{engine.hook}{what}"


def is_activated(engine: Engine) -> bool:
    return "Activate" in engine.hooks


def engine_function(layer: Layer, pool: ConstantPool, engine: Engine) -> str:
    """The C function that opens the device, calls its driver until an error, and closes the device. It returns 0 or the
    first error."""
    tensors = layer_parameters(layer)
    parameters = [*([Parameter("void *", "device")] if engine.has_device else []), *tensors]
    signature = wrap_call(f"UACCEL_LAYER int32_t {function_name(layer)}", map(str, parameters))
    used = {_parameter_of(argument) for call in layer.kernel.calls for argument in call.arguments}
    used |= {"device"} & {"device" for what in ("Open", "Close") if what in engine.hooks}
    lines = [f"    (void){parameter.name};" for parameter in parameters if parameter.name not in used]
    checks = _checked_addresses(layer, pool, engine)
    opened = f"{hook(engine, 'Open')}(device)" if "Open" in engine.hooks else "0"
    lines += [*checks, f"    int32_t status = {opened};", "    if (status == 0) {"]
    for index, call in enumerate(layer.kernel.calls):
        arguments = _arguments(layer, pool, index, call)
        text = (
            wrap_call(f"        status = {call.function}", arguments)
            if arguments
            else f"        status = {call.function}()"
        ) + ";"
        lines += [text] if index == 0 else ["        if (status == 0) {", _indented(text), "        }"]
    if "Close" in engine.hooks:
        lines += [
            f"        const int32_t closed = {hook(engine, 'Close')}(device);",
            "        status = status != 0 ? status : closed;",
        ]
    lines += ["    }", f"    return {'UACCEL_ACCOUNT_ADDRESSES(status)' if checks else 'status'};"]
    definition = f"{layer.definition.source}\n" if layer.definition else ""
    body = "\n".join(lines)
    return f"{definition}{layer_comment(layer)}\n{signature}\n{{\n{body}\n}}\n"


def _checked_addresses(layer: Layer, pool: ConstantPool, engine: Engine) -> list[str]:
    """The C lines that check each address that the driver gets, in firmware that is watched. Addresses that a driver
    works out itself are checked where it asks for them, and where it gives them to the device
    (firmware/ports/hal_host). All tensors are aligned to words."""
    if not engine.has_device or engine.alignment <= ELEMENT_ALIGNMENT:
        return []
    found: dict[str, None] = {}
    for index, call in enumerate(layer.kernel.calls):
        written = _arguments(layer, pool, index, call)
        pairs = zip(written, call.arguments, strict=True)
        found |= {text: None for text, argument in pairs if not isinstance(argument, (int, float))}
    pointers = [text if text.isidentifier() else f"({text})" for text in found]
    lines = [f"    UACCEL_ACCOUNT_ADDRESS((uintptr_t){pointer});" for pointer in pointers]
    return [f"    UACCEL_ACCOUNT_ALIGNMENT({engine.alignment});", *lines]


def _parameter_of(argument: Argument | int | float) -> str:
    """The parameter of the layer's function that an argument is made of, if any."""
    if isinstance(argument, Scratch):
        return "scratch"
    if isinstance(argument, (Input, Output)):
        return f"{KINDS[type(argument)]}{argument.index}"
    return ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _arguments(layer: Layer, pool: ConstantPool, index: int, call: KernelCall) -> list[str]:
    """A driver call's arguments. Tensors and constants are pointers of their element type: a driver that wants another
    type does not compile."""
    found = []
    for position, argument in enumerate(call.arguments):
        if isinstance(argument, (int, float)):
            found.append(parameter_literal(argument))
        elif isinstance(argument, Constant):
            found.append(pool.symbol(layer, index, position))
        else:
            found.append(parameter_address(layer, argument))
    return found


def activated(engines: Sequence[Engine], first: dict[str, int], inner: str, indent: str = "    ") -> list[str]:
    """The C lines that set ``status`` to ``inner``'s result between the engines' activation and deactivation.

    Nested, an engine a level: an engine that does not start skips the inner ones and ``inner``; those outside of it are
    still deactivated, in reverse order. ``first`` gives for each engine the layer that is named if it does not start.
    """
    if not engines:
        return [f"{indent}status = {inner};"]
    engine, *others = engines
    device = f"devices->{engine.name}"
    ended = [f"(void){hook(engine, 'Deactivate')}({device});"] if "Deactivate" in engine.hooks else []
    if "Activate" not in engine.hooks:
        return [*activated(others, first, inner, indent), *(f"{indent}{line}" for line in ended)]
    return [
        f"{indent}UACCEL_ACCOUNT_LAYER({first[engine.name]});",
        f"{indent}status = {hook(engine, 'Activate')}({device});",
        f"{indent}if (status != 0) {{",
        f"{indent}    status = uaccel_layer_failed({first[engine.name]}, status);",
        f"{indent}}} else {{",
        *activated(others, first, inner, indent + "    "),
        *(f"{indent}    {line}" for line in ended),
        f"{indent}}}",
    ]


def found_again(engine: Engine) -> str:
    """The C function that restarts a device after a failed call: it deactivates the device and activates it again. One
    that hung or was reset may have lost its state."""
    ended = f"    (void){hook(engine, 'Deactivate')}(device);\n" if "Deactivate" in engine.hooks else ""
    return f"""/* After a failure: whether the device may be called again. `status` is of its activation. */
static int32_t {engine.name}_found_again(int32_t status, void *device)
{{
    if (status != 0) {{
        return status;
    }}
{ended}    return {hook(engine, "Activate")}(device);
}}
"""


# Layers of the CPU: one function each. Layers that differ in their constants alone share a function with the kernel
# calls, so that a compiler specialises the kernel once; each layer's own function passes its constants to it.

Key = tuple[object, ...]


def shape_key(layer: Layer) -> Key:
    """The key of a layer; layers with equal keys differ in nothing but the contents of their constants."""
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
    """Prints the functions of a program's layers."""

    def __init__(self, program: Program, pool: ConstantPool, ahead: PrefetchPlan) -> None:
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

    def of(self, layer: Layer) -> list[str]:
        """All functions that compute this layer: its own, the CPU's fallback, and those that it shares with others."""
        forms = [form for form in layer.functions if form.on_accelerator or not form.is_view]
        plain = [f for f in forms if f.definition is None and not f.on_accelerator and not f.streaming]
        keys = dict.fromkeys(shape_key(form) for form in plain)
        parts = [self._shared_function(key, self._shared[key]) for key in keys if key in self._shared]
        return [*parts, *map(self._own, forms)]

    def _own(self, layer: Layer) -> str:
        if layer.on_accelerator:
            return engine_function(layer, self.pool, self.program.engine(layer))
        return streaming_function(layer) if layer.streaming is not None else self._function(layer)

    @staticmethod
    def _layers(program: Program) -> list[Layer]:
        """All layers, including the CPU's fallbacks of accelerators' layers."""
        return [variant for layer in program.layers for variant in layer.functions]

    def _shared_function(self, key: Key, layers: list[Layer]) -> str:
        layer = layers[0]
        parameters = layer_parameters(layer) + self._constant_parameters(layer)
        users = ", ".join(entry.name for entry in layers)
        head = wrapped_comment([f"The same shapes and parameters in {len(layers)} layers, compiled once:", users])
        body = "".join(self._call(layer, i, call, shared=True) for i, call in enumerate(layer.kernel.calls))
        signature = wrap_call(f"UACCEL_LAYER void {self._shared_names[key]}", map(str, parameters))
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
            body = wrap_call(f"    {self._shared_names[key]}", arguments) + ";\n"
        else:
            calls = enumerate(layer.kernel.calls)
            body = "".join(self._call(layer, i, call) for i, call in calls)
        taken = parameters + self.ahead.parameters(layer)
        signature = wrap_call(f"UACCEL_LAYER void {function_name(layer)}", map(str, taken))
        definition = f"{layer.definition.source}\n" if layer.definition else ""
        return f"{definition}{layer_comment(layer)}\n{signature}\n{{\n{body}}}\n"

    def _constant(self, layer: Layer, call: int, position: int, constant: Constant) -> str:
        return self.ahead.value(layer, self.pool.symbol(layer, call, position), str(constant.data.dtype))

    def _call(self, layer: Layer, index: int, call: KernelCall, *, shared: bool = False) -> str:
        """One kernel call in C. ``shared``: inside a function that gets the constants as parameters."""
        arguments = []
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, Constant):
                own = self._constant(layer, index, position, argument)
                name = constant_name(index, argument) if shared else own
                is_bool = is_untyped(layer) and str(argument.data.dtype) == "bool"
                arguments.append(f"(const bool *){name}" if is_bool else name)
            elif not isinstance(argument, (int, float)):
                arguments.append(parameter_address(layer, argument))
        if not call.struct:
            return wrap_call(f"    {call.function}", arguments) + ";\n"
        structure = "parameters" if len(layer.kernel.calls) == 1 else f"parameters{index}"
        fields = _fields(call)
        definition = f"    static const struct {call.struct} {structure} = {{\n{fields}    }};\n"
        return definition + wrap_call(f"    {call.function}", [f"&{structure}", *arguments]) + ";\n"


def _fields(call: KernelCall) -> str:
    """Designated initialisers, several a line; zeros are written, too, since a reader looks for them."""
    items = [f".{name} = {parameter_literal(value)}" for name, value in call.parameters.items()]
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > 95:
            lines.append(line)
            line = ""
        line = f"{line}, {item}" if line else item
    lines.append(line)
    return "".join(f"        {entry},\n" for entry in lines if entry)
