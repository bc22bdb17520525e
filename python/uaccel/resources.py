"""Where uaccel's own data lies: boards, firmware sources, templates, accelerators, models to try, pages.

In a checkout these are folders beside ``python/``; a wheel carries them inside the package as ``_data``.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Literal

from uaccel.errors import UaccelError

DataFolder = Literal["boards", "firmware", "project_template", "accelerators", "accelerator_template", "models", "docs"]

_PACKAGE: Final = Path(__file__).resolve().parent
_INSTALLED: Final = _PACKAGE / "_data"
_CHECKOUT: Final = _PACKAGE.parent.parent
_ELSEWHERE: Final = {"models": "tests/models"}
"""Folders that a checkout has under another name."""


def data_dir(name: DataFolder) -> Path:
    """The folder of that name, whether uaccel runs from a checkout or from a wheel."""
    folder = _INSTALLED / name if _INSTALLED.is_dir() else _CHECKOUT / _ELSEWHERE.get(name, name)
    if not folder.is_dir():
        raise UaccelError(
            f"this installation of uaccel lacks its folder '{name}' (looked at {folder}): reinstall uaccel"
        )
    return folder


ACCELERATOR_GROUP: Final = "uaccel.accelerators"
"""Of entry points, by which other packages bring accelerators."""
ACCELERATOR_FILE: Final = "accelerator.py"


def accelerator_folders() -> dict[str, Path]:
    """Of uaccel's own accelerators, by name."""
    return {path.parent.name: path.parent for path in sorted(data_dir("accelerators").glob(f"*/{ACCELERATOR_FILE}"))}


def accelerator_entries() -> dict[str, list[EntryPoint]]:
    """What other packages install, by name; a name that several of them take can be used for none."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ACCELERATOR_GROUP):
        others = found.setdefault(entry.name, [])
        if all(other.value != entry.value for other in others):  # a package may be found twice
            others.append(entry)
    return found


def models() -> dict[str, Path]:
    """The models that come with uaccel, to try it with: files by their names, ``gesture`` the trained one."""
    return {file.stem: file for file in sorted(data_dir("models").glob("*.tflite"))}


def page(name: str) -> Path:
    """A page of the documentation, as whoever reads a message can open it."""
    return data_dir("docs") / name
