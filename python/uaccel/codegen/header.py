"""Prints the public header of a generated model and its map functions, and collects the firmware headers it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from uaccel.codegen.describe import conversions, typed_macros
from uaccel.codegen.layer_text import feed_interface, resident_inputs, row_input_layer
from uaccel.codegen.layers import hook
from uaccel.codegen.options import EmitOptions, Names, address
from uaccel.codegen.run import PLAIN_STATUS, failure_function, run_parameters
from uaccel.codegen.state import state_interface
from uaccel.errors import InternalError
from uaccel.lower.placement import WIDE_ALIGNMENT, Placement
from uaccel.lower.program import Program, Value
from uaccel.model import TensorSpec
from uaccel.util import incoming
from uaccel.util.c_text import quote_comment, wrap_call
from uaccel.util.files import data_dir

# Map functions: where inputs and outputs lie that the workspace holds. They follow microTVM's interface.


def maps(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    """The definitions of both functions; nothing where inputs and outputs are the application's own memory."""
    if not options.workspace_io:
        return ""
    return "\n".join(
        _map(names, options, what, list(zip(members, values, strict=True)), placement)
        for what, members, values in (
            ("inputs", resident_inputs(program, names.inputs), program.held),
            ("outputs", names.outputs, program.outputs),
        )
    )


def map_heads(names: Names, options: EmitOptions) -> list[str]:
    """The functions' heads without a semicolon, as the header declares them and the executor defines them."""
    return [
        wrap_call(f"struct {names.prefix}_{what} {names.prefix}_map_{what}", _parameters(names, options))
        for what in ("inputs", "outputs")
    ]


def _parameters(names: Names, options: EmitOptions) -> list[str]:
    return [f"struct {names.prefix}_workspace_pools *workspace_pools"] if options.given_pools else []


def _map(names: Names, options: EmitOptions, what: str, tensors: list[tuple[str, Value]], placement: Placement) -> str:
    head = map_heads(names, options)[what == "outputs"]
    nothing = ", ".join("NULL" for _ in tensors) or "0"
    lines = [head, "{", f"    struct {names.prefix}_{what} {what} = {{{nothing}}};"]
    places = [(member, placement.places[value.name]) for member, value in tensors]
    if not options.given_pools:
        lines += [f"    {what}.{member} = {address(place, options)};" for member, place in places]
    elif not places:
        lines.append("    (void)workspace_pools;")
    for pool in options.given_pools if places else ():
        inside = [(member, place) for member, place in places if place.pool in ("", pool)]
        if inside:
            lines += [
                f"    if (workspace_pools != NULL && workspace_pools->{pool} != NULL) {{",
                f"        uint8_t *const {options.array(names, pool)} = workspace_pools->{pool};",
                *(f"        {what}.{member} = {address(place, options)};" for member, place in inside),
                "    }",
            ]
    return "\n".join([*lines, f"    return {what};", "}", ""])


# The public header of a generated model: interface and manual in one.

CALLERS = (
    "What goes in: memory of the caller, {}. It is never written{}.",
    "What comes out: memory of the caller, {}, which does not overlap the inputs. A run also reads it.",
)
IN_WORKSPACE = (
    "What goes in: where it lies in the workspace, {}.",
    "What comes out: where it lies in the workspace, {}.",
)


def _aligned(program: Program, otherwise: str, least: int) -> str:
    """How memory of the caller's is aligned: as its type, or as the strictest device wants it."""
    wanted = max((engine.alignment for engine in program.devices), default=1)
    return f"aligned to {wanted} bytes" if wanted > least else otherwise


def header(
    program: Program,
    placement: Placement,
    names: Names,
    options: EmitOptions,
    constants: Mapping[str, int],
    provenance: str,
) -> str:
    """The text of the header. ``constants`` has the bytes of constants in each pool."""
    guard = f"{names.macro}_H"
    signature = program.signature
    told = IN_WORKSPACE if options.workspace_io else CALLERS
    aligned = _aligned(program, "aligned as its type", 1)
    stddef = "" if row_input_layer(program) is None else "#include <stddef.h>\n"
    parts = [
        provenance,
        f"#ifndef {guard}\n#define {guard}\n\n{stddef}#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        _sizes(program, placement, names, options),
        typed_macros(program, names),
        _struct(
            f"{names.prefix}_inputs",
            told[0].format(aligned, "" if program.devices else ": it may lie in flash"),
            resident_inputs(program, names.inputs),
            resident_inputs(program, signature.inputs),
        ),
        _struct(f"{names.prefix}_outputs", told[1].format(aligned), names.outputs, signature.outputs),
        _pools(program, placement, names, options),
        _constant_pools(names, options, constants),
        _devices(program, names),
        _maps(placement, names, options),
        feed_interface(program, names, options),
        _run(program, names, options),
        state_interface(program, placement, names, run_parameters(program, names, options)),
        conversions(program, names),
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
    ]
    return "\n".join(part for part in parts if part)


def _sizes(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    workspace = f"{names.macro}_WORKSPACE_SIZE"
    what = "inputs, outputs and intermediate tensors" if options.workspace_io else "intermediate tensors"
    lines = [f"/* Bytes of the workspace, in which {what} live. */"]
    lines.append(f"#define {workspace} {placement.arena}")
    for pool in options.given_pools:
        size = placement.pools.get(pool, workspace) if len(options.pools) > 1 else workspace
        lines.append(f"#define {names.macro}_{pool.upper()}_WORKSPACE_POOL_SIZE {size}")
    lines.append("\n/* Bytes of each input and output. */")
    lines += [f"#define {macro} {spec.info.size}" for macro, spec in size_macros(program, names)]
    lines.append("\n/* What the run function returns. */")
    lines.append(f"#define {names.macro}_OK 0")
    lines.append(f"#define {names.macro}_NULL_POINTER (-1) /* an argument or one of its members is NULL */")
    return "\n".join(lines) + "\n"


def size_macros(program: Program, names: Names) -> list[tuple[str, TensorSpec]]:
    """Every input and output with the macro of its size."""
    signature = program.signature
    specs = (*signature.inputs, *signature.outputs)
    return list(zip((*names.input_sizes, *names.output_sizes), specs, strict=True))


def _struct(name: str, comment: str, members: tuple[str, ...], specs: tuple[TensorSpec, ...]) -> str:
    lines = [f"/* {comment} */", f"struct {name} {{"]
    for member, spec in zip(members, specs, strict=True):
        quantisation = f", {spec.quantisation}" if spec.quantisation else ""
        lines.append(f"    /* {quote_comment(spec.name)}: {spec.info}{quantisation} */\n    void *{member};")
    if not members:
        lines.append("    int unused; /* C has no empty structures */")
    return "\n".join([*lines, "};\n"])


def _pools(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    if not options.given_pools:
        return ""
    aligned = _aligned(program, f"aligned to {WIDE_ALIGNMENT} bytes", WIDE_ALIGNMENT)
    comment = (
        f"/* Memory for inputs, outputs and intermediate tensors, {aligned}; it may serve others when the\n"
        " * outputs were read. */\n"
        if options.workspace_io
        else f"/* Memory for intermediate tensors, {aligned}. What it holds before a run does not matter;\n"
        " * after a run it may serve others. */\n"
    )
    members = "".join(
        f"    void *{pool}; /* {placement.pools.get(pool, placement.arena)} bytes */\n" for pool in options.given_pools
    )
    return f"{comment}struct {names.prefix}_workspace_pools {{\n{members}}};\n"


def _constant_pools(names: Names, options: EmitOptions, sizes: Mapping[str, int]) -> str:
    if not options.constant_pools:
        return ""
    lines = [
        "/* Bytes of the constants in each of their pools; UACCEL_CONSTANT_POOL(name) may place each in a memory. */"
    ]
    lines += [
        f"#define {names.macro}_{pool.name.upper()}_CONSTANT_POOL_SIZE {sizes.get(pool.name, 0)}"
        for pool in options.constant_pools
    ]
    return "\n".join(lines) + "\n"


def _devices(program: Program, names: Names) -> str:
    """The structure of device handles, and the hooks' declarations; a driver or the application defines the hooks."""
    engines = program.devices
    if not engines:
        return ""
    members = "".join(f"    void *{engine.name};\n" for engine in engines)
    hooks = "".join(f"int32_t {hook(engine, what)}(void *device);\n" for engine in engines for what in engine.hooks)
    return (
        "/* What the hooks below are given: the driver says what it wants here. */\n"
        f"struct {names.prefix}_devices {{\n{members}}};\n\n"
        "/* Of the accelerators' drivers; each returns 0 or an error code. An inference activates each device\n"
        " * once, opens and closes it around each of its layers, and deactivates it at the end. */\n"
        f"{hooks}"
    )


def _maps(placement: Placement, names: Names, options: EmitOptions) -> str:
    if not options.workspace_io:
        return ""
    inputs, outputs = map_heads(names, options)
    null = " Members are NULL where the pool is." if options.given_pools else ""
    arrays = [pool for pool, size in placement.pools.items() if size] or [""]
    externs = "".join(f"extern uint8_t {options.array(names, pool)}[];\n" for pool in arrays)
    array = f"/* The workspace; two functions tell what lies where in it. */\n{externs}\n"
    array = "" if options.given_pools or not placement.arena else array
    return (
        f"{array}"
        "/* Where the inputs lie. Write all of them before every run: it uses their bytes for other tensors. And read\n"
        f" * the outputs of the run before first: inputs may lie where those were.{null} */\n"
        f"{inputs};\n\n"
        "/* Where the outputs lie: after a run, until inputs are written for the next one. */\n"
        f"{outputs};\n"
    )


def _run(program: Program, names: Names, options: EmitOptions) -> str:
    parameters = run_parameters(program, names, options)
    given = ",".join(f"\n    {parameter}" for parameter in parameters) or "void"
    alone = "" if options.given_pools and not program.state and not program.devices else ", one at a time"
    alone += f", of all models that compute in {options.arena}" if options.arena else ""
    null = " NULL is found before anything is written." if parameters else ""
    fails = any(layer.on_accelerator and layer.otherwise is None for layer in program.layers)
    failed = (
        "\n * Another number below 0 says which layer's accelerator failed, and how: see uaccel_accelerator.h. With\n"
        f" * {PLAIN_STATUS} it is -1, and {names.prefix}_failure returns that number."
        if fails
        else ""
    )
    failure = f"\n#ifdef {PLAIN_STATUS}\n{failure_function(names)};\n#endif\n" if fails else ""
    return (
        f"/* The linker's name is {names.prefix}_run_c. Older generators gave {names.prefix}_run other arguments,\n"
        " * packed ones: an application that was made for those does not link. */\n"
        f"#define {names.prefix}_run {names.prefix}_run_c\n\n"
        f"/* One inference, from any task or interrupt{alone}.\n"
        f" * Returns {names.macro}_OK or one of the errors above.{null}{failed}\n"
        " * The compiler decides how much stack it takes: 'uaccel run' measures it, -fstack-usage tells it. */\n"
        f"int32_t {names.prefix}_run({given});\n{failure}"
    )


# Include closure: the firmware headers that generated code includes, and those that these include in turn.

INCLUDE: Final = re.compile(r'^\s*#(?:include|define UACCEL_BODY) "([^"]+)"', re.MULTILINE)
ALWAYS: Final = ("uaccel_kernel.h", "uaccel_observe.h")
ACCELERATOR: Final = "uaccel_accelerator.h"
ROWS: Final = "uaccel_rows.h"


def kernel_headers(program: Program) -> list[str]:
    """Headers of the kernels that the layers call."""
    calls = [call for layer in program.layers for form in layer.functions for call in form.kernel.calls]
    rows = {ROWS for layer in program.layers if layer.streaming is not None}
    return sorted({call.header for call in calls if call.header} | rows)


def firmware_headers(program: Program, *more: str) -> dict[str, str]:
    """All firmware headers that the code needs, as file name -> text; nothing that one of them includes is missing."""
    accelerator = [ACCELERATOR] if program.engines else []
    return include_closure([*ALWAYS, *sorted([*kernel_headers(program), *accelerator, *more])])


def include_closure(names: Iterable[str]) -> dict[str, str]:
    """These headers of ``firmware/`` and what they include in turn, by name."""
    found: dict[str, str] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = _read(name)
            wanted += INCLUDE.findall(found[name])
    return found


def _read(name: str) -> str:
    firmware = data_dir("firmware")
    for path in (*(firmware / "kernels").glob(f"*/{name}"), firmware / "include" / name):
        if path.is_file():
            return incoming.read_text(path)
    raise InternalError(f"generated code includes {name}, which is not in {firmware}")
