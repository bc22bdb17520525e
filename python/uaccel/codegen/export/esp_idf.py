"""Exports format ``esp-idf``: a component, in a project whose ``main`` uses it."""

from __future__ import annotations

import json

from uaccel.codegen.export.base import (
    VERSION,
    Export,
    below,
    embedded_library,
    embedded_notes,
    readme,
    sized,
    sources_of,
)
from uaccel.codegen.export.example import APP_MAIN, embedded_example
from uaccel.errors import one_line


def esp_idf(export: Export) -> dict[str, str]:
    """The files of the project; ``components/<name>`` can be published or copied alone."""
    component = f"components/{export.name}"
    library, application = embedded_library(export), embedded_example(export, APP_MAIN)
    includes = ["include", *(["src"] if export.engines else [])]
    files = {
        "CMakeLists.txt": PROJECT.format(title=export.title, name=export.name),
        "main/CMakeLists.txt": _component(sources_of(application), requires=[export.name]),
        **below("main", application),
        f"{component}/CMakeLists.txt": _component(sources_of(library), includes, private=["src"]),
        f"{component}/idf_component.yml": _manifest(export),
        **below(component, library),
    }
    contents = [
        (f"{component}/", "the component: `include/` for applications, `src/` the model and its kernels"),
        ("main/", "an application that feeds a sample"),
    ]
    commands = ["idf.py set-target esp32c3", "idf.py build"]
    return files | {"README.md": readme(export, commands, contents, embedded_notes(export))}


PROJECT = """\
# {title}.
cmake_minimum_required(VERSION 3.16)
include($ENV{{IDF_PATH}}/tools/cmake/project.cmake)
project({name}_example)
"""


def _component(
    sources: list[str],
    includes: list[str] | None = None,
    *,
    private: list[str] | None = None,
    requires: list[str] | None = None,
) -> str:
    given = {
        "SRCS": [json.dumps(name) for name in sources],
        "INCLUDE_DIRS": [json.dumps(name) for name in includes or []],
        "PRIV_INCLUDE_DIRS": [json.dumps(name) for name in private or []],
        "PRIV_REQUIRES": requires or [],
    }
    rows = "".join(f"\n    {key}\n        " + "\n        ".join(words) for key, words in given.items() if words)
    return f"idf_component_register({rows})\n"


def _manifest(export: Export) -> str:
    """The component's manifest. Strings are quoted as in JSON, which is valid YAML."""
    description = one_line(f"{export.program.name}, a quantised neural network in C: {sized(export)}, no heap.")
    return f'version: "{VERSION}"\ndescription: {json.dumps(description)}\ndependencies:\n  idf: ">=4.4"\n'
