"""Plain data as TOML: what a board file can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def toml_text(data: Mapping[str, Any]) -> str:
    """Tables get headers; what is in arrays of anything but tables stands in one line."""
    return "\n".join(_table(data, ())) + "\n"


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for key, value in data.items():
        if not _is_table(value) and not _is_tables(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in data.items():
        inner = (*path, key)
        if _is_table(value):
            has_own = not value or not all(map(_is_table, value.values()))
            yield from ("", f"[{'.'.join(map(_key, inner))}]") if has_own else ()
            yield from _table(value, inner)
        elif _is_tables(value):
            for row in value:
                yield from ("", f"[[{'.'.join(map(_key, inner))}]]")
                yield from _table(row, inner)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Strings, booleans and integers are written as JSON writes them."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
