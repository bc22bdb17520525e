"""The README of an export: one screen, whose command works in the folder as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from uaccel.basics.sinks import code_span
from uaccel.emit.typed import is_converted
from uaccel.packagers.export import Export

COLUMNS: Final = 110


def readme(export: Export, commands: Sequence[str], contents: Sequence[tuple[str, str]], notes: Sequence[str]) -> str:
    """``commands`` build and try it; ``contents`` says what lies where."""
    rows = [f"| `{path}` | {what} |" for path, what in contents]
    lines = [
        f"# {export.name}",
        "",
        f"The network {code_span(export.program.model.name)} as C99 without a heap. Try it:",
        "",
        "```sh",
        *commands,
        "```",
        "",
        "The example feeds a sample and says how many elements differ from what the model means: none.",
        "",
        "| file | what it is |",
        "|---|---|",
        *rows,
        "",
        *[line for note in notes for line in (note, "")],
        _use(export),
        "",
        f"Made by {code_span(export.command)}.",
        "",
    ]
    return "\n".join(lines)


def _use(export: Export) -> str:
    name = export.name
    signature, names = export.program.signature, export.names
    inputs, outputs = (
        zip(names.inputs, signature.inputs, strict=True),
        zip(names.outputs, signature.outputs, strict=True),
    )
    quantised = [f"`{name}_quantize_{member}`" for member, spec in inputs if is_converted(spec)]
    back = [f"`{name}_dequantize_{member}`" for member, spec in outputs if is_converted(spec)]
    fill = f"fill the inputs ({quantised[0]} makes elements of real numbers)" if quantised else "fill the inputs"
    read = f"read the outputs ({back[0]} makes real numbers of elements)" if back else "read the outputs"
    text = f"In your application: include `{name}.h`, {fill}, call `{name}_run`, {read}. The header says the rest."
    return "\n".join(textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False))


def sized(export: Export) -> str:
    """What it takes, for a description of one line."""
    placement, generated = export.generated.placement, export.generated
    return f"{generated.weight_bytes:,} bytes of constants, {placement.arena:,} bytes of workspace"
