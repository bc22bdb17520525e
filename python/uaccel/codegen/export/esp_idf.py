"""Exports format ``esp-idf``: a component, in a project whose ``main`` uses it."""

from __future__ import annotations

import json

from uaccel.codegen.export.base import APP_MAIN, Files, Format, Rest, embedded_notes, sources_of, summary
from uaccel.codegen.export.library import VERSION, Library


def _rest(export: Library, files: Files) -> Rest:
    """The rest of the project; ``components/<name>`` can be published or copied alone."""
    component = f"components/{export.name}/"
    includes = ["include", *(["src"] if export.engines else [])]
    own = {
        "CMakeLists.txt": PROJECT.format(title=export.title, name=export.name),
        "main/CMakeLists.txt": _component(sources_of(files, "main/"), requires=[export.name]),
        f"{component}CMakeLists.txt": _component(sources_of(files, component), includes, private=["src"]),
        f"{component}idf_component.yml": _manifest(export),
    }
    contents = [
        (component, "the component: `include/` for applications, `src/` the model and its kernels"),
        ("main/", "an application that feeds a sample"),
    ]
    return Rest(own, ["idf.py set-target esp32c3", "idf.py build"], contents, embedded_notes(export))


FORMAT = Format(_rest, root="components/{name}/", example="main", main=APP_MAIN)

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


def _manifest(export: Library) -> str:
    """The component's manifest. Strings are quoted as in JSON, which is valid YAML."""
    return f'version: "{VERSION}"\ndescription: {json.dumps(summary(export))}\ndependencies:\n  idf: ">=4.4"\n'
