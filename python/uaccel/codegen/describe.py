"""Describes a model in C: as data for generic applications such as the session server, and as types and conversions
for an application of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from uaccel.codegen.layer_text import resident_inputs
from uaccel.codegen.options import EmitOptions, Names
from uaccel.lower.placement import Placement
from uaccel.lower.program import Layer, Program
from uaccel.model import TensorSpec, unique_names
from uaccel.util.c_text import float_literal, int_literal, limits, storage_type, string_literals, wrap_call
from uaccel.util.text import c_string, round_up
from uaccel.version import __version__

# struct uaccel_model, for generic applications: tensors and their memory, a JSON text for the host, a run function.

BUILD_BYTES = 8  # The length of field ``build`` in the session protocol's ``hello_reply``.
# Characters of a string literal. C99 promises that a compiler takes 4095; an octal escape makes four of one.
PIECE = 1000
LITERAL = 96  # Columns of a literal in the generated file.


def build_id(texts: Iterable[str]) -> bytes:
    """A digest of all files that a model is compiled from; it changes whenever one of them does."""
    return hashlib.sha256("\0".join(texts).encode()).digest()[:BUILD_BYTES]


def describe(
    program: Program, placement: Placement, names: Names, options: EmitOptions, build: bytes, provenance: str
) -> str:
    """The whole C file that describes the model."""
    parts = [
        provenance,
        _includes(program, names),
        _workspace(program, placement, names, options),
        *_io(program, placement, names, options),
        _description(program, placement),
        _run(program, names, placement, options),
        _feed(program, names, placement, options),
        f"static struct uaccel_account accounts[{len(program.layers)}];\n" if program.engines else "",
        _model(program, options, build),
    ]
    return "\n".join(part for part in parts if part)


# Headers that only some programs need, each with the attribute of ``Program`` that decides.
ACCELERATORS: Final = {"uaccel_accelerator.h": "engines", "uaccel_hal.h": "devices"}


def _includes(program: Program, names: Names) -> str:
    more = [header for header, used in ACCELERATORS.items() if getattr(program, used)]
    headers = (names.header, *more, "uaccel_kernel.h", "uaccel_model.h")
    return "".join(f'#include "{header}"\n' for header in headers)


def tensor_memory(specs: Iterable[TensorSpec], alignment: int) -> int:
    """Bytes that the tensors take, one after the other, each rounded up to the alignment."""
    return sum(round_up(spec.info.size, alignment) for spec in specs)


def _memory(size: int, alignment: int) -> str:
    return (
        "/* Inputs and outputs, one after the other; UACCEL_IO may place them in a memory of your choice. */\n"
        f"static UACCEL_IO UACCEL_ALIGNED({alignment}) uint8_t tensors[{size or alignment}];\n"
    )


def _io(program: Program, placement: Placement, names: Names, options: EmitOptions) -> list[str]:
    """The tables of inputs and outputs. These lie in memory of their own, or in the workspace (``workspace_io``)."""
    signature = program.signature
    specs = (*resident_inputs(program, signature.inputs), *signature.outputs)
    if options.workspace_io:
        places = [placement.places[value.name] for value in (*program.held, *program.outputs)]
        at = [f"{options.array(names, place.pool)} + {place.offset}" for place in places]
        memory = []
    else:
        memory = [_memory(tensor_memory(specs, program.alignment), program.alignment)]
        at = [f"tensors + {tensor_memory(specs[:i], program.alignment)}" for i in range(len(specs))]
    count = len(program.held)
    lies = dict(zip(program.held, at, strict=False))
    return [
        *memory,
        _tensors("inputs", signature.inputs, [lies.get(value, "0") for value in program.inputs]),
        _tensors("outputs", signature.outputs, at[count:]),
    ]


def _tensors(name: str, specs: tuple[TensorSpec, ...], at: Sequence[str]) -> str:
    """The table of one side's tensors. ``at`` has the address of each; 0 for one that comes by rows."""
    rows = [
        f"    {{{c_string(spec.name)}, {spec.info.size}, {place}}},\n" for spec, place in zip(specs, at, strict=True)
    ]
    return f"static const struct uaccel_tensor {name}[] = {{\n{''.join(rows) or '    {0, 0, 0},' + chr(10)}}};\n"


def _description(program: Program, placement: Placement) -> str:
    """The JSON that a host reads to show the model: tensors and layers, an entry a line."""
    model, signature = program.model, program.signature
    head = {"model": program.name, "uaccel": __version__, "file": model.name, "format": model.source_format}
    lines = [_json(head)[:-1] + ","]
    for key, rows in (
        ("inputs", [_tensor(spec) for spec in signature.inputs]),
        ("outputs", [_tensor(spec) for spec in signature.outputs]),
        *([("state", _state(program, placement))] if program.state else []),
        ("layers", [_layer(layer) for layer in program.layers]),
    ):
        last = "]}" if key == "layers" else "],"
        ends = [","] * (len(rows) - 1) + [last]
        lines.append(f'"{key}":[' if rows else f'"{key}":[{last}')
        lines += [_json(row) + end for row, end in zip(rows, ends, strict=False)]
    pieces = [line[i : i + PIECE] for line in lines for i in range(0, len(line), PIECE)]
    literals = ("\n        ".join(string_literals(piece, LITERAL)) for piece in pieces)
    rows_of_c = "".join(f"    {literal},\n" for literal in literals)
    return f"static const char *const description[] = {{\n{rows_of_c}    0,\n}};\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    row = {"name": spec.name, **spec.to_json()}
    row.pop("labels", None)  # flash of the device: the host that compiled the model knows them
    return row


def _state(program: Program, placement: Placement) -> list[dict[str, Any]]:
    """The tensors of the state, with their places in it."""
    names = unique_names(entry.spec.spec.name for entry in program.state)
    rows = zip(names, program.state, strict=True)
    return [
        {**_tensor(entry.spec.spec), "name": name, "offset": placement.places[entry.before.name].offset}
        for name, entry in rows
    ]


def _layer(layer: Layer) -> dict[str, Any]:
    outputs = [{"dtype": value.info.dtype, "shape": list(value.info.shape)} for value in layer.outputs]
    row = {"name": layer.name, "op": layer.op, "engine": layer.engine, "outputs": outputs}
    return row | {"view": True} if layer.is_view else row


def _workspace(program: Program, placement: Placement, names: Names, options: EmitOptions) -> str:
    """Arrays for the pools that an application passes in. One pool lies where the arena would; each of several lies in
    the memory of its name, if the board has one."""
    several = len(options.pools) > 1
    aligned = f"UACCEL_ALIGNED({program.alignment}) uint8_t"
    return "".join(
        f"static {f'UACCEL_WORKSPACE_POOL({pool})' if several else 'UACCEL_WORKSPACE'} {aligned} "
        f"{options.array(names, pool)}[{names.macro}_{pool.upper()}_WORKSPACE_POOL_SIZE];\n"
        for pool in _filled_pools(placement, options)
    )


def _filled_pools(placement: Placement, options: EmitOptions) -> list[str]:
    """The application's pools in which something lies."""
    return [pool for pool in options.given_pools if placement.pools.get(pool, placement.arena)]


def _run(program: Program, names: Names, placement: Placement, options: EmitOptions) -> str:
    lines = ["static int32_t run(void)", "{"]
    arguments = []
    if not options.workspace_io:
        given = _members("inputs", resident_inputs(program, range(len(names.inputs))))
        lines.append(f"    struct {names.prefix}_inputs given = {{{given}}};")
        lines.append(
            f"    struct {names.prefix}_outputs wanted = {{{_members('outputs', range(len(names.outputs)))}}};"
        )
        arguments += ["&given", "&wanted"]
    lines += _given_pools(names, placement, options)
    if options.given_pools:
        arguments.append("&pools")
    if program.devices:
        handles = ", ".join(f'uaccel_hal_device("{engine.name}")' for engine in program.devices)
        lines.append(f"    struct {names.prefix}_devices devices = {{{handles}}};")
        arguments.append("&devices")
    return "\n".join([*lines, f"    return {names.prefix}_run({', '.join(arguments)});", "}", ""])


def _given_pools(names: Names, placement: Placement, options: EmitOptions) -> list[str]:
    """The variable of the pools that are passed to the run function; no line if there are none."""
    if not options.given_pools:
        return []
    filled = _filled_pools(placement, options)
    arrays = ", ".join(options.array(names, pool) if pool in filled else "0" for pool in options.given_pools)
    return [f"    struct {names.prefix}_workspace_pools pools = {{{arrays}}};"]


def _members(array: str, numbers: Iterable[int]) -> str:
    return ", ".join(f"{array}[{i}].data" for i in numbers) or "0"


def _feed(program: Program, names: Names, placement: Placement, options: EmitOptions) -> str:
    """The C function that takes bytes as they come over a line, collects them, and feeds the model whole rows."""
    if program.fed is None:
        return ""
    pools, given = _given_pools(names, placement, options), ", &pools" if options.given_pools else ""
    row = f"{names.macro}_FEED_ROW_SIZE"
    lines = [
        "static int32_t feed(const void *bytes, uint32_t count)",
        "{",
        f"    static UACCEL_ALIGNED({program.alignment}) uint8_t row[{row}];",
        "    static uint32_t filled;",
        *pools,
        "    const uint8_t *from = bytes;",
        f"    int32_t status = {names.macro}_OK;",
        "    if (bytes == NULL) {",
        "        filled = 0;",
        f"        return {names.prefix}_feed(NULL, 0{given});",
        "    }",
        f"    while (count > 0 && status == {names.macro}_OK) {{",
        f"        const uint32_t part = count < {row} - filled ? count : {row} - filled;",
        "        memcpy(row + filled, from, part);",
        "        from += part;",
        "        count -= part;",
        f"        filled = (filled + part) % {row};",
        "        if (filled == 0) {",
        f"            status = {names.prefix}_feed(row, 1{given});",
        "        }",
        "    }",
        "    return status;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _model(program: Program, options: EmitOptions, build: bytes) -> str:
    signature = program.signature
    return (
        "const struct uaccel_model uaccel_model = {\n"
        f'    .name = "{program.name}",\n'
        f"    .hash = {{{_bytes(bytes.fromhex(program.model.digest))}}},\n"
        f"    .build = {{{_bytes(build)}}},\n"
        f"    .input_count = {len(signature.inputs)},\n"
        f"    .output_count = {len(signature.outputs)},\n"
        f"    .layer_count = {len(program.layers)},\n"
        f"{'    .workspace_io = 1,' + chr(10) if options.workspace_io or options.feed else ''}"
        "    .inputs = inputs,\n"
        "    .outputs = outputs,\n"
        "    .description = description,\n"
        f"    .accounts = {'accounts' if program.engines else '0'},\n"
        "    .run = run,\n"
        f"{_state_members(program)}"
        f"{'    .feed = feed,' + chr(10) if options.feed else ''}"
        "};\n"
    )


def _state_members(program: Program) -> str:
    if not program.state:
        return ""
    prefix = f"tvmgen_{program.name}"
    return f"""    .reset = {prefix}_reset,
    .state = {prefix}_state,
    .state_bytes = {prefix.upper()}_STATE_SIZE,
"""


def _bytes(data: bytes) -> str:
    words = [f"0x{byte:02X}" for byte in data]
    rows = [", ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return ",\n              ".join(rows)


# Types and conversions in the public header: each tensor's element type, count, shape, scale and zero point.

CONVERTED: Final = ("int8", "uint8", "int16")  # Element types with functions from and to real numbers.


def typed_macros(program: Program, names: Names) -> str:
    """The header's macros of every input and output, behind the sizes."""
    signature = program.signature
    rows = [
        line
        for macros, specs in ((names.input_sizes, signature.inputs), (names.output_sizes, signature.outputs))
        for macro, spec in zip(macros, specs, strict=True)
        for line in _macros(macro.removesuffix("_SIZE"), spec)
    ]
    head = (
        "/* Of each: the type of its elements, how many there are, and the extents. Where it is quantised,\n"
        " * a real number is scale * (element - zero point). */"
    )
    return "\n".join([head, *rows]) + "\n" if rows else ""


def _macros(base: str, spec: TensorSpec) -> list[str]:
    shape = ", ".join(map(str, spec.info.shape))
    lines = [
        f"#define {base}_TYPE {storage_type(spec.info.dtype)}",
        f"#define {base}_COUNT {spec.info.elements}",
        f"#define {base}_RANK {len(spec.info.shape)}",
    ]
    lines += [f"#define {base}_SHAPE {{{shape}}}"] if shape else []
    lines += _from_metadata(base, spec)
    quantisation = spec.quantisation
    if quantisation is None or quantisation.per_channel:
        return lines
    return [
        *lines,
        f"#define {base}_SCALE {float_literal(quantisation.scale, 'float32')}",
        f"#define {base}_ZERO_POINT {_signed(quantisation.zero_point)}",
    ]


def _from_metadata(base: str, spec: TensorSpec) -> list[str]:
    """How raw values become real ones and the names of classes, where the file says so. Macros take no flash."""
    lines, told = [], spec.normalisation
    if told is not None:
        lines += [
            "/* A raw value such as a pixel is the real number (value - MEAN) / STD, for each channel where braced. */",
            f"#define {base}_MEAN {_numbers(told.mean)}",
            f"#define {base}_STD {_numbers(told.std)}",
        ]
    if spec.labels:
        names = ", \\\n    ".join(map(c_string, spec.labels))
        lines += [
            f"/* Names of classes: static const char *const labels[] = {base}_LABELS; */",
            f"#define {base}_LABELS {{ \\\n    {names}}}",
        ]
    return lines


def _numbers(values: Sequence[float]) -> str:
    texts = [float_literal(value, "float32") for value in values]
    return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"


def _signed(value: int) -> str:
    """An integer as an operand of any expression: negative ones in parentheses."""
    return f"({int_literal(value)})" if value < 0 else int_literal(value)


def is_converted(spec: TensorSpec) -> bool:
    """Whether the header has a function between the tensor's elements and real numbers."""
    quantisation = spec.quantisation
    return spec.info.dtype in CONVERTED and quantisation is not None and not quantisation.per_channel


def conversions(program: Program, names: Names) -> str:
    """The header's functions from real numbers to an input's elements, and from an output's elements back."""
    signature = program.signature
    inputs = zip(names.inputs, names.input_sizes, signature.inputs, strict=True)
    outputs = zip(names.outputs, names.output_sizes, signature.outputs, strict=True)
    takes = [_quantize(names, member, macro, spec) for member, macro, spec in inputs if is_converted(spec)]
    gives = [_dequantize(names, member, macro, spec) for member, macro, spec in outputs if is_converted(spec)]
    return "\n".join([*([_nearest(names)] if takes else []), *takes, *gives])


def _nearest(names: Names) -> str:
    """The C function that rounds and saturates. It limits first, so that the cast to an integer never overflows; a NaN
    fails the first comparison and becomes ``low``. The bounds are below 2**24, hence floats hold them exactly."""
    return f"""/* Private: the nearest integer between two bounds, halves away from zero; a NaN becomes the lower. */
static inline int32_t {names.prefix}_nearest(float steps, float low, float high)
{{
    const float held = steps > low ? (steps < high ? steps : high) : low;
    const int32_t whole = (int32_t)held;
    const float rest = held - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}}
"""


def _quantize(names: Names, member: str, macro: str, spec: TensorSpec) -> str:
    assert spec.quantisation is not None
    base, dtype = macro.removesuffix("_SIZE"), spec.info.dtype
    low, high = (int(bound) - spec.quantisation.zero_point for bound in limits(dtype))
    c = storage_type(dtype)
    head = wrap_call(f"static inline {c} {names.prefix}_quantize_{member}", ["float real"])
    return f"""/* The element that stands for a real number; of what is beyond the range, the end of the range. */
{head}
{{
    const float steps = real / {base}_SCALE;
    const int32_t whole = {names.prefix}_nearest(steps, {low}.0f, {high}.0f);
    return ({c})(whole + {base}_ZERO_POINT);
}}
"""


def _dequantize(names: Names, member: str, macro: str, spec: TensorSpec) -> str:
    base = macro.removesuffix("_SIZE")
    head = wrap_call(
        f"static inline float {names.prefix}_dequantize_{member}", [f"{storage_type(spec.info.dtype)} element"]
    )
    return f"""/* The real number that an element of the output stands for. */
{head}
{{
    const int32_t steps = (int32_t)element - {base}_ZERO_POINT;
    return (float)steps * {base}_SCALE;
}}
"""
