"""Reads TOML files so that errors can name the line of a key, and gives typed access to their tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from uaccel.errors import BoardError, need
from uaccel.util import incoming
from uaccel.util.files import TomlError, parse_toml
from uaccel.util.text import bytes_of, did_you_mean

# Lines of keys. Python's TOML reader gives lines of syntax errors only, so a small tokeniser finds those of keys.
#
# It runs after that reader has accepted the file, and so may rely on valid syntax.

# Where a value stands: ``("memory", 1, "origin")`` is the origin of the second ``[[memory]]``.
KeyPath = tuple[str | int, ...]

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
    """Holds the contents of one TOML file, and the line of each of its keys."""

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
    try:
        text = incoming.read_bytes(path, incoming.TEXT).decode("utf-8-sig")
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
    """The reader's message, with the line moved to the front, where every other message has it."""
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


# Typed access to a table: an error names the line, what was found and what was wanted.

_ADDRESS_LIMIT: Final = 1 << 32
_NAMES: Final = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "an array",
    dict: "a table",
}
_Choice = TypeVar("_Choice", bound=str)


class Table:
    """Gives typed access to one table. Unknown keys are reported first: a missing one is often mistyped."""

    def __init__(self, source: TomlSource, path: KeyPath, data: dict[str, Any], keys: Sequence[str]) -> None:
        self.source = source
        self.path = path
        self._data = data
        for key in data:
            if key not in keys:
                near = did_you_mean(key, keys)
                raise self.error(f"unknown key {key!r} in {self}{near} (known: {', '.join(keys)})", key)

    def __str__(self) -> str:
        """The table as it is written in the file: ``[cpu]``, or ``[[memory]] number 2``."""
        if not self.path:
            return "the file"
        names = ".".join(str(name) for name in self.path if isinstance(name, str))
        number = self.path[-1]
        return f"[[{names}]] number {number + 1}" if isinstance(number, int) else f"[{names}]"

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def names(self) -> Iterable[str]:
        """The keys that the file gives, in its order."""
        return self._data.keys()

    def error(self, message: str, key: str | None = None) -> BoardError:
        """An error at one of the table's keys, or at the table's header."""
        path = self.path if key is None else (*self.path, key)
        return BoardError(f"{self.source.where(path)}: {message}")

    def string(self, key: str) -> str:
        """A text that is not empty."""
        value = self.value(key, str, "a string")
        if not value:
            raise self.error(f"'{key}' in {self} is empty; wanted a string", key)
        return self._line(key, value)

    def choice(self, key: str, options: Sequence[_Choice]) -> _Choice:
        """One of a few words."""
        return self._one_of(key, self.value(key, str, f"one of {', '.join(options)}"), options)

    def choices(self, key: str, options: Sequence[_Choice]) -> tuple[_Choice, ...]:
        """Some of a few words, none twice; the key may be left out."""
        chosen = tuple(self._one_of(key, value, options) for value in self.strings(key))
        for value in chosen:
            if chosen.count(value) > 1:
                raise self.error(f"'{key}' in {self} has '{value}' twice; once is enough", key)
        return chosen

    def strings(self, key: str) -> tuple[str, ...]:
        """An array of texts; the key may be left out."""
        if key not in self:
            return ()
        values = self.value(key, list, "an array of strings")
        for value in values:
            if not isinstance(value, str):
                raise self.error(f"'{key}' in {self} holds {_seen(value)}; wanted an array of strings", key)
        return tuple(self._line(key, value) for value in values)

    def words(self, key: str) -> tuple[int, ...]:
        """An array of words of 32 bits, at least one."""
        wanted = "an array of 32-bit integers such as [0xFFFF_FFFE]"
        values = self.value(key, list, wanted)
        for value in values or [values]:
            if type(value) is not int or not 0 <= value < _ADDRESS_LIMIT:
                raise self.error(f"'{key}' in {self} holds {_seen(value)}; wanted {wanted}", key)
        return tuple(values)

    def _line(self, key: str, value: str) -> str:
        if not value.isprintable():
            raise self.error(f"'{key}' in {self} has {value!r}; wanted one line without control characters", key)
        return value

    def boolean(self, key: str) -> bool:
        """True or false; false where the key is left out."""
        return key in self and bool(self.value(key, bool, "true or false"))

    def integer(self, key: str, low: int, high: int) -> int:
        """An integer within limits."""
        value = int(self.value(key, int, "an integer"))
        if not low <= value <= high:
            raise self.error(f"'{key}' in {self} is {value}; wanted {low} to {high}", key)
        return value

    def address(self, key: str) -> int:
        """A 32-bit address."""
        value = int(self.value(key, int, "an address such as 0x2000_0000"))
        if not 0 <= value < _ADDRESS_LIMIT:
            raise self.error(f"'{key}' in {self} is {value:#x}; wanted an address of 32 bits", key)
        return value

    def size(self, key: str) -> int:
        """A number of bytes: an integer, or a text such as ``"64K"`` with a binary unit."""
        wanted = "a size in bytes such as 4096, '64K' or '16M'"
        value = self._data.get(key)
        size = bytes_of(value) if isinstance(value, str) else int(self.value(key, int, wanted))
        if size is None:
            raise self.error(f"'{key}' in {self} is {_seen(value)}; wanted {wanted}", key)
        if not 0 < size <= _ADDRESS_LIMIT:
            raise self.error(f"'{key}' in {self} is {size} bytes; wanted 1 to {_ADDRESS_LIMIT}", key)
        return size

    def table(self, key: str, keys: Sequence[str]) -> Table:
        """A table within this one."""
        return Table(self.source, (*self.path, key), self.value(key, dict, f"a table [{key}]"), keys)

    def tables(self, key: str, keys: Sequence[str]) -> list[Table]:
        """An array of tables; the key may be left out."""
        if key not in self:
            return []
        wanted = f"tables [[{key}]]"
        rows = self.value(key, list, wanted)
        for row in rows:
            if not isinstance(row, dict):
                raise self.error(f"'{key}' in {self} holds {_seen(row)}; wanted {wanted}", key)
        return [Table(self.source, (*self.path, key, index), row, keys) for index, row in enumerate(rows)]

    def _one_of(self, key: str, value: str, options: Sequence[_Choice]) -> _Choice:
        for option in options:
            if option == value:
                return option
        near = did_you_mean(value, options)
        raise self.error(f"'{key}' in {self} is {value!r}; wanted one of {', '.join(options)}{near}", key)

    def value(self, key: str, kind: type, wanted: str) -> Any:
        """A value of exactly this type."""
        need(key in self._data, f"{self} lacks '{key}': wanted {wanted}", self.error)
        value = self._data[key]
        if type(value) is not kind:  # isinstance would take true for 1
            raise self.error(f"'{key}' in {self} is {_seen(value)}; wanted {wanted}", key)
        return value


def _seen(value: Any) -> str:
    """A value and its type, short enough for one line."""
    text = repr(value)
    if len(text) > 40:
        text = text[:37] + "..."
    return f"{text} ({_NAMES.get(type(value), 'a date or time')})"
