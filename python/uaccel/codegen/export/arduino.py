"""Exports format ``arduino``: a library for the Arduino IDE with sketches for inference, sessions and MLPerf Tiny."""

from __future__ import annotations

from typing import Any, Final

from uaccel.codegen.export.base import Files, Format, Rest, below, conversions, device_table, sized
from uaccel.codegen.export.example import (
    HEADER,
    call_lines,
    header,
    largest_lines,
    output_arrays,
    output_rows,
    real_value,
    why_not,
)
from uaccel.codegen.export.library import VERSION, Export, Library
from uaccel.codegen.header import include_closure
from uaccel.errors import one_line
from uaccel.model import TensorSpec
from uaccel.util import incoming
from uaccel.util.files import data_dir

INFERENCE: Final = "examples/Inference"
SESSION: Final = "examples/Session"
BENCHMARK: Final = "examples/MLPerfTiny"
LONGEST_NAME: Final = 63
HOME: Final = "https://github.com/uaccel/uaccel"
# Smaller buffers in the server's headers. A core's Serial keeps 64 bytes, one of which it never uses: 63 may wait.
SMALLER: Final = {
    "uaccel_frame.h": ("#define UACCEL_BODY_BYTES 512", "#define UACCEL_BODY_BYTES 96"),
    "uaccel_port.h": ("#define UACCEL_PORT_RECEIVE_BYTES 4096", "#define UACCEL_PORT_RECEIVE_BYTES 63"),
}


def _rest(library: Library, _: Files) -> Rest:
    """The rest of the library. All of ``src`` is one folder, since Arduino searches no other for headers."""
    (export,) = library.models
    files = {
        "library.properties": _properties(export),
        "keywords.txt": _keywords(export),
        f"{INFERENCE}/Inference.ino": _inference(export),
        f"{SESSION}/Session.ino": _sketch(export, SESSIONS, "    uaccel_server_start();\n", "uaccel_server_poll"),
    }
    files |= below(f"{SESSION}/src", _server() | export.generated.description | device_table(export))
    if is_benchmarked(export):
        files |= {f"{BENCHMARK}/MLPerfTiny.ino": _sketch(export, MLPERF_TINY, "", "uaccel_serve")}
        files |= below(f"{BENCHMARK}/src", _benchmark(export) | export.generated.description | device_table(export))
    return Rest(files, COMMANDS, _contents(export), _notes(export))


ALONE: Final = "has sketches about one model"
FORMAT = Format(_rest, include="src", example=INFERENCE, main=None, alone=ALONE, assembles=False)


def is_benchmarked(export: Export) -> bool:
    return not why_not(*_tensors(export)) and not export.engines


def _tensors(export: Export) -> tuple[dict[str, Any], dict[str, Any]]:
    signature = export.program.signature
    inputs, outputs = ({spec.name: spec.to_json() for spec in side} for side in (signature.inputs, signature.outputs))
    return inputs, outputs


def _benchmark(export: Export) -> dict[str, str]:
    """The sources of MLPerf Tiny's protocol, on the same serial port as sessions."""
    source = data_dir("firmware") / "runtime" / "mlperf_tiny" / "uaccel_mlperf_tiny.c"
    server = _server()
    files = {name: server[name] for name in server if not name.endswith(".c") and name != "uaccel_account.h"}
    return files | {source.name: incoming.read_text(source), HEADER: header(export.program.name, *_tensors(export))}


def _server() -> dict[str, str]:
    """The sources of the session server and its port, for a CPU with little memory."""
    firmware = data_dir("firmware")
    sources = [path for path in sorted((firmware / "runtime").glob("*.[ch]")) if path.name != "uaccel_main.c"]
    sources += sorted((firmware / "ports" / "arduino").glob("*.cpp"))
    files = {path.name: incoming.read_text(path) for path in sources}
    parts = ("port", "model", "log", "accelerator", "account_state", "observe")
    files |= include_closure([f"uaccel_{part}.h" for part in parts])
    for name, (usual, smaller) in SMALLER.items():
        assert usual in files[name]
        files[name] = files[name].replace(usual, smaller)
    return files


def _properties(export: Export) -> str:
    rows = {
        "name": export.name[:LONGEST_NAME],
        "version": VERSION,
        "author": "uaccel",
        "maintainer": "uaccel",
        "sentence": one_line(f"{export.program.name}, a quantised neural network in C."),
        "paragraph": one_line(f"{sized(export)}, no heap. Sketches run it on a sample and over Serial."),
        "category": "Data Processing",
        "url": HOME,
        "architectures": "*",
        "includes": export.names.header,
    }
    return "".join(f"{key}={value}\n" for key, value in rows.items())


def _keywords(export: Export) -> str:
    """The words that the IDE colours, each with its kind behind a tab."""
    name, (quantize, dequantize) = export.name, conversions(export)
    functions = [f"{name}_run", *([f"{name}_reset"] if export.program.state else []), *quantize, *dequantize]
    types = [f"{name}_inputs", f"{name}_outputs"]
    return "".join(f"{word}\tKEYWORD1\n" for word in types) + "".join(f"{word}\tKEYWORD2\n" for word in functions)


def _inference(export: Export) -> str:
    name, macro = export.name, export.names.macro
    shown = [line for row in output_rows(export) for line in _printed(export, *row)]
    devices = ['#include "uaccel_hal.h"'] if export.engines else []
    lines = [
        f"/* Runs {export.program.name} on a sample, and says whether the outputs are what the model means. */",
        f"#include <{export.names.header}>",
        *(['extern "C" {', *devices, "}"] if devices else []),
        f'#include "{name}_sample.h"',
        "",
        *output_arrays(export),
        "void setup()",
        "{",
        "    Serial.begin(115200);",
        "    while (!Serial) {",
        "    }",
        *call_lines(export),
        f"    if (status != {macro}_OK) {{",
        f'        Serial.print(F("{name}_run returned "));',
        "        Serial.println(status);",
        "        return;",
        "    }",
        *shown,
        f"    Serial.print({name}_sample_differing(&outputs));",
        '    Serial.println(F(" elements differ from what the model means"));',
        "}",
        "",
        "void loop()",
        "{",
        "}",
        "",
    ]
    return "\n".join(lines)


def _printed(export: Export, member: str, base: str, spec: TensorSpec) -> list[str]:
    return [
        *largest_lines(export, member, base),
        f'    Serial.print(F("{member}: element "));',
        f"    Serial.print(largest_{member});",
        '    Serial.print(F(" is the largest, "));',
        f"    Serial.println((double){real_value(export, member, spec)}, 6);",
    ]


# A sketch that speaks a protocol: what it says of itself, what it sets up more, and what its loop calls.
SKETCH: Final = """\
/* {about} */
#include <{header}>

extern "C" {{
#include "src/uaccel_port.h"
#include "src/uaccel_server.h"
}}

void setup()
{{
    uaccel_port_init();
{more}}}

void loop()
{{
    {loop}();
}}
"""
SESSIONS: Final = (
    "Speaks uaccel's session protocol over Serial, at 115200 baud: in Python, uaccel.Session.open(port) runs the model "
    "of\n * {name} here. Leave the sketch's folder src out of an application of yours."
)
MLPERF_TINY: Final = "Speaks MLPerf Tiny's serial protocol over Serial, at 115200 baud, about the model of {name}."


def _sketch(export: Export, about: str, more: str, loop: str) -> str:
    about = about.format(name=export.program.name)
    return SKETCH.format(about=about, header=export.names.header, more=more, loop=loop)


COMMANDS: Final = [
    "mkdir -p build",
    "arduino-builder -compile -hardware /usr/share/arduino/hardware -hardware /usr/share/arduino-builder \\",
    "  -tools /usr/bin -fqbn arduino:avr:mega:cpu=atmega2560 -prefs compiler.cpp.extra_flags=-DDECIMAL_DIG=10 \\",
    '  -libraries "$PWD/.." -build-path "$PWD/build" examples/Inference/Inference.ino',
]


def _contents(export: Export) -> list[tuple[str, str]]:
    return [
        ("library.properties", "what the Arduino IDE reads; it takes the folder as a zip: Add .ZIP Library"),
        ("src/", "the model" + (", its accelerators' drivers" if export.engines else "") + " and kernels"),
        (f"{INFERENCE}/", "a sketch that feeds a sample and prints the result"),
        (f"{SESSION}/", "a sketch that `uaccel.Session` talks to over Serial"),
        *([(f"{BENCHMARK}/", "a sketch that speaks MLPerf Tiny's protocol")] if is_benchmarked(export) else []),
    ]


def _notes(export: Export) -> list[str]:
    where = "Define where accelerators lie in `uaccel_devices.c` beside each sketch."
    return [
        "The command is for Debian's `arduino-builder` and `arduino-core-avr`. With arduino-cli:\n"
        "`arduino-cli compile --fqbn arduino:avr:mega --library . examples/Inference`.",
        f"It takes {sized(export)}. An AVR keeps constants in RAM.",
        *([where] if export.engines else []),
    ]
