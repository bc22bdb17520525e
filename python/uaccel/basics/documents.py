"""JSON and TOML that anybody may have written: what Python's readers raise beside their own errors is a ValueError too.

An integer has 64 bits at most, as TOML wants it and as every reader can hold; a float is a number.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TomlError = tomllib.TOMLDecodeError
"""A ValueError with the place of a mistake in the syntax."""
DEEPEST: Final = 64
_LIMIT: Final = 1 << 64
_DEEP: Final = "values are nested too deeply"
_LONG: Final = "an integer has more than 64 bits"


def parse_json(text: str | bytes) -> Any:
    """ValueError, with a reason in words, for what is no JSON or no data that anything here writes."""
    return _checked(_read(json.loads, text))


def parse_toml(text: str) -> dict[str, Any]:
    """The same for TOML; ``TomlError`` where a place can be told."""
    data: dict[str, Any] = _checked(_read(tomllib.loads, text))
    return data


def _read(reader: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        return reader(text)
    except RecursionError as error:
        raise ValueError(_DEEP) from error
    except (TomlError, json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # Python's own limit of digits
        raise ValueError(_LONG) from error


def _checked(value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise ValueError(_DEEP)
    if isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            _checked(entry, depth + 1)
    elif isinstance(value, int) and not -_LIMIT < value < _LIMIT:
        raise ValueError(_LONG)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a float is no finite number")
    return value
