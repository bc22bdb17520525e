"""A TOML file whose keys know their lines, so that an error can name the place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import TomlError, parse_toml
from uaccel.errors import BoardError

KeyPath = tuple[str | int, ...]
"""Where a value stands: ``("memory", 1, "origin")`` is the origin of the second ``[[memory]]``."""

_TOKEN: Final = re.compile(
    r"""
      \"{3}(?:\\.|[^\\])*?\"{3} | '{3}.*?'{3}             # strings of several lines
    | "(?:\\.|[^"\\\n])*"       | '[^'\n]*'               # strings
    | \#[^\n]*                                            # comment
    | \n | [\[\]{}=.]
    | [^\s"'\#\[\]{}=.]+                                  # bare keys, numbers, commas
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class TomlSource:
    """The contents of one TOML file, and the line of each of its keys."""

    path: Path
    data: dict[str, Any]
    lines: dict[KeyPath, int]

    def where(self, key: KeyPath) -> str:
        """``file:line`` of a key, or of the nearest thing around it that has a line."""
        for length in range(len(key), 0, -1):
            if key[:length] in self.lines:
                return f"{self.path}:{self.lines[key[:length]]}"
        return f"{self.path}:1"


def read_toml(path: Path) -> TomlSource:
    """Read a file; one that cannot be read, or is not TOML, is a :class:`BoardError`."""
    if not path.is_file():
        what = "it is not a regular file" if path.exists() else "there is no such file"
        raise BoardError(f"cannot read board file {path}: {what}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BoardError(f"cannot read board file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BoardError(f"{path}:{line}: not UTF-8 text, as TOML must be") from error
    text = text.replace("\r\n", "\n")
    try:
        data = parse_toml(text)
    except TomlError as error:
        raise BoardError(_syntax_error(path, text, str(error))) from error
    except ValueError as error:
        raise BoardError(f"{path}:1: not a board file: {error}") from error
    return TomlSource(path, data, key_lines(text))


def _syntax_error(path: Path, text: str, message: str) -> str:
    """TOML's own words, with the line moved to where every other message has it."""
    place = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if place is None:  # "(at end of document)"
        return f"{path}:{len(text.splitlines()) or 1}: not valid TOML: {message}"
    return f"{path}:{place[1]}: not valid TOML: {message[: place.start()]} (column {place[2]})"


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each key and table header of a valid TOML text.

    Keys of inline tables are not listed: the key that holds the table stands for them.
    """
    lines: dict[KeyPath, int] = {}
    arrays: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, tokens in _statements(text):
        if tokens[0] == "[":
            table = _header(tokens, arrays)
            lines[table] = number
            for length in range(1, len(table)):  # [a.b] stands for [a] too, where that has no header
                lines.setdefault(table[:length], number)
            continue
        key = table + _key(tokens[: tokens.index("=")])
        for length in range(len(table) + 1, len(key) + 1):
            lines.setdefault(key[:length], number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each header or assignment as tokens, with the line it starts on; brackets may span lines."""
    number, start, depth = 1, 1, 0
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n" and depth == 0 and tokens:
            yield start, tokens
            tokens = []
        elif token != "\n" and not token.startswith("#"):
            if not tokens:
                start = number
            depth += (token in "[{") - (token in "]}")
            tokens.append(token)
        number += token.count("\n")
    if tokens:
        yield start, tokens


def _header(tokens: list[str], arrays: dict[KeyPath, int]) -> KeyPath:
    """The path of ``[a.b]`` or of the next ``[[a.b]]``; ``arrays`` counts the latter."""
    is_array = tokens[1] == "["
    names = _key(tokens[2:-2] if is_array else tokens[1:-1])
    path: KeyPath = ()
    for position, name in enumerate(names):
        path += (name,)
        if is_array and position == len(names) - 1:
            arrays[path] = arrays.get(path, -1) + 1
        if path in arrays:
            path += (arrays[path],)
    return path


def _key(tokens: list[str]) -> KeyPath:
    """``a."b.c"`` as ``("a", "b.c")``."""
    return tuple(token.strip("\"'") for token in tokens if token != ".")
