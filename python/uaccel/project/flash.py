"""Flash a project's board, through its Project API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uaccel.project.api_client import ProjectServer
from uaccel.project.api_options import OptionValue, port_from_here
from uaccel.project.boardjson import read_board_json


@dataclass(frozen=True)
class Flashed:
    """``done`` is False for a board that needs none; the board is None where the server is not ours."""

    platform: str
    board: str | None
    done: bool


def flash_any(folder: Path, options: Mapping[str, OptionValue], *, port: str, verbose: bool) -> Flashed:
    with ProjectServer(folder, options, show=verbose) as server:
        if port:
            server.require("port", port_from_here(port))
        server.offer("verbose", verbose)
        server.flash()
        platform = server.info.platform_name
        if not server.is_ours:
            return Flashed(platform, None, True)
    board = read_board_json(folder)
    return Flashed(platform, board.name, bool(board.flash))
