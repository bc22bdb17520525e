"""The executor: the layers' functions and the run function that calls them in order."""

from __future__ import annotations

from uaccel.emit.ctext import wrapped
from uaccel.emit.functions import LayerFunctions, function_name
from uaccel.emit.header import size_macros
from uaccel.emit.options import EmitOptions, Names
from uaccel.emit.weights import ConstantPool
from uaccel.lower.program import Layer, Program, Value
from uaccel.memory.placement import Placement
from uaccel.ops.kernel import KERNEL_ABI


def source(
    program: Program,
    placement: Placement,
    names: Names,
    options: EmitOptions,
    pool: ConstantPool,
    provenance: str,
) -> str:
    parts = [
        provenance,
        _includes(program, names),
        _assertions(program, placement, names),
        _workspace(placement, names, options),
        LayerFunctions(program, pool).render(),
        _Run(program, placement, names, options).render(),
    ]
    return "\n".join(part for part in parts if part)


def _includes(program: Program, names: Names) -> str:
    kernels = sorted({call.header for layer in program.layers for call in layer.kernel.calls if call.header})
    system = sorted({h for layer in program.layers if layer.definition for h in layer.definition.headers})
    lines = [f'#include "{names.header}"', "", "#include <stddef.h>"]
    lines += [f"#include <{h}>" for h in system if h != "stddef.h"]
    lines += ["", *(f'#include "{h}"' for h in ("uaccel_kernel.h", "uaccel_observe.h", *kernels))]
    lines += [f'#include "{names.prefix}_weights.h"', ""]
    lines += [
        f"#if UACCEL_KERNEL_ABI != {KERNEL_ABI}",
        f'#error "{names.prefix}: made for kernel headers of another version; regenerate it with uaccel compile"',
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _assertions(program: Program, placement: Placement, names: Names) -> str:
    """What the offsets and casts below rely on."""
    lines = ["/* What the generated code relies on; a failure names the line. */"]
    dtypes = {value.info.dtype for layer in program.layers for value in (*layer.inputs, *layer.outputs)}
    if "float32" in dtypes:
        lines.append("UACCEL_STATIC_ASSERT(sizeof(float) == 4, float_is_32_bits);")
    lines.append(f"UACCEL_STATIC_ASSERT({names.macro}_WORKSPACE_SIZE == {placement.arena}, workspace_size);")
    lines += [
        f"UACCEL_STATIC_ASSERT({macro} == {spec.info.size}, {macro});" for macro, spec in size_macros(program, names)
    ]
    return "\n".join(lines) + "\n"


def _workspace(placement: Placement, names: Names, options: EmitOptions) -> str:
    if not placement.arena:
        return ""
    macro = "#define AT(offset) ((void *)(workspace + (offset)))\n"
    if options.workspace_pool:
        return macro
    return (
        "/* Intermediate tensors and scratch; UACCEL_WORKSPACE may place it in a memory of your choice. */\n"
        f"static UACCEL_WORKSPACE uint8_t workspace[{names.macro}_WORKSPACE_SIZE] UACCEL_ALIGNED(16);\n{macro}"
    )


class _Run:
    def __init__(self, program: Program, placement: Placement, names: Names, options: EmitOptions) -> None:
        self.program = program
        self.placement = placement
        self.names = names
        self.options = options

    def render(self) -> str:
        names, pool = self.names, self.options.workspace_pool
        parameters = [f"struct {names.prefix}_inputs *inputs", f"struct {names.prefix}_outputs *outputs"]
        parameters += [f"struct {names.prefix}_workspace_pools *workspace_pools"] if pool else []
        lines = [wrapped(f"int32_t {names.prefix}_run", parameters), "{", *self._checks()]
        if pool and self.placement.arena:
            lines.append(f"    uint8_t *const workspace = workspace_pools->{pool};")
        for layer in self.program.layers:
            lines += self._layer(layer)
        return "\n".join([*lines, f"    return {names.macro}_OK;", "}", ""])

    def _checks(self) -> list[str]:
        pointers = ["inputs", "outputs"]
        pointers += [f"inputs->{member}" for member in self.names.inputs]
        pointers += [f"outputs->{member}" for member in self.names.outputs]
        if self.options.workspace_pool:
            pointers += ["workspace_pools"]
            pointers += [f"workspace_pools->{self.options.workspace_pool}"] if self.placement.arena else []
        condition = " ||\n        ".join(f"{pointer} == NULL" for pointer in pointers)
        return [f"    if ({condition}) {{", f"        return {self.names.macro}_NULL_POINTER;", "    }", ""]

    def _layer(self, layer: Layer) -> list[str]:
        if layer.is_view:
            return [f"    /* {layer.name}: {layer.outputs[0].info} is a view of {layer.inputs[0].name} */"]
        arguments = [self._address(value) for value in (*layer.inputs, *layer.outputs)]
        if layer.kernel.scratch:
            arguments.append(_at(self.placement.scratch[layer.index]))
        model = self.program.name
        lines = [f'    UACCEL_LAYER_BEGIN("{model}", {layer.index});']
        lines.append(f"    {function_name(layer)}({', '.join(arguments)});")
        lines += [
            f'    UACCEL_LAYER_END("{model}", {layer.index}, {i}, {self._address(value)}, {value.info.size});'
            for i, value in enumerate(layer.outputs)
        ]
        return lines

    def _address(self, value: Value) -> str:
        place = self.placement.places[value.name]
        if place.kind == "input":
            return f"inputs->{self.names.inputs[place.index]}"
        if place.kind == "output":
            return f"outputs->{self.names.outputs[place.index]}"
        return _at(place.offset)


def _at(offset: int) -> str:
    return f"AT({offset})"
