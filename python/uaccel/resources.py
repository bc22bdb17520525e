"""Where uaccel's own data lies: boards, firmware sources, templates, accelerators.

In a checkout these are folders beside ``python/``; a wheel carries them inside the package as ``_data``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from uaccel.errors import UaccelError

DataFolder = Literal["boards", "firmware", "project_template", "accelerators", "accelerator_template"]

_PACKAGE: Final = Path(__file__).resolve().parent
_INSTALLED: Final = _PACKAGE / "_data"
_CHECKOUT: Final = _PACKAGE.parent.parent


def data_dir(name: DataFolder) -> Path:
    """The folder of that name, whether uaccel runs from a checkout or from a wheel."""
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    folder = root / name
    if not folder.is_dir():
        raise UaccelError(
            f"this installation of uaccel lacks its folder '{name}' (looked at {folder}): reinstall uaccel"
        )
    return folder
