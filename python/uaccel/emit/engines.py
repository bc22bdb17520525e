"""The functions of layers that accelerators compute, and what surrounds them: hooks, errors, the CPU in their place."""

from __future__ import annotations

from collections.abc import Sequence

from uaccel.ctext.layout import wrapped
from uaccel.emit.layer_text import Parameter, address, function_name, layer_comment, layer_parameters, parameter_literal
from uaccel.emit.weights import ConstantPool
from uaccel.lower.program import Engine, Layer
from uaccel.ops.kernel import Argument, Constant, Input, KernelCall, Output, Scratch


def hook(engine: Engine, what: str) -> str:
    """microTVM's name of a device hook."""
    return f"TVMDevice{engine.hook}{what}"


def is_activated(engine: Engine) -> bool:
    return "Activate" in engine.hooks


def engine_function(layer: Layer, pool: ConstantPool, engine: Engine) -> str:
    """Opens the device, calls its driver until an error, closes the device; returns 0 or the first error."""
    tensors = layer_parameters(layer)
    parameters = [*([Parameter("void *", "device")] if engine.has_device else []), *tensors]
    signature = wrapped(f"UACCEL_LAYER int32_t {function_name(layer)}", map(str, parameters))
    used = {_parameter_of(argument) for call in layer.kernel.calls for argument in call.arguments}
    used |= {"device"} & {"device" for what in ("Open", "Close") if what in engine.hooks}
    lines = [f"    (void){parameter.name};" for parameter in parameters if parameter.name not in used]
    opened = f"{hook(engine, 'Open')}(device)" if "Open" in engine.hooks else "0"
    lines += [f"    int32_t status = {opened};", "    if (status == 0) {"]
    for index, call in enumerate(layer.kernel.calls):
        arguments = _arguments(layer, pool, index, call)
        text = (
            wrapped(f"        status = {call.function}", arguments)
            if arguments
            else f"        status = {call.function}()"
        ) + ";"
        lines += [text] if index == 0 else ["        if (status == 0) {", _indented(text), "        }"]
    if "Close" in engine.hooks:
        lines += [
            f"        const int32_t closed = {hook(engine, 'Close')}(device);",
            "        status = status != 0 ? status : closed;",
        ]
    lines += ["    }", "    return status;"]
    definition = f"{layer.definition.source}\n" if layer.definition else ""
    body = "\n".join(lines)
    return f"{definition}{layer_comment(layer)}\n{signature}\n{{\n{body}\n}}\n"


def _parameter_of(argument: Argument | int | float) -> str:
    """The parameter of the layer's function that an argument is made of, if any."""
    if isinstance(argument, Scratch):
        return "scratch"
    if isinstance(argument, (Input, Output)):
        return f"{argument.KIND}{argument.index}"
    return ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _arguments(layer: Layer, pool: ConstantPool, index: int, call: KernelCall) -> list[str]:
    """Tensors and constants are pointers of their element type: a driver that wants another one does not compile."""
    found = []
    for position, argument in enumerate(call.arguments):
        if isinstance(argument, (int, float)):
            found.append(parameter_literal(argument))
        elif isinstance(argument, Constant):
            found.append(pool.symbol(layer, index, position))
        else:
            found.append(address(layer, argument))
    return found


def activated(engines: Sequence[Engine], first: dict[str, int], inner: str, indent: str = "    ") -> list[str]:
    """``status`` of ``inner`` between the engines' activation and deactivation; an error of one skips the rest.

    ``first``: the layer that is named when an engine does not start, by engine.
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
    """A device that came back from wherever it was knows nothing of what it was told in between: look who is there."""
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
