"""Typed access to a table of a TOML file.

What is wrong is said with its line, what was seen and what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from uaccel.basics.suggest import did_you_mean
from uaccel.board.source import KeyPath, TomlSource
from uaccel.errors import BoardError

_ADDRESS_LIMIT: Final = 1 << 32
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
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
    """One table, with the keys it may have; an unknown one is an error before any that is missing."""

    def __init__(self, source: TomlSource, path: KeyPath, data: dict[str, Any], keys: Sequence[str]) -> None:
        self.source = source
        self.path = path
        self._data = data
        for key in data:
            if key not in keys:
                near = did_you_mean(key, keys)
                raise self.error(f"unknown key {key!r} in {self}{near} (known: {', '.join(keys)})", key)

    def __str__(self) -> str:
        """How a person would name it."""
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
        if isinstance(value, str):
            match = re.fullmatch(r"([0-9]{1,10})([KMG]?)", value)
            if match is None:
                raise self.error(f"'{key}' in {self} is {_seen(value)}; wanted {wanted}", key)
            value = int(match[1]) * _UNITS[match[2]]
        else:
            value = int(self.value(key, int, wanted))
        if not 0 < value <= _ADDRESS_LIMIT:
            raise self.error(f"'{key}' in {self} is {value} bytes; wanted 1 to {_ADDRESS_LIMIT}", key)
        return value

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
        if key not in self._data:
            raise self.error(f"{self} lacks '{key}': wanted {wanted}")
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
