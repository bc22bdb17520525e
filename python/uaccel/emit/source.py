"""The executor: the layers' functions and the run function that calls them in order."""

from __future__ import annotations

import re

from uaccel.emit.ahead import HEADER as FETCH
from uaccel.emit.ahead import Ahead
from uaccel.emit.feed import feed_function, feed_memory
from uaccel.emit.functions import LayerFunctions
from uaccel.emit.header import size_macros
from uaccel.emit.headers import ACCELERATOR, ALWAYS, kernel_headers
from uaccel.emit.maps import maps
from uaccel.emit.options import EmitOptions, Names
from uaccel.emit.run import RunFunction
from uaccel.emit.state import state_memory, state_size
from uaccel.emit.weights import ConstantPool
from uaccel.lower.placement import Placement
from uaccel.lower.program import Program
from uaccel.ops.kernel import KERNEL_ABI


def source(
    program: Program,
    placement: Placement,
    names: Names,
    options: EmitOptions,
    pool: ConstantPool,
    ahead: Ahead,
    provenance: str,
) -> str:
    layers = LayerFunctions(program, pool, ahead).render()
    parts = [
        provenance,
        _includes(program, names, ahead),
        _float_guard(layers, names),
        _assertions(program, placement, names),
        _workspace(placement, names, options),
        state_memory(program, placement, names, pool),
        feed_memory(program),
        layers,
        feed_function(program, placement, names, options),
        maps(program, placement, names, options),
        RunFunction(program, placement, names, options, ahead).render(),
    ]
    return "\n".join(part for part in parts if part)


def _includes(program: Program, names: Names, ahead: Ahead) -> str:
    forms = [form for layer in program.layers for form in layer.functions]
    system = sorted({h for layer in forms if layer.definition for h in layer.definition.headers})
    drivers = [header for engine in program.engines for header in engine.headers]
    lines = [f'#include "{names.header}"', "", "#include <stddef.h>"]
    lines += [f"#include <{h}>" for h in system if h != "stddef.h"]
    lines += ["", *(f'#include "{h}"' for h in (*ALWAYS, *([FETCH] if ahead else []), *kernel_headers(program)))]
    if program.engines:
        lines += [f'#include "{h}"' for h in dict.fromkeys((ACCELERATOR, *drivers))]
    lines += [f'#include "{names.prefix}_weights.h"', ""]
    lines += [
        f"#if UACCEL_KERNEL_ABI != {KERNEL_ABI}",
        f'#error "{names.prefix}: made for kernel headers of another version; regenerate it with uaccel compile"',
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _float_guard(layers: str, names: Names) -> str:
    """Integers are the same at any level; of floats -Ofast makes others, and forgets NaN and infinity."""
    if not re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", layers, flags=re.DOTALL)):
        return ""
    return (
        "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)\n"
        f'#error "{names.prefix}: some layers compute floats, which -ffast-math changes; add -fno-fast-math"\n'
        "#endif\n"
    )


def _assertions(program: Program, placement: Placement, names: Names) -> str:
    """That header and source are of one generation, and what casts of floats rely on."""
    lines = ["/* The header must be of the same generation: these are the sizes that the code below was made for. */"]
    dtypes = {value.info.dtype for layer in program.layers for value in (*layer.inputs, *layer.outputs)}
    if "float32" in dtypes:
        lines.insert(0, "UACCEL_STATIC_ASSERT(sizeof(float) == 4, float_is_32_bits);\n")
    lines.append(f"UACCEL_STATIC_ASSERT({names.macro}_WORKSPACE_SIZE == {placement.arena}, workspace_size);")
    if program.state:
        lines.append(f"UACCEL_STATIC_ASSERT({state_size(names)} == {placement.state}, state_size);")
    lines += [
        f"UACCEL_STATIC_ASSERT({macro} == {spec.info.size}, {macro});" for macro, spec in size_macros(program, names)
    ]
    return "\n".join(lines) + "\n"


def _workspace(placement: Placement, names: Names, options: EmitOptions) -> str:
    """The arrays, where they are the executor's own, and the macro by which it finds what lies in them."""
    if not placement.arena:
        return ""
    several = len(options.pools) > 1
    array = options.array(names, "##pool##" if several else "").removeprefix("##")
    macro = f"#define AT({'pool, ' if several else ''}offset) ((void *)({array} + (offset)))\n"
    if options.given_pools:
        return macro
    what = "Inputs, outputs, intermediate tensors" if options.workspace_io else "Intermediate tensors"
    static = "" if options.workspace_io else "static "
    if not options.pools:
        return (
            f"/* {what} and scratch; UACCEL_WORKSPACE may place it in a memory of your choice. */\n"
            f"{static}UACCEL_WORKSPACE UACCEL_ALIGNED(16) uint8_t {array}[{names.macro}_WORKSPACE_SIZE];\n{macro}"
        )
    lines = [f"/* {what} and scratch; UACCEL_WORKSPACE_POOL(name) may place each part in a memory of your choice. */"]
    lines += [
        f"{static}UACCEL_WORKSPACE_POOL({pool}) UACCEL_ALIGNED(16) uint8_t {options.array(names, pool)}[{size}];"
        for pool, size in placement.pools.items()
        if size
    ]
    return "\n".join([*lines, macro])
