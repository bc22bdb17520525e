"""A schedule as a C function over the driver's intrinsics, for a reader as much as for a compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uaccel.accelerator.tensor.expression import Value
from uaccel.accelerator.tensor.loops import Assign, Command, Let, Loop, Statement, When
from uaccel.accelerator.tensor.machine import Machine
from uaccel.accelerator.tensor.schedule import INPUT, OUTPUT, PARAMETERS, WEIGHTS, constants_bytes, schedule
from uaccel.accelerator.tensor.tiling import Tiled
from uaccel.ctext.layout import wrapped, wrapped_comment

PARAMETER_LIST = (
    f"const int8_t *{INPUT}",
    f"const int8_t *{WEIGHTS}",
    f"const int32_t *{PARAMETERS}",
    f"int8_t *{OUTPUT}",
)


def function_text(name: str, tiled: Tiled, comment: Sequence[str]) -> str:
    """The function: it returns 0, or the driver's error."""
    machine, layer = tiled.machine, tiled.layer
    weight_bytes, parameter_bytes = constants_bytes(tiled)
    shared = {INPUT: layer.input.bytes, WEIGHTS: weight_bytes, PARAMETERS: parameter_bytes}
    shared[OUTPUT] = layer.output.bytes
    lines = [f"    {machine.intrinsic('begin')}();"]
    lines += [f"    {machine.intrinsic('share')}({name}, {size});" for name, size in shared.items()]
    lines += body_lines(machine, schedule(tiled), 1)
    lines.append(f"    return {machine.intrinsic('finish')}({OUTPUT}, {layer.output.bytes});")
    head = wrapped(f"static int32_t {name}", PARAMETER_LIST)
    return "\n".join([wrapped_comment(comment, indent=4), head, "{", *lines, "}", ""])


def body_lines(machine: Machine, statements: Iterable[Statement], depth: int) -> list[str]:
    indent = "    " * depth
    lines: list[str] = []
    for statement in statements:
        if isinstance(statement, Let):
            kind = "int32_t" if statement.variable else "const int32_t"
            lines.append(f"{indent}{kind} {statement.name} = {statement.value};")
        elif isinstance(statement, Assign):
            lines.append(f"{indent}{statement.name} = {statement.value}; /* {statement.why} */")
        elif isinstance(statement, Command):
            arguments = [_argument(machine, name, value) for name, value in statement.arguments.items()]
            lines.append(wrapped(f"{indent}{machine.intrinsic(statement.intrinsic)}", arguments) + ";")
        else:
            lines += [f"{indent}{_head(statement)} {{", *body_lines(machine, statement.body, depth + 1), f"{indent}}}"]
    return lines


def _head(statement: Loop | When) -> str:
    if isinstance(statement, When):
        return f"if ({statement.condition})"
    name, step = statement.name, statement.step
    advance = f"++{name}" if step == 1 else f"{name} += {step}"
    return f"for (int32_t {name} = 0; {name} < {statement.stop}; {advance})"


def _argument(machine: Machine, name: str, value: Value | str) -> str:
    return f"{machine.name}_{value}".upper() if name == "memory" else str(value)
