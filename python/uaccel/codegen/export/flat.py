"""Exports format ``c``: every file in one folder, to be added to a project by hand."""

from __future__ import annotations

from uaccel.codegen.export.base import DESK_HEADER, Export, below, desk, desk_folders, device_table, hardware, readme
from uaccel.codegen.export.example import example


def flat(export: Export) -> dict[str, str]:
    """The files, sources and headers side by side. Access to devices lies in two folders, of which a build uses one."""
    files = {**export.sources, **export.headers, **example(export), **apart(export)}
    contents = [
        (f"{export.name}.h", "the interface"),
        ("*.c", "the model, its constants" + (" and its accelerators' drivers" if export.engines else "")),
        ("uaccel_*.h", "kernels that the model is compiled from"),
        ("main.c", "the example; leave it out of your application"),
        *apart_contents(export),
    ]
    return files | {"README.md": readme(export, [*desk_command(export), "./example"], contents, apart_notes(export))}


def apart(export: Export) -> dict[str, str]:
    """The folders ``desk`` and ``hardware`` of a model with accelerators."""
    return {**below("desk", desk(export)), **below("hardware", hardware(export) | device_table(export))}


def desk_command(export: Export) -> list[str]:
    """The shell command that compiles the example for the user's computer."""
    if not export.engines:
        return ["cc -std=c99 -O2 *.c -lm -o example"]
    folders = [f"desk/{folder}".rstrip("/") for folder in desk_folders(export)]
    includes = " ".join(f"-I{folder}" for folder in folders)
    sources = " ".join(f"{folder}/*.c" for folder in folders if has_sources(export, folder))
    return [f"cc -std=c99 -O2 -include desk/{DESK_HEADER} -I. {includes} \\", f"  *.c {sources} -lm -o example"]


def has_sources(export: Export, folder: str) -> bool:
    """Whether a folder of the desk holds C files itself."""
    inner = folder.removeprefix("desk").lstrip("/")
    return any(name.endswith(".c") and name.rpartition("/")[0] == inner for name in desk(export))


def apart_contents(export: Export) -> list[tuple[str, str]]:
    """The README's rows about these folders."""
    if not export.engines:
        return []
    return [
        ("desk/", "models of the accelerators, to try it on a computer"),
        ("hardware/", "instead of `desk/`: registers at the addresses of `uaccel_devices.c`"),
    ]


def apart_notes(export: Export) -> list[str]:
    if not export.engines:
        return []
    names = " and ".join(engine.name for engine in export.engines)
    return [f"The model uses {names}. On hardware compile `hardware/` in place of `desk/`, without `-include`."]
