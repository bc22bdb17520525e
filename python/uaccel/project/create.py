"""Lay out a project: the template, the firmware sources of the board's port, the unpacked archive."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from uaccel.board import Board
from uaccel.errors import BoardError
from uaccel.resources import data_dir


def create_project(files: Mapping[str, bytes], board: Board, folder: Path) -> None:
    """``files``: the archive's, by path. The folder is made and filled; it must not hold anything yet."""
    port = data_dir("firmware") / "ports" / board.port
    if not port.is_dir():
        raise BoardError(f"{board.file}: there is no port '{board.port}' in {port.parent}; use one that is there")
    shutil.copytree(data_dir("project_template"), folder, dirs_exist_ok=True)
    for part in ("include", "runtime", f"ports/{board.port}"):
        shutil.copytree(data_dir("firmware") / part, folder / "firmware" / part, dirs_exist_ok=True)
    for name, content in files.items():
        target = folder / "model" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
