"""Exports format ``platformio``: a project whose library PlatformIO finds in ``lib``."""

from __future__ import annotations

import json

from uaccel.codegen.export.base import VERSION, Export, below, embedded_library, embedded_notes, readme, sized
from uaccel.codegen.export.example import embedded_example
from uaccel.errors import one_line


def platformio(export: Export) -> dict[str, str]:
    """The files of the project, which runs the example; ``lib`` can be published or copied alone."""
    name = export.name
    files = {
        "platformio.ini": INI.format(title=export.title),
        f"lib/{name}/library.json": _manifest(export),
        **below(f"lib/{name}", embedded_library(export)),
        **below("src", embedded_example(export)),
    }
    contents = [
        (f"lib/{name}/", "the library: `include/` for applications, `src/` the model and its kernels, `library.json`"),
        ("src/", "the example"),
        ("platformio.ini", "this computer, and a Nucleo board"),
    ]
    commands = ["pio run -e native", ".pio/build/native/program"]
    return files | {"README.md": readme(export, commands, contents, embedded_notes(export))}


INI = """\
; {title}.
;   pio run -e native && .pio/build/native/program
[platformio]
default_envs = native

[env]
build_flags = -std=c99 -O2

[env:native]
platform = native
build_flags = ${{env.build_flags}} -lm

[env:nucleo_f446re]
platform = ststm32
board = nucleo_f446re
framework = stm32cube
"""


def _manifest(export: Export) -> str:
    """The library's manifest by PlatformIO's schema of ``library.json``."""
    manifest = {
        "name": export.name,
        "version": VERSION,
        "description": one_line(f"{export.program.name}, a quantised neural network in C: {sized(export)}, no heap."),
        "keywords": ["neural network", "machine learning", "tinyml"],
        "authors": [{"name": "uaccel"}],
        "headers": export.names.header,
        "frameworks": "*",
        "platforms": "*",
        "build": {"flags": ["-I src"], "includeDir": "include", "srcDir": "src"},
    }
    return json.dumps(manifest, indent=2) + "\n"
