"""Prints the example application of an export, and the header by which firmware speaks MLPerf Tiny's protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from uaccel.codegen.describe import is_converted
from uaccel.codegen.export.library import Export, Library, listed
from uaccel.model import Array, TensorSpec
from uaccel.util.c_text import FLOATS, array_body, float_literal, storage_type
from uaccel.util.text import BENCHMARK_HEADER

# The example: an application that runs the model on a sample and counts the elements that differ from what is expected.


def sample_header(export: Export) -> dict[str, str]:
    """The header with the sample, its expected outputs, and a function that compares."""
    names, sample = export.names, export.sample
    guard = f"{names.macro}_SAMPLE_H"
    parts = [
        f"/* A sample for {export.program.name}, and the outputs that the model means. */",
        f"#ifndef {guard}\n#define {guard}\n",
        f'#include "{names.header}"\n',
        _places(export),
    ]
    if any(value.dtype.kind == "f" and not np.isfinite(value).all() for value in (*sample.inputs, *sample.outputs)):
        parts.insert(2, "#include <math.h>\n#include <string.h>\n")
    for kind, members, macros, values in (
        ("sample", names.inputs, names.input_sizes, sample.inputs),
        ("expected", names.outputs, names.output_sizes, sample.outputs),
    ):
        rows = zip(members, macros, values, strict=True)
        parts += [
            _array(export, f"{kind}_{member}", macro.removesuffix("_SIZE"), value) for member, macro, value in rows
        ]
    return {f"{names.prefix}_sample.h": "\n".join([*parts, _comparison(export), "#endif\n"])}


def _places(export: Export) -> str:
    """The macro that places inputs and outputs where accelerators can reach them."""
    if not export.engines:
        return ""
    return '#include "uaccel_kernel.h"\n\n#ifndef UACCEL_IO\n#define UACCEL_IO\n#endif\n'


def _place(export: Export) -> str:
    return f"UACCEL_IO UACCEL_ALIGNED({export.program.alignment}) " if export.engines else ""


def _array(export: Export, name: str, base: str, value: Array) -> str:
    data = np.ascontiguousarray(value)
    data = data.astype(np.uint8) if data.dtype.kind == "b" else data
    place = "const " if name.startswith("expected_") else _place(export)
    return f"static {place}{base}_TYPE\n    {export.name}_{name}[{base}_COUNT] = {{\n{array_body(data)}\n}};\n"


def _comparison(export: Export) -> str:
    names, loops = export.names, []
    for (member, base, spec), wanted in zip(output_rows(export), export.sample.outputs, strict=True):
        c = storage_type(spec.info.dtype)
        condition = _differs(spec, export.sample.tolerance, wanted, f"{names.prefix}_expected_{member}")
        loops.append(
            "    {\n"
            f"        const {c} *got = (const {c} *)outputs->{member};\n"
            f"        for (int32_t i = 0; i < {base}_COUNT; ++i) {{\n"
            f"            differing += {condition} ? 1 : 0;\n"
            "        }\n    }\n"
        )
    return (
        "/* How many elements of the outputs are not what the model means. */\n"
        f"static int32_t {names.prefix}_sample_differing(const struct {names.prefix}_outputs *outputs)\n"
        f"{{\n    int32_t differing = 0;\n{''.join(loops)}    return differing;\n}}\n"
    )


def _differs(spec: TensorSpec, tolerance: float, wanted: Array, expected: str) -> str:
    """The C condition by which an element differs.

    Verification allows a float ``near * |expected| + near * largest``. The example allows the most that this can be,
    ``2 * near * largest``, in one constant for the whole tensor. ``1e-37`` keeps it above 0 and a normal float. Negated
    comparisons let a NaN differ; where NaN or infinity is expected, equal bits pass first.
    """
    if spec.info.dtype in FLOATS:
        largest = float(np.abs(wanted, where=np.isfinite(wanted), out=np.zeros(wanted.shape)).max(initial=0.0))
        near, base = max(tolerance, 1e-5), f"{expected}[i]"
        same = f"memcmp(&got[i], &{base}, sizeof got[i]) != 0 && " if not np.isfinite(wanted).all() else ""
        bound = float_literal(near * largest * 2 + 1e-37, spec.info.dtype)
        return f"({same}!(got[i] - {base} <= {bound} && {base} - got[i] <= {bound}))"
    if tolerance and spec.info.dtype in ("int8", "uint8", "int16"):
        steps = int(tolerance)
        difference = f"(int32_t)got[i] - {expected}[i]"
        return f"({difference} > {steps} || {difference} < -{steps})"
    return f"got[i] != {expected}[i]"


def main_source(library: Library, form: tuple[str, str, str]) -> str:
    """The source of an application for a console."""
    return _main_of_one(library.models[0], form) if len(library.models) == 1 else _main_of_several(library, form)


def _main_of_several(library: Library, form: tuple[str, str, str]) -> str:
    """Each model has a function, and they run in turn."""
    head, good, bad = form
    calls = [f"    differing += run_{model.label}();" for model in library.models]
    lines = [
        f"/* Runs {listed(model.label for model in library.models)} in turn, each on a sample. */",
        "#include <stdio.h>",
        "",
        *(f'#include "{model.name}_sample.h"' for model in library.models),
        *(['#include "uaccel_hal.h"'] if library.engines else []),
        "",
        *(line for model in library.models for line in _run_of(model)),
        head,
        "{",
        "    int32_t differing = 0;",
        *calls,
        '    printf("%ld elements differ from what the models mean\\n", (long)differing);',
        *(["    if (differing != 0) {", bad, "    }", good] if good != "    return;" else []),
        "}",
        "",
    ]
    return "\n".join(lines)


def _run_of(export: Export) -> list[str]:
    """A function that runs one of several models, and returns how many elements differ."""
    return [
        *output_arrays(export),
        f"static int32_t run_{export.label}(void)",
        "{",
        *call_lines(export),
        f"    if (status != {export.names.macro}_OK) {{",
        f'        printf("{export.name}_run returned %ld\\n", (long)status);',
        "        return 1;",
        "    }",
        *[line for member, macro, spec in output_rows(export) for line in _shown(export, member, macro, spec)],
        f"    return {export.name}_sample_differing(&outputs);",
        "}",
        "",
    ]


def _main_of_one(export: Export, form: tuple[str, str, str]) -> str:
    names, (head, good, bad) = export.names, form
    lines = [
        f"/* Runs {export.program.name} on a sample; docs of the interface: {names.header}. */",
        "#include <stdio.h>",
        "",
        f'#include "{names.prefix}_sample.h"',
        *(['#include "uaccel_hal.h"'] if export.engines else []),
        "",
        *output_arrays(export),
        head,
        "{",
        *call_lines(export),
        f"    if (status != {names.macro}_OK) {{",
        f'        printf("{names.prefix}_run returned %ld\\n", (long)status);',
        bad,
        "    }",
        *[line for member, macro, spec in output_rows(export) for line in _shown(export, member, macro, spec)],
        f"    const int32_t differing = {names.prefix}_sample_differing(&outputs);",
        '    printf("%ld elements differ from what the model means\\n", (long)differing);',
        *(["    if (differing != 0) {", bad, "    }", good] if good != "    return;" else []),
        "}",
        "",
    ]
    return "\n".join(lines)


def output_rows(export: Export) -> list[tuple[str, str, TensorSpec]]:
    """Member, macro without its end, and tensor of every output."""
    names = export.names
    bases = [macro.removesuffix("_SIZE") for macro in names.output_sizes]
    return list(zip(names.outputs, bases, export.program.signature.outputs, strict=True))


def output_arrays(export: Export) -> list[str]:
    """The application's arrays for the outputs."""
    place = _place(export)
    return [
        *(
            f"static {place}{base}_TYPE\n    {export.name}_output_{member}[{base}_COUNT];"
            for member, base, _ in output_rows(export)
        ),
        "",
    ]


def call_lines(export: Export) -> list[str]:
    """The lines of one inference; they define ``status`` and ``outputs``."""
    names, prefix = export.names, export.name
    given = ", ".join(f"{prefix}_sample_{member}" for member in names.inputs) or "0"
    wanted = ", ".join(f"{prefix}_output_{member}" for member in names.outputs) or "0"
    lines = [
        f"    struct {prefix}_inputs inputs = {{{given}}};",
        f"    struct {prefix}_outputs outputs = {{{wanted}}};",
    ]
    arguments = ["&inputs", "&outputs"]
    if export.engines:
        handles = ", ".join(f'uaccel_hal_device("{engine.name}")' for engine in export.engines)
        lines.append(f"    struct {prefix}_devices devices = {{{handles}}};")
        arguments.append("&devices")
    lines += [f"    {prefix}_reset();"] if export.program.state else []
    return [*lines, f"    const int32_t status = {prefix}_run({', '.join(arguments)});"]


def largest_lines(export: Export, member: str, base: str) -> list[str]:
    """The lines that find the largest element, as ``largest_<member>``."""
    return [
        f"    const {base}_TYPE *const values_{member} = {export.name}_output_{member};",
        f"    int32_t largest_{member} = 0;",
        f"    for (int32_t i = 1; i < {base}_COUNT; ++i) {{",
        f"        largest_{member} = values_{member}[i] > values_{member}[largest_{member}] ? i : largest_{member};",
        "    }",
    ]


def real_value(export: Export, member: str, spec: TensorSpec) -> str:
    """The C expression for the largest element, as a real number where there is a conversion."""
    element = f"values_{member}[largest_{member}]"
    return f"{export.name}_dequantize_{member}({element})" if is_converted(spec) else element


def _shown(export: Export, member: str, base: str, spec: TensorSpec) -> list[str]:
    return [
        *largest_lines(export, member, base),
        f'    printf("{member}: element %ld of %ld is the largest, %g\\n",',
        f"           (long)largest_{member}, (long){base}_COUNT,",
        f"           (double){real_value(export, member, spec)});",
    ]


# MLPerf Tiny: the header that tells the benchmark's serial protocol which model runs and how its data are to be read.

NAME: Final = "mlperf-tiny"
HEADER: Final = BENCHMARK_HEADER
PIN: Final = "uaccel_mlperf_tiny_pin.c"
ENERGY: Final = """#define UACCEL_MLPERF_ENERGY
/* The project's: drives the pin that the power monitor watches, low (0) or high (1). The first call is at the start. */
void uaccel_mlperf_tiny_pin(unsigned high);
"""
# The benchmark's models by the shape of their input: name and kind of data. Other models keep their name and raw data.
MODELS: Final = {
    (1, 32, 32, 3): ("ic01", "IMAGES"),
    (1, 96, 96, 3): ("vww01", "IMAGES"),
    (1, 49, 10, 1): ("kws01", "AS_THEY_ARE"),
    (1, 640): ("ad01", "REAL_NUMBERS"),
    (1, 30, 1, 40): ("sww01", "AS_THEY_ARE"),
}
TYPES: Final = {  # C type, bytes, lowest and highest value.
    "int8": ("int8_t", 1, -128, 127),
    "uint8": ("uint8_t", 1, 0, 255),
    "int16": ("int16_t", 2, -32768, 32767),
    "int32": ("int32_t", 4, 0, 0),
    "float32": ("float", 4, 0, 0),
}


def why_not(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
    """Says why a model cannot be benchmarked; empty if it can. Tensors are as in the JSON of a compilation."""
    if len(inputs) != 1 or len(outputs) != 1:
        return f"is for models of one input and one output, not {len(inputs)} and {len(outputs)}"
    strange = [tensor["dtype"] for tensor in (*inputs.values(), *outputs.values()) if tensor["dtype"] not in TYPES]
    return f"has no tensors of type {strange[0]}" if strange else ""


def header(name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
    """The header of a model that can be benchmarked."""
    (given,), (made,) = inputs.values(), outputs.values()
    model, data = MODELS.get(tuple(given["shape"]), (name, "AS_THEY_ARE"))
    if given["dtype"] != "int8" or (data == "REAL_NUMBERS" and made["shape"] != given["shape"]):
        data = "AS_THEY_ARE"
    kind, size, lowest, highest = TYPES[given["dtype"]]
    count = math.prod(given["shape"])
    rows = {
        "MODEL": f'"{model}"',
        "DATA": data,
        "DATA_BYTES": 4 * count if data == "REAL_NUMBERS" else size * count,
        "INPUT_TYPE": kind,
        "INPUT_COUNT": count,
        "INPUT_SCALE": real(given["scale"]),
        "INPUT_ZERO_POINT": int(given["zero_point"] or 0),
        "INPUT_LOWEST": f"({lowest})",
        "INPUT_HIGHEST": highest,
        "OUTPUT_TYPE": TYPES[made["dtype"]][0],
        "OUTPUT_COUNT": math.prod(made["shape"]),
        "OUTPUT_SCALE": real(made["scale"]),
        "OUTPUT_ZERO_POINT": int(made["zero_point"] or 0),
    }
    lines = [f"#define UACCEL_MLPERF_{name} {value}" for name, value in rows.items()]
    return "\n".join(["/* What MLPerf Tiny's runner is told of this model. */", *lines, ""])


def real(scale: Any) -> str:
    """A literal of C's type float for exactly the same number; 1 for a tensor without a scale."""
    return f"{float(np.float32(1.0 if scale is None else scale))!r}f"
