"""Where uaccel's own data lies: boards, firmware sources, templates, accelerators, models to try, pages.

In a checkout these are folders beside ``python/``; a wheel carries them inside the package as ``_data``.
"""

from __future__ import annotations

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


def models() -> dict[str, Path]:
    """The models that come with uaccel, to try it with: files by their names, ``gesture`` the trained one."""
    return {file.stem: file for file in sorted(data_dir("models").glob("*.tflite"))}


def page(name: str) -> Path:
    """A page of the documentation, as whoever reads a message can open it."""
    return data_dir("docs") / name
