"""Finding board files: those that come with uaccel, by name, and anybody's, by path."""

from __future__ import annotations

import os
from pathlib import Path

from uaccel.basics.suggest import did_you_mean
from uaccel.board.schema import board_from_source
from uaccel.board.source import read_toml
from uaccel.board.types import Board
from uaccel.errors import BoardError
from uaccel.resources import data_dir


def load_board(name_or_path: str | Path) -> Board:
    """A board by its name, or by the path of its file (recognised by a separator or by ``.toml``)."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or os.sep in text or text.endswith(".toml"):
        return board_from_source(read_toml(Path(name_or_path)))
    files = _bundled_files()
    if text not in files:
        raise BoardError(
            f"no board is called {text!r}{did_you_mean(text, files)} (known: {', '.join(files)}; "
            "a board of your own is given as the path of its .toml file)"
        )
    return board_from_source(read_toml(files[text]))


def available_boards() -> list[Board]:
    """The boards that come with uaccel, by name."""
    return [board_from_source(read_toml(file)) for file in _bundled_files().values()]


def _bundled_files() -> dict[str, Path]:
    return {file.stem: file for file in sorted(data_dir("boards").glob("*.toml"))}
