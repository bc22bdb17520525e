"""Lay out a project: the template, the firmware sources of the board's port, the unpacked archive."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from uaccel.board import Board
from uaccel.board.port import MANIFEST
from uaccel.project.boardfiles import board_files
from uaccel.project.layout import needs_of
from uaccel.resources import data_dir


def create_project(files: Mapping[str, bytes], board: Board, folder: Path) -> None:
    """``files``: the archive's, by path. The folder is made and filled; it must not hold anything yet."""
    texts = board_files(board, needs_of(files))
    shutil.copytree(data_dir("project_template"), folder, dirs_exist_ok=True)
    for part in ("include", "runtime"):
        shutil.copytree(data_dir("firmware") / part, folder / "firmware" / part, dirs_exist_ok=True)
    for port in board.port.sources:
        target = folder / "firmware" / "ports" / port.name
        shutil.copytree(port, target, ignore=shutil.ignore_patterns(MANIFEST), dirs_exist_ok=True)
    for name, text in texts.items():
        _write(folder / name, text.encode())
    for name, content in files.items():
        _write(folder / "model" / name, content)


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
