"""Exports format ``c``: every file in one folder, to be added to a project by hand."""

from __future__ import annotations

from uaccel.codegen.export.base import DESK_HEADER, Export, Files, Format, Rest, apart_contents, desk_options


def _rest(export: Export, _: Files) -> Rest:
    contents = [
        (f"{export.name}.h", "the interface"),
        ("*.c", "the model, its constants" + (" and its accelerators' drivers" if export.engines else "")),
        ("uaccel_*.h", "kernels that the model is compiled from"),
    ]
    return by_hand(export, {}, contents)


def by_hand(export: Export, files: Files, contents: list[tuple[str, str]]) -> Rest:
    """The rest of a format without a build file: a command that compiles all for the user's computer."""
    contents = [*contents, ("main.c", "the example; leave it out of your application"), *apart_contents(export)]
    if not export.engines:
        return Rest(files, ["cc -std=c99 -O2 *.c -lm -o example", "./example"], contents)
    includes, sources = desk_options(export)
    names = " and ".join(engine.name for engine in export.engines)
    note = f"The model uses {names}. On hardware compile `hardware/` in place of `desk/`, without `-include`."
    command = [f"cc -std=c99 -O2 -include {DESK_HEADER} -I. {includes} \\", f"  *.c {sources} -lm -o example"]
    return Rest(files, [*command, "./example"], contents, [note])


# Sources and headers side by side. Access to devices lies in two folders, of which a build uses one.
FORMAT = Format(_rest, include="", src="", example="", apart=True)
