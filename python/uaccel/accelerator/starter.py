"""A starting point for an accelerator of one's own: a folder that works, under another name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from uaccel.basics.sinks import is_reserved
from uaccel.errors import AcceleratorError
from uaccel.resources import accelerator_folders, data_dir, page

TEMPLATE: Final = "starter"
"""What the accelerator in ``accelerator_template/`` is called, in files' names and in what they hold."""
PAGE: Final = "bring-your-accelerator.md"
"""The template names it as ``docs/`` has it; whoever gets the copy gets the path on their disk."""
LONGEST: Final = 32
_HEADERS: Final = (
    *(
        "assert",
        "complex",
        "ctype",
        "errno",
        "fenv",
        "float",
        "inttypes",
        "iso646",
        "limits",
        "locale",
        "math",
        "setjmp",
    ),
    *("signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time", "wchar"),
    "wctype",
)
"""Of C: the driver's header is called after the accelerator, and would be found in the place of these."""


def write_starter(name: str, folder: Path) -> list[Path]:
    """A new folder with all that an accelerator has; returns its files, relative to it."""
    require_name(name)
    if folder.exists():
        raise AcceleratorError(f"{folder} exists already; choose another name, or remove it")
    written = []
    try:
        for path, content in starter_files(name).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            written.append(path)
    except OSError as error:
        raise AcceleratorError(f"{folder} cannot be written: {error.strerror}; name another folder") from error
    return written


def require_name(name: str) -> None:
    """It becomes part of names in C and of files."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}", name):
        raise AcceleratorError(
            f"{name!r} cannot name an accelerator; wanted lower-case letters, digits and underscores, "
            f"a letter first, {LONGEST} at most"
        )
    if name in (*_HEADERS, "cpu") or name.startswith("uaccel") or is_reserved(name):
        raise AcceleratorError(f"{name!r} cannot name an accelerator: it has a meaning already; choose another name")
    if name in accelerator_folders():
        raise AcceleratorError(f"there is an accelerator {name!r} already; choose another name")


def starter_files(name: str) -> dict[Path, bytes]:
    """By path, in the order of the paths."""
    template = data_dir("accelerator_template")
    renamed = {
        TEMPLATE: name,
        TEMPLATE.capitalize(): "".join(part.capitalize() for part in name.split("_")),
        TEMPLATE.upper(): name.upper(),
        f"docs/{PAGE}": str(page(PAGE)),
    }
    files = {}
    for path in sorted(path for path in template.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        if path.suffix != ".tflite":
            content = _replaced(content.decode(), renamed).encode()
        files[Path(_replaced(str(path.relative_to(template)), renamed))] = content
    return files


def _replaced(text: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text
