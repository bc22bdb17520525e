"""Exports format ``zephyr``: a module with Kconfig, and an application that uses it."""

from __future__ import annotations

from uaccel.codegen.export.base import ROWS, Files, Format, Rest, embedded_notes, sources_of
from uaccel.codegen.export.library import Library


def _rest(export: Library, files: Files) -> Rest:
    """The rest of the module. Its root is the folder, which applications name in ``ZEPHYR_EXTRA_MODULES`` or in a west
    manifest."""
    own = {
        "zephyr/module.yml": f"name: {export.name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
        "zephyr/CMakeLists.txt": _module(export, sources_of(files, "src/")),
        "zephyr/Kconfig": _kconfig(export),
        "app/CMakeLists.txt": _application(export, sources_of(files, "app/src/")),
        "app/prj.conf": _configuration(export),
    }
    contents = [
        *ROWS,
        ("zephyr/", f"the module: `CONFIG_{export.macro}` takes it into an application"),
        ("app/", "an application that feeds a sample"),
    ]
    notes = ["Inside a Zephyr workspace; `ZEPHYR_BASE` elsewhere.", *embedded_notes(export)]
    return Rest(own, ["west build -b qemu_cortex_m3 app", "west build -t run"], contents, notes)


FORMAT = Format(_rest, example="app/src")


def _module(export: Library, sources: list[str]) -> str:
    rows = "".join(f"    ../src/{name}\n" for name in sources)
    public = "  zephyr_include_directories(../include" + (" ../src)" if export.engines else ")")
    return f"""# {export.title}.
if(CONFIG_{export.macro})
{public}
  zephyr_library_named({export.name})
  zephyr_library_sources(
{rows}  )
  zephyr_library_include_directories(../src)
endif()
"""


def _kconfig(export: Library) -> str:
    return f"""# {export.title}.
config {export.macro}
    bool "{export.title}"
    help
      The library {export.name}: include {export.header} and call
      {export.name}_run.
"""


def _application(export: Library, sources: list[str]) -> str:
    rows = "".join(f" src/{name}" for name in sources)
    return f"""cmake_minimum_required(VERSION 3.20.0)
list(APPEND ZEPHYR_EXTRA_MODULES ${{CMAKE_CURRENT_SOURCE_DIR}}/..)
find_package(Zephyr REQUIRED HINTS $ENV{{ZEPHYR_BASE}})
project({export.name}_example LANGUAGES C)

target_sources(app PRIVATE{rows})
"""


def _configuration(export: Library) -> str:
    """The application's configuration; a small stack is enough, since it holds no tensors."""
    return f"CONFIG_{export.macro}=y\nCONFIG_MAIN_STACK_SIZE=4096\nCONFIG_CBPRINTF_FP_SUPPORT=y\n"
