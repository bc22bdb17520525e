"""What a JSON document must look like where anybody may have written it: stated as data, and held to it once.

What is read out of a document later is of the types that its form states. More keys may stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

LARGEST: Final = 1 << 40
"""Of sizes, shapes and counts."""
MOST_DIMENSIONS: Final = 32
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_SHOWN: Final = 60


@dataclass(frozen=True)
class Value:
    """One value that ``holds``; ``words`` say what is wanted."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Rows:
    """A list of ``least`` entries or more."""

    each: Form
    least: int = 0


@dataclass(frozen=True)
class Maybe:
    """What may be null."""

    inner: Form


@dataclass(frozen=True)
class Named:
    """An object whose keys are names: any, or those of C."""

    each: Form
    in_c: bool = False


@dataclass(frozen=True)
class Fields:
    """An object: what stands at which keys. Of ``loose`` ones any may be missing, of others the ``optional`` ones."""

    wanted: dict[str, Form]
    optional: tuple[str, ...] = ()
    loose: bool = False


Form: TypeAlias = Value | Rows | Maybe | Named | Fields

TEXT: Final = Value("text", lambda value: isinstance(value, str))
FLAG: Final = Value("true or false", lambda value: isinstance(value, bool))
INDEX: Final = Value("a whole number", lambda value: type(value) is int and abs(value) <= LARGEST)
WHOLE: Final = Value(f"a whole number from 0 to {LARGEST}", lambda value: type(value) is int and 0 <= value <= LARGEST)
NUMBER: Final = Value(
    "a number from 0", lambda value: isinstance(value, (int, float)) and type(value) is not bool and value >= 0
)
SHAPE: Final = Value(
    f"at most {MOST_DIMENSIONS} whole numbers from 0 to {LARGEST}",
    lambda value: (
        isinstance(value, list)
        and len(value) <= MOST_DIMENSIONS
        and all(type(n) is int and 0 <= n <= LARGEST for n in value)
    ),
)
OBJECT: Final = Value("an object", lambda value: isinstance(value, dict))


def digits(count: int) -> Value:
    pattern = re.compile(f"[0-9a-f]{{{count}}}")
    return Value(
        f"{count} hexadecimal digits", lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None
    )


def complaint(document: Any, form: Form) -> str:
    """What is not as it should be, and where; empty where all is."""
    try:
        _check(document, form, "")
    except ValueError as error:
        return str(error)
    return ""


def _check(value: Any, form: Form, where: str) -> None:
    if isinstance(form, Maybe):
        if value is not None:
            _check(value, form.inner, where)
    elif isinstance(form, Value):
        _need(form.holds(value), value, where, form.words)
    elif isinstance(form, Rows):
        wanted = f"a list of {form.least} or more" if form.least else "a list"
        _need(isinstance(value, list) and len(value) >= form.least, value, where, wanted)
        for number, entry in enumerate(value):
            _check(entry, form.each, f"{where}[{number}]")
    else:
        _need(isinstance(value, dict), value, where, "an object")
        if isinstance(form, Named):
            _check_names(value, form, where)
        else:
            _check_fields(value, form, where)


def _need(condition: bool, value: Any, where: str, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{where or 'it'} is {_shown(value)}, wanted {wanted}")


def _check_names(value: dict[str, Any], form: Named, where: str) -> None:
    for name, entry in value.items():
        if form.in_c and not IDENTIFIER.fullmatch(name):
            raise ValueError(f"{where} names {_shown(name)}, wanted letters, digits and underscores")
        _check(entry, form.each, f"{where}[{_shown(name)}]")


def _check_fields(value: dict[str, Any], form: Fields, where: str) -> None:
    for key, inner in form.wanted.items():
        path = f"{where}.{key}" if where else key
        if key in value:
            _check(value[key], inner, path)
        elif not form.loose and key not in form.optional:
            raise ValueError(f"{path} is missing")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
