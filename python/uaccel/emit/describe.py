"""The model as data, for generic applications: tensors' names and sizes, and a run function over arrays."""

from __future__ import annotations

from uaccel.emit.options import EmitOptions, Names
from uaccel.lower.program import Program
from uaccel.memory.placement import Placement
from uaccel.model import TensorSpec


def describe(program: Program, placement: Placement, names: Names, options: EmitOptions, provenance: str) -> str:
    signature = program.signature
    io_bytes = sum(-(-spec.info.size // 16) * 16 for spec in (*signature.inputs, *signature.outputs))
    parts = [
        provenance,
        f'#include "{names.header}"\n#include "uaccel_model.h"\n',
        _tensors("inputs", signature.inputs),
        _tensors("outputs", signature.outputs),
        _workspace(placement, names, options),
        _run(names, placement, options),
        "const struct uaccel_model uaccel_model = {\n"
        f'    .name = "{program.name}",\n'
        f"    .input_count = {len(signature.inputs)},\n    .inputs = inputs,\n"
        f"    .output_count = {len(signature.outputs)},\n    .outputs = outputs,\n"
        f"    .io_bytes = {io_bytes},\n    .layer_count = {len(program.layers)},\n    .run = run,\n}};\n",
    ]
    return "\n".join(part for part in parts if part)


def c_string(text: str) -> str:
    """A C string literal; octal escapes end by themselves."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def _tensors(name: str, specs: tuple[TensorSpec, ...]) -> str:
    rows = "".join(f"    {{{c_string(spec.name)}, {spec.info.size}}},\n" for spec in specs)
    return f"static const struct uaccel_tensor {name}[] = {{\n{rows or '    {0, 0},' + chr(10)}}};\n"


def _workspace(placement: Placement, names: Names, options: EmitOptions) -> str:
    if not options.workspace_pool or not placement.arena:
        return ""
    return f"static uint64_t workspace[({names.macro}_WORKSPACE_SIZE + 7) / 8];\n"


def _run(names: Names, placement: Placement, options: EmitOptions) -> str:
    lines = ["static int32_t run(void *const *in, void *const *out)", "{"]
    lines.append(f"    struct {names.prefix}_inputs given = {{{_members('in', len(names.inputs))}}};")
    lines.append(f"    struct {names.prefix}_outputs wanted = {{{_members('out', len(names.outputs))}}};")
    arguments = "&given, &wanted"
    if options.workspace_pool:
        lines.append(
            f"    struct {names.prefix}_workspace_pools pools = {{{'workspace' if placement.arena else '0'}}};"
        )
        arguments += ", &pools"
    if not names.inputs:
        lines.append("    (void)in;")
    return "\n".join([*lines, f"    return {names.prefix}_run({arguments});", "}", ""])


def _members(array: str, count: int) -> str:
    return ", ".join(f"{array}[{i}]" for i in range(count)) or "0"
