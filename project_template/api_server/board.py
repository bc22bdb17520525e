"""What a project knows of its board: ``board/board.json``, which was made from the board file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ServerError
from .files import read

FOLDER = "board"


class Board(NamedTuple):
    """``firmware`` is the file's name in the build folder, ``folder`` where files lie that the commands name.

    ``runs`` and ``flash`` are as the file has them.
    """

    name: str
    firmware: str
    folder: Path
    runs: list[dict[str, Any]]
    flash: list[dict[str, Any]]


def read_board(project: Path) -> Board:
    file = project / FOLDER / "board.json"
    try:
        data = json.loads(read(file).decode("utf-8"))
        folder = Path(data["folder"]) if data["folder"] else project / FOLDER
        return Board(data["board"], data["firmware"], folder, data["runs"], data["flash"])
    except OSError as error:
        raise ServerError(f"cannot read {file}: {error.strerror}; make the project anew") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError(f"{file} is not as it was made ({error!r}); make the project anew") from error


def choose_run(board: Board, kind: str | None, port: str | None) -> dict[str, Any]:
    """The way that is asked for; without a word of it serial where a port is given, else the first one."""
    wanted = kind or ("serial" if port else None)
    for run in board.runs:
        if wanted in (None, run["kind"]):
            return run
    ways = ", ".join(run["kind"] for run in board.runs)
    raise ServerError(f"board {board.name} does not run by {wanted}; it runs by {ways}")


def fill(command: list[str], **values: str) -> list[str]:
    """Put paths and names into the places of a command."""
    words = []
    for word in command:
        for name, value in values.items():
            word = word.replace("{" + name + "}", value)
        words.append(word)
    return words
