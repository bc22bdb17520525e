"""An input that the application hands over some rows at a time: the function that takes them, and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from uaccel.ctext.layout import quoted, wrapped
from uaccel.emit.address import address
from uaccel.emit.layer_text import function_name
from uaccel.emit.options import EmitOptions, Names
from uaccel.emit.streaming import FEED, UNREAD
from uaccel.lower.placement import Placement
from uaccel.lower.program import Layer, Program, Streaming, Value

Of = TypeVar("Of")


def fed_layer(program: Program) -> Layer | None:
    """The layer that is given an input's rows."""
    return program.layers[0] if program.fed is not None else None


def held_of(program: Program, of_inputs: Sequence[Of]) -> tuple[Of, ...]:
    """What belongs to inputs that lie in memory as a whole, of something that there is for each."""
    pairs = zip(program.inputs, of_inputs, strict=True)
    return tuple(some for value, some in pairs if value != program.fed)


def feed_interface(program: Program, names: Names, options: EmitOptions) -> str:
    """Of the header."""
    layer = fed_layer(program)
    if layer is None:
        return ""
    fed, macro = _fed(layer), names.macro
    spec = program.signature.inputs[program.inputs.index(fed)]
    quantisation = f", {spec.quantisation}" if spec.quantisation else ""
    return (
        f"/* Rows of {quoted(spec.name)}: {spec.info}{quantisation}; bytes of each. */\n"
        f"#define {macro}_FEED_ROWS {fed.info.shape[1]}\n"
        f"#define {macro}_FEED_ROW_SIZE {fed.info.size // fed.info.shape[1]}\n"
        "/* What feed and run return besides. */\n"
        f"#define {macro}_ROWS_MISSING (-2) /* run: not all rows were handed over */\n"
        f"#define {macro}_TOO_MANY_ROWS (-3) /* feed: more rows than there are; none of them was taken */\n\n"
        "/* Takes the next rows of the input, from the top, as many as there are; when all were handed over, run\n"
        " * computes the rest, and the next rows are another inference's. Rows are not kept and need no alignment.\n"
        " * Outputs in the workspace are lost. NULL for rows: begin anew, forget those that were handed over. */\n"
        f"{feed_head(names, options)};\n"
    )


def feed_head(names: Names, options: EmitOptions) -> str:
    """As the header declares it and the executor defines it."""
    pools = [f"struct {names.prefix}_workspace_pools *workspace_pools"] if options.given_pools else []
    return wrapped(f"int32_t {names.prefix}_feed", ["const void *rows", "size_t count", *pools])


def feed_memory(program: Program) -> str:
    """Of the executor, before the layers: how far the rows have come."""
    layer = fed_layer(program)
    if layer is None:
        return ""
    cursors = "".join(f"    size_t {cursor.name};\n" for cursor in _streaming(layer).cursors)
    return (
        "/* How far the rows have come that are handed over. */\n"
        "static struct {\n"
        "    size_t rows; /* that were handed over */\n"
        "    size_t step; /* that comes next */\n"
        "    size_t missing; /* bytes until then */\n"
        "    size_t place; /* of them in the buffer; or nobody reads them */\n"
        f"{cursors}}} {FEED};\n"
        f"#define {UNREAD} SIZE_MAX\n"
    )


def feed_function(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    layer = fed_layer(program)
    if layer is None:
        return ""
    scratch = placement.scratch[layer.index]
    outputs = [placement.places[value.name] for value in layer.outputs]
    used = [pool for pool in options.given_pools if any(place.pool in ("", pool) for place in (scratch, *outputs))]
    call = f"{function_name(layer)}({', '.join(address(place, options) for place in (*outputs, scratch))});"
    absent = " || ".join(["workspace_pools == NULL", *(f"workspace_pools->{pool} == NULL" for pool in used)])
    check = [f"    if ({absent}) {{", f"        return {names.macro}_NULL_POINTER;", "    }"] if used else []
    workspace = [f"    uint8_t *const {options.array(names, pool)} = workspace_pools->{pool};" for pool in used]
    lines = [
        *check,
        *workspace,
        "    const uint8_t *from = rows;",
        f"    size_t bytes = count * {names.macro}_FEED_ROW_SIZE;",
        "    if (rows == NULL) {",
        f"        {FEED}.rows = 0;",
        f"        return {names.macro}_OK;",
        "    }",
        f"    if (count > {names.macro}_FEED_ROWS - {FEED}.rows) {{",
        f"        return {names.macro}_TOO_MANY_ROWS;",
        "    }",
        f"    if ({FEED}.rows == 0 && count > 0) {{",
        f"        memset(&{FEED}, 0, sizeof {FEED});",
        f"        {call}",
        "    }",
        f"    {FEED}.rows += count;",
        "    while (bytes > 0) {",
        f"        const size_t part = bytes < {FEED}.missing ? bytes : {FEED}.missing;",
        f"        if ({FEED}.place != {UNREAD}) {{",
        f"            memcpy((uint8_t *){address(scratch, options)} + {FEED}.place, from, part);",
        f"            {FEED}.place += part;",
        "        }",
        "        from += part;",
        "        bytes -= part;",
        f"        {FEED}.missing -= part;",
        f"        if ({FEED}.missing == 0) {{",
        f"            {call}",
        "        }",
        "    }",
        f"    return {names.macro}_OK;",
    ]
    return "\n".join([feed_head(names, options), "{", *lines, "}", ""])


def feed_check(program: Program, names: Names) -> list[str]:
    """Of the run function: all rows are there, and the next ones are another inference's."""
    if fed_layer(program) is None:
        return []
    return [
        f"    if ({FEED}.rows != {names.macro}_FEED_ROWS) {{",
        f"        return {names.macro}_ROWS_MISSING;",
        "    }",
        f"    {FEED}.rows = 0;",
    ]


def _streaming(layer: Layer) -> Streaming:
    assert layer.streaming is not None
    return layer.streaming


def _fed(layer: Layer) -> Value:
    fed = _streaming(layer).fed
    assert fed is not None
    return fed
