"""What a board adds to a project: its own files, and the sources of its port."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uaccel.basics.mlf import PROJECT
from uaccel.board import Board
from uaccel.board.port import MANIFEST
from uaccel.project.boardfiles import board_files
from uaccel.project.boardjson import FILE, board_json
from uaccel.project.devices import hal_folders
from uaccel.project.layout import Needs, needs_of
from uaccel.resources import data_dir


def board_overlay(board: Board, needs: Needs, *, portable: bool = False) -> dict[str, bytes]:
    """By path in the project; :class:`~uaccel.errors.BoardError` where the model does not fit on the board.

    ``portable``: for any computer, and so without the folder of a user's own board file and what lies in it.
    """
    files = {name: text.encode() for name, text in board_files(board, needs).items()}
    folder = board.file.resolve().parent
    bundled = folder == data_dir("boards").resolve()
    files[FILE.as_posix()] = board_json(board, None if portable or bundled else folder).encode()
    hal = hal_folders(board) if needs.accelerators else []
    for port in (*board.port.sources, *hal):
        for source in _sources(port):
            files[f"firmware/ports/{port.name}/{source.relative_to(port).as_posix()}"] = source.read_bytes()
    return files


def _sources(port: Path) -> list[Path]:
    return [path for path in sorted(port.rglob("*")) if path.is_file() and path.name != MANIFEST]


def archive_overlay(board: Board, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """For the archive that holds ``files``, by path in it: so that any client makes a project of it, for this board."""
    overlay = board_overlay(board, needs_of(files), portable=True)
    return {f"{PROJECT}/{name}": content for name, content in overlay.items()}
