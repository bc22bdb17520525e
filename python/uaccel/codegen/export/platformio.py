"""Exports format ``platformio``: a project whose library PlatformIO finds in ``lib``."""

from __future__ import annotations

import json

from uaccel.codegen.export.base import Files, Format, Rest, embedded_notes, summary
from uaccel.codegen.export.library import VERSION, Library


def _rest(export: Library, _: Files) -> Rest:
    """The rest of the project, which runs the example; ``lib`` can be published or copied alone."""
    folder = f"lib/{export.name}/"
    files = {"platformio.ini": INI.format(title=export.title), f"{folder}library.json": _manifest(export)}
    contents = [
        (folder, "the library: `include/` for applications, `src/` the model and its kernels, `library.json`"),
        ("src/", "the example"),
        ("platformio.ini", "this computer, and a Nucleo board"),
    ]
    return Rest(files, ["pio run -e native", ".pio/build/native/program"], contents, embedded_notes(export))


FORMAT = Format(_rest, root="lib/{name}/", example="src")

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


def _manifest(export: Library) -> str:
    """The library's manifest by PlatformIO's schema of ``library.json``."""
    manifest = {
        "name": export.name,
        "version": VERSION,
        "description": summary(export),
        "keywords": ["neural network", "machine learning", "tinyml"],
        "authors": [{"name": "uaccel"}],
        "headers": export.header,
        "frameworks": "*",
        "platforms": "*",
        "build": {"flags": ["-I src"], "includeDir": "include", "srcDir": "src"},
    }
    return json.dumps(manifest, indent=2) + "\n"
