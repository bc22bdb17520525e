"""Exports format ``cmake``: a library target that other projects add, install and find."""

from __future__ import annotations

from uaccel.codegen.export.base import (
    DESK_HEADER,
    ROWS,
    Files,
    Format,
    Rest,
    apart_contents,
    cross_compiler,
    desk_folders,
)
from uaccel.codegen.export.library import VERSION, Library


def _rest(export: Library, _: Files) -> Rest:
    """The rest; ``add_subdirectory`` and ``find_package`` both give the target ``uaccel::<name>``."""
    example, lists = ("example/", "feeds a sample"), ("CMakeLists.txt", "the target, its install")
    notes = [
        f"In a project of yours: `add_subdirectory` this folder, or install it and `find_package({export.name})`.\n"
        f"Then `target_link_libraries(application uaccel::{export.name})`."
    ]
    if export.engines:
        notes.append("For hardware configure with `-DUACCEL_DESK=OFF` and define where the accelerators lie.")
    return Rest(
        {"CMakeLists.txt": _lists(export)},
        _commands(export),
        [*ROWS, example, *apart_contents(export), lists],
        notes,
    )


def _commands(export: Library) -> list[str]:
    """Commands for this computer run the example, those for a board build the library: it has no start-up code."""
    cross = cross_compiler(export.board)
    if cross is None:
        return ["cmake -S . -B build", "cmake --build build", "./build/example"]
    return [
        "cmake -S . -B build -DCMAKE_SYSTEM_NAME=Generic -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \\",
        f"  -DCMAKE_C_COMPILER={cross.program} -D{export.name.upper()}_EXAMPLE=OFF \\",
        f"  -DCMAKE_C_FLAGS='{cross.flags}'",
        "cmake --build build",
    ]


FORMAT = Format(_rest, apart=True)


def _lists(export: Library) -> str:
    name, languages = export.name, "C ASM" if export.binaries else "C"
    globs = " ".join(f"${{CMAKE_CURRENT_SOURCE_DIR}}/src/*.{language}" for language in export.languages)
    return f"""# {export.title}.
cmake_minimum_required(VERSION 3.16)
project({name} VERSION {VERSION} LANGUAGES {languages})
include(GNUInstallDirs)

if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  set(EXAMPLE ON)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
endif()
option({name.upper()}_EXAMPLE "Build the example" ${{EXAMPLE}})

file(GLOB SOURCES CONFIGURE_DEPENDS {globs})
add_library({name} STATIC ${{SOURCES}})
add_library(uaccel::{name} ALIAS {name})
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_include_directories(
  {name}
  PUBLIC $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}/include> $<INSTALL_INTERFACE:${{CMAKE_INSTALL_INCLUDEDIR}}>
  PRIVATE src)
{_accelerators(export)}
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Generic")
  target_link_libraries({name} PUBLIC m)
endif()

if({name.upper()}_EXAMPLE)
  add_executable({name}_example example/main.c)
  set_target_properties({name}_example PROPERTIES OUTPUT_NAME example C_STANDARD 99 C_EXTENSIONS OFF)
  target_include_directories({name}_example PRIVATE src)
  target_link_libraries({name}_example PRIVATE {name})
endif()

install(TARGETS {name} EXPORT {name}Config ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}})
install(DIRECTORY include/ DESTINATION ${{CMAKE_INSTALL_INCLUDEDIR}})
install(EXPORT {name}Config NAMESPACE uaccel:: DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{name})
"""


def _accelerators(export: Library) -> str:
    """The CMake option that chooses between models of the devices and the devices themselves."""
    if not export.engines:
        return ""
    name = export.name
    folders = [f"${{CMAKE_CURRENT_SOURCE_DIR}}/{folder}" for folder in desk_folders(export)]
    globs = "".join(f"\n       {folder}/*.c" for folder in folders)
    places = "".join(f"\n    $<BUILD_INTERFACE:{folder}>" for folder in folders)
    header = f"${{CMAKE_CURRENT_SOURCE_DIR}}/{DESK_HEADER}"
    return f"""
option(UACCEL_DESK "Models of the accelerators stand in for them" ON)
if(UACCEL_DESK)
  file(GLOB DEVICES CONFIGURE_DEPENDS{globs})
  target_include_directories(
    {name} PUBLIC{places})
  target_compile_options({name} PUBLIC $<BUILD_INTERFACE:SHELL:-include {header}>)
else()
  file(GLOB DEVICES CONFIGURE_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/hardware/*.c)
  target_include_directories({name} PUBLIC $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}/hardware>)
endif()
target_sources({name} PRIVATE ${{DEVICES}})
"""
