"""Generates all C files of one model, and tells the facts about them that archives and reports hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from uaccel.codegen.binary import constants_sources
from uaccel.codegen.describe import build_id, describe
from uaccel.codegen.header import ACCELERATOR, ALWAYS, firmware_headers, header, kernel_headers, maps, size_macros
from uaccel.codegen.layer_text import feed_function, feed_memory
from uaccel.codegen.layers import LayerFunctions
from uaccel.codegen.options import EmitOptions, Names, names_of, provenance
from uaccel.codegen.run import RunFunction
from uaccel.codegen.state import state_memory, state_size
from uaccel.codegen.weights import HEADER as FETCH
from uaccel.codegen.weights import (
    NOTHING,
    Array,
    ConstantPool,
    Constants,
    PrefetchPlan,
    bytes_of,
    constants_of,
    weights_header,
)
from uaccel.lower.placement import Placement
from uaccel.lower.program import Covered, Layer, Program
from uaccel.memory import Store
from uaccel.ops.kernel import KERNEL_ABI
from uaccel.util.files import CODE
from uaccel.util.text import BOUNDED, named
from uaccel.version import __version__

DUAL_ISSUE: Final = ("cortex-m7",)  # Cores with Arm's DSP extension that issue two instructions at a time.

# The executor: one C file with the layers' functions and the run function that calls them in order.


def source(
    program: Program,
    placement: Placement,
    names: Names,
    options: EmitOptions,
    pool: ConstantPool,
    ahead: PrefetchPlan,
    provenance: str,
) -> str:
    layers = LayerFunctions(program, pool, ahead).render()
    parts = [
        provenance,
        _includes(program, names, options, ahead),
        _float_guard(layers, names),
        _assertions(program, placement, names),
        _workspace(program, placement, names, options),
        state_memory(program, placement, names, pool),
        feed_memory(program),
        layers,
        feed_function(program, placement, names, options),
        maps(program, placement, names, options),
        RunFunction(program, placement, names, options, ahead).render(),
    ]
    return "\n".join(part for part in parts if part)


def _includes(program: Program, names: Names, options: EmitOptions, ahead: PrefetchPlan) -> str:
    forms = [form for layer in program.layers for form in layer.functions]
    system = sorted({h for layer in forms if layer.definition for h in layer.definition.headers})
    drivers = [header for engine in program.engines for header in engine.headers]
    lines = [f'#include "{names.header}"', "", "#include <stddef.h>"]
    lines += [f"#include <{h}>" for h in system if h != "stddef.h"]
    kernels = kernel_headers(program)
    if program.cpu in DUAL_ISSUE and any(header.endswith("_dsp.h") for header in kernels):
        lines += ["", "#define UACCEL_DUAL_ISSUE /* loops are in the order of a core that issues two instructions */"]
    lines += ["", *(f'#include "{h}"' for h in (*ALWAYS, *([FETCH] if ahead else []), *kernels))]
    if program.engines:
        lines += [f'#include "{h}"' for h in dict.fromkeys((ACCELERATOR, *drivers))]
    lines += [f'#include "{names.prefix}_weights.h"', *([f'#include "{options.arena}.h"'] if options.arena else []), ""]
    lines += [
        f"#if UACCEL_KERNEL_ABI != {KERNEL_ABI}",
        f'#error "{names.prefix}: made for kernel headers of another version; regenerate it with uaccel compile"',
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _float_guard(layers: str, names: Names) -> str:
    """An ``#error`` for -ffast-math if any layer computes floats: it changes results, and ignores NaN and infinity."""
    if not re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", layers, flags=re.DOTALL)):
        return ""
    return (
        "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)\n"
        f'#error "{names.prefix}: some layers compute floats, which -ffast-math changes; add -fno-fast-math"\n'
        "#endif\n"
    )


def _assertions(program: Program, placement: Placement, names: Names) -> str:
    """Static assertions: header and source were generated together, and floats have the bits that casts rely on."""
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


def _workspace(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    """The workspace's arrays, where they are the executor's own, and the macro that gives an address in them."""
    if not placement.arena:
        return ""
    several = len(options.pools) > 1
    array = options.array(names, "##pool##" if several else "").removeprefix("##")
    macro = f"#define AT({'pool, ' if several else ''}offset) ((void *)({array} + (offset)))\n"
    if options.given_pools:
        return macro
    if options.arena:
        room = f"{names.macro}_WORKSPACE_SIZE <= {options.arena.upper()}_SIZE"
        return (
            "/* Intermediate tensors and scratch lie in an array that other models use, too. */\n"
            f"UACCEL_STATIC_ASSERT({room}, arena_size);\n{macro}"
        )
    what = "Inputs, outputs, intermediate tensors" if options.workspace_io else "Intermediate tensors"
    static = "" if options.workspace_io else "static "
    if not options.pools:
        return (
            f"/* {what} and scratch; UACCEL_WORKSPACE may place it in a memory of your choice. */\n"
            f"{static}UACCEL_WORKSPACE UACCEL_ALIGNED({program.alignment}) "
            f"uint8_t {array}[{names.macro}_WORKSPACE_SIZE];\n{macro}"
        )
    lines = [f"/* {what} and scratch; UACCEL_WORKSPACE_POOL(name) may place each part in a memory of your choice. */"]
    lines += [
        f"{static}UACCEL_WORKSPACE_POOL({pool}) UACCEL_ALIGNED({program.alignment}) "
        f"uint8_t {options.array(names, pool)}[{size}];"
        for pool, size in placement.pools.items()
        if size
    ]
    return "\n".join([*lines, macro])


# All generated files of one model.


@dataclass(frozen=True)
class Generated:
    """Holds generated code and what is known of it: all that ``codegen.archive`` and ``codegen.export`` need.

    Files map names to text; ``binaries``, which lie beside the sources, to bytes. ``firmware_headers`` are the headers
    of ``firmware/`` that the code includes. ``build`` tells this code from any other: running firmware sends it to the
    host.
    """

    program: Program
    placement: Placement
    options: EmitOptions
    board: str
    names: Names
    sources: dict[str, str]
    private_headers: dict[str, str]
    public_headers: dict[str, str]
    firmware_headers: dict[str, str]
    description: dict[str, str]
    arrays: tuple[Array, ...]
    build: bytes
    binaries: Mapping[str, bytes]
    stores: tuple[Store, ...] = ()
    ahead: PrefetchPlan = NOTHING

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants, as flash holds them."""
        return sum(array.data.nbytes for array in self.arrays)

    @property
    def constant_pools(self) -> dict[str, int]:
        """The bytes of constants in each memory that they are divided among; empty where they are not."""
        return bytes_of(self.arrays, self.stores)

    @property
    def copied_bytes(self) -> int:
        """Bytes of the constants that start-up copies into RAM."""
        return sum(self.constant_pools.get(store.name, 0) for store in self.stores if store.copied)


def generate(
    program: Program,
    placement: Placement,
    options: EmitOptions,
    board: str = "host",
    command: str = "",
    constants: Constants | None = None,
    ahead: PrefetchPlan = NOTHING,
) -> Generated:
    """Generates the code of a program. ``command`` is what a user types to make it again. ``constants`` are the
    program's, by default in one memory; ``ahead`` says which are copied before their layers run."""
    names = names_of(program, options)
    constants = constants_of(program, names) if constants is None else constants
    arrays, stores = constants.arrays, constants.stores

    def about(what: str) -> str:
        return provenance(program, what, command)

    code = source(program, placement, names, options, constants.pool, ahead, about(f"The executor of {program.name}."))
    weights, binaries = constants_sources(names, arrays, options, about(f"The constants of {program.name}."))
    declarations = weights_header(names, arrays, about(f"The constants of {program.name}; private."))
    sizes = bytes_of(arrays, stores)
    public = header(program, placement, names, options, sizes, about(f"The interface of {program.name}."))
    firmware = firmware_headers(program, *([FETCH] if ahead else []))
    build = build_id((code, *weights.values(), declarations, public, *firmware.values()))
    description = describe(program, placement, names, options, build, about(f"{program.name} as data."))
    return Generated(
        program=program,
        placement=placement,
        options=options,
        board=board,
        names=names,
        sources={f"{names.prefix}.c": code, **weights},
        private_headers={f"{names.prefix}_weights.h": declarations},
        public_headers={names.header: public},
        firmware_headers=firmware,
        description={f"{names.prefix}_describe.c": description},
        arrays=arrays,
        build=build,
        binaries=binaries,
        stores=stores,
        ahead=ahead,
    )


# Facts about generated code, as plain data: the model, its memory, its layers and who computes them.


def facts(generated: Generated) -> dict[str, Any]:
    """All facts; ``docs/generated-code.md`` describes the keys."""
    program, placement, model = generated.program, generated.placement, generated.program.model
    return _of_runs(program, placement) | {
        "version": __version__,
        "board": generated.board,
        "workspace_io": generated.options.workspace_io,
        "favour": program.favour.value,
        "model": {"name": model.name, "format": model.source_format, "sha256": model.digest},
        "inputs": {spec.name: spec.to_json() for spec in program.signature.inputs},
        "outputs": {spec.name: spec.to_json() for spec in program.signature.outputs},
        "arena": {"bytes": placement.arena, "lower_bound": placement.plan.lower_bound, "bounds": BOUNDED},
        **_pools(placement),
        **_constant_pools(generated),
        **_constants_file(generated),
        "requires": sorted({need for layer in program.layers for v in layer.functions for need in v.kernel.requires}),
        "device_constants": sum(array.data.nbytes for array in generated.arrays if array.for_device),
        "accelerators": [
            {
                "name": engine.name,
                "tolerance": engine.tolerance,
                "device": engine.has_device,
                "alignment": engine.alignment,
            }
            for engine in program.engines
        ],
        "layers": [_layer(layer, placement) for layer in program.layers],
        "build": generated.build.hex(),
    }


def _of_runs(program: Program, placement: Placement) -> dict[str, Any]:
    """What goes on from run to run, and which input comes in pieces, of a model that has such."""
    state: dict[str, Any] = {}
    if program.state:
        state = {"state": {"bytes": placement.state, "tensors": state_facts(program)}}
    if program.model.bound:
        state["state"]["bound"] = [pair.words for pair in program.model.bound]
    if program.fed is None:
        return state
    return state | {"fed": program.signature.inputs[program.inputs.index(program.fed)].name}


def _pools(placement: Placement) -> dict[str, Any]:
    """The parts of a divided arena; no key for an arena of one part."""
    sizes = [{"name": name, "bytes": size} for name, size in placement.pools.items() if size]
    return {"pools": sizes} if len(placement.pools) > 1 else {}


def _constant_pools(generated: Generated) -> dict[str, Any]:
    """The pools of divided constants; ``copied`` is true where start-up copies them into RAM."""
    sizes = generated.constant_pools
    rows = [{"name": s.name, "bytes": sizes[s.name], "copied": s.copied} for s in generated.stores if s.name in sizes]
    return {"constant_pools": rows} if rows else {}


def _constants_file(generated: Generated) -> dict[str, Any]:
    """The binary file of constants, by its path in the archive; no key where they are C."""
    rows = [{"file": f"{CODE}/src/{name}", "byte_order": "little"} for name in generated.binaries]
    return {"constants": rows[0]} if rows else {}


def io_bytes(program: Program, options: EmitOptions) -> int:
    """Bytes of the inputs and outputs that do not lie in the arena."""
    if options.workspace_io:
        return 0
    return sum(value.info.size for value in (*program.held, *program.outputs))


def state_facts(program: Program) -> dict[str, Any]:
    """The tensors that last from one inference to the next, by their names in the model file."""
    return {entry.spec.spec.name: entry.spec.spec.to_json() for entry in program.state}


def _layer(layer: Layer, placement: Placement) -> dict[str, Any]:
    outputs = [
        {**value.spec.to_json(), "tensor": value.spec.name, **placement.places[value.name].to_json()}
        for value in layer.outputs
    ]
    return layer_facts(layer) | {"scratch": layer.scratch, "outputs": outputs}


def layer_facts(layer: Layer) -> dict[str, Any]:
    """Facts about a layer for reports, which may have the compilation at hand or only an archive."""
    commands = {"commands": list(layer.labels)} if layer.labels else {}
    return commands | {
        **named(layer, "index", "name", "op", "engine", "reason", "refused"),
        "operator": layer.origin.index,
        "tensor": layer.origin.tensor,
        "macs": layer.macs,
        "variant": layer.kernel.family,
        "covers": [_covered(covered) for covered in layer.covers],
        "outputs": [value.spec.to_json() for value in layer.outputs],
    }


def _covered(covered: Covered) -> dict[str, Any]:
    return {
        **named(covered, "name", "op", "reason"),
        "operator": covered.origin.index,
        "tensor": covered.origin.tensor,
        "macs": covered.macs,
        "shape": list(covered.output.shape),
    }
