"""Exports format ``c``: every file in one folder, to be added to a project by hand."""

from __future__ import annotations

from uaccel.codegen.export.base import DESK_HEADER, Files, Format, Rest, apart_contents, cross_compiler, desk_options
from uaccel.codegen.export.library import Library


def _rest(export: Library, _: Files) -> Rest:
    contents = [
        (f"{export.name}.h", "the interface"),
        (_pattern(export), "the model, its constants" + (" and its accelerators' drivers" if export.engines else "")),
        ("uaccel_*.h", "kernels that the model is compiled from"),
    ]
    return by_hand(export, {}, contents)


def by_hand(export: Library, files: Files, contents: list[tuple[str, str]]) -> Rest:
    """The rest of a format without a build file: a command that compiles all for the user's computer."""
    contents = [*contents, ("main.c", "the example; leave it out of your application"), *apart_contents(export)]
    cross, all_files = cross_compiler(export.board), _pattern(export)
    if cross is not None:
        reached = f" -Ihardware {all_files} hardware/*.c" if export.engines else f" {all_files}"
        return Rest(files, [f"{cross.program} -std=c99 -O2 {cross.flags} \\", f"  -c{reached}"], contents)
    if not export.engines:
        return Rest(files, [f"cc -std=c99 -O2 {all_files} -lm -o example", "./example"], contents)
    includes, sources = desk_options(export)
    names = " and ".join(engine.name for engine in export.engines)
    note = f"The model uses {names}. On hardware compile `hardware/` in place of `desk/`, without `-include`."
    command = [f"cc -std=c99 -O2 -include {DESK_HEADER} -I. {includes} \\", f"  {all_files} {sources} -lm -o example"]
    return Rest(files, [*command, "./example"], contents, [note])


def _pattern(export: Library) -> str:
    """The shell's pattern for all sources."""
    return "*.[cS]" if export.binaries else "*.c"


# Sources and headers side by side. Access to devices lies in two folders, of which a build uses one.
FORMAT = Format(_rest, include="", src="", example="", apart=True)
