"""What lasts from one inference to the next: memory of its own, and a function that sets it to its first values."""

from __future__ import annotations

from uaccel.ctext.layout import quoted
from uaccel.emit.options import Names
from uaccel.emit.weights import ConstantPool
from uaccel.lower.placement import Placement
from uaccel.lower.program import Program, StateValue

FIELD = "state"


def state_size(names: Names) -> str:
    return f"{names.macro}_STATE_SIZE"


def state_interface(program: Program, placement: Placement, names: Names) -> str:
    """Of the header; nothing where no tensor lasts."""
    if not program.state:
        return ""
    return (
        "/* Bytes of the state, in which the model keeps what one inference leaves to the next: */\n"
        + "".join(f"{_line(entry)}\n" for entry in program.state)
        + f"#define {state_size(names)} {placement.state}\n\n"
        "/* Begin anew: the state is set to what it holds before the first inference, which does so by itself. After\n"
        " * an inference that failed, the state means nothing until then. */\n"
        f"void {names.prefix}_reset(void);\n"
    )


def _line(entry: StateValue) -> str:
    spec = entry.spec.spec
    quantisation = f", {spec.quantisation}" if spec.quantisation else ""
    return f"/*   {quoted(spec.name)}: {spec.info}{quantisation} */"


def state_memory(program: Program, placement: Placement, names: Names, pool: ConstantPool) -> str:
    """Of the executor: the array, and the function."""
    if not program.state:
        return ""
    lines = [f"    {_fill(entry, placement, pool)}" for entry in program.state]
    return (
        "#ifndef UACCEL_STATE\n#define UACCEL_STATE\n#endif\n\n"
        "/* What lasts from one inference to the next; UACCEL_STATE may place it in a memory of your choice. */\n"
        f"static UACCEL_STATE UACCEL_ALIGNED(16) uint8_t {FIELD}[{state_size(names)}];\n"
        f"static bool {FIELD}_is_set;\n"
        f"#define STATE(offset) ((void *)({FIELD} + (offset)))\n\n"
        f"void {names.prefix}_reset(void)\n{{\n" + "\n".join(lines) + f"\n    {FIELD}_is_set = true;\n}}\n"
    )


def _fill(entry: StateValue, placement: Placement, pool: ConstantPool) -> str:
    offset, size = placement.places[entry.before.name].offset, entry.before.info.size
    symbol = pool.first_value(entry)
    if symbol:
        return f"memcpy(STATE({offset}), {symbol}, {size});"
    return f"memset(STATE({offset}), {entry.spec.initial.tobytes()[0]}, {size});"


def begin_state(program: Program, names: Names) -> list[str]:
    """Of the run function, before its first layer."""
    if not program.state:
        return []
    return [f"    if (!{FIELD}_is_set) {{", f"        {names.prefix}_reset();", "    }"]
