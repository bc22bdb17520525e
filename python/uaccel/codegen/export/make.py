"""Exports format ``make``: a Makefile that builds a static library and the example."""

from __future__ import annotations

from uaccel.codegen.export.base import (
    DESK_HEADER,
    ROWS,
    Files,
    Format,
    Rest,
    apart_contents,
    cross_compiler,
    desk_options,
)
from uaccel.codegen.export.library import Library


def _rest(export: Library, _: Files) -> Rest:
    """The rest; the Makefile works with any compiler that ``CC`` names."""
    contents = [*ROWS, ("example/", "feeds a sample"), *apart_contents(export), ("Makefile", "`all`, `check`, `clean`")]
    cross = cross_compiler(export.board)
    other = "make CC=arm-none-eabi-gcc AR=arm-none-eabi-ar CFLAGS='-O2 -mcpu=cortex-m4' lib"
    notes = [f"For another CPU: `{other}`."] if cross is None else []
    commands = ["make check"]
    if cross is not None:
        commands = [f"make CC={cross.program} AR={cross.prefix}-ar \\", f"  CFLAGS='-O2 {cross.flags}' lib"]
    if export.engines:
        notes.append("For hardware add `DESK=` and define in `CFLAGS` where the accelerators lie.")
    return Rest({"Makefile": _makefile(export)}, commands, contents, notes)


FORMAT = Format(_rest, apart=True)


def _makefile(export: Library) -> str:
    library_file = f"lib{export.name}.a"
    accelerators = _accelerators(export)
    flags = "$(CFLAGS) -Iinclude -Isrc" + (" $(REACH)" if export.engines else "")
    sources = f"$(wildcard {' '.join(f'src/*.{language}' for language in export.languages)})" + (
        " $(DEVICES)" if export.engines else ""
    )
    return f"""# {export.title}.
#   make check    builds the library and the example, and runs it
CC ?= cc
AR ?= ar
CFLAGS ?= -O2
BUILD ?= build
{accelerators}
FLAGS = -std=c99 {flags}
SOURCES = {sources}
OBJECTS = $(patsubst %,$(BUILD)/%.o,$(basename $(SOURCES)))

.PHONY: all lib check clean
all: lib $(BUILD)/run
lib: {library_file}

{library_file}: $(OBJECTS)
\trm -f $@
\t$(AR) rcs $@ $(OBJECTS)

$(BUILD)/%.o: %.c
\tmkdir -p $(dir $@)
\t$(CC) $(FLAGS) -MMD -MP -c $< -o $@
{_assembler(export)}
$(BUILD)/run: $(BUILD)/example/main.o {library_file}
\t$(CC) $(FLAGS) $^ -lm -o $@

check: $(BUILD)/run
\t$(BUILD)/run

clean:
\trm -rf $(BUILD) {library_file}

-include $(OBJECTS:.o=.d) $(BUILD)/example/main.d
"""


def _assembler(export: Library) -> str:
    """The rule for constants in a binary file."""
    if not export.binaries:
        return ""
    return """
$(BUILD)/%.o: %.S $(wildcard src/*.npz)
\tmkdir -p $(dir $@)
\t$(CC) $(CFLAGS) -Isrc -c $< -o $@
"""


def _accelerators(export: Library) -> str:
    """The Makefile's switch between models of the devices and the devices themselves."""
    if not export.engines:
        return ""
    includes, sources = desk_options(export)
    return f"""# 1: models stand in for the accelerators; empty: registers, where hardware/uaccel_devices.c says.
DESK ?= 1
ifneq ($(DESK),)
DEVICES = $(wildcard {sources})
REACH = -include {DESK_HEADER} {includes}
else
DEVICES = $(wildcard hardware/*.c)
REACH = -Ihardware
endif
"""
