"""Checks JSON documents that anybody may have written against a form: data that looks like the document.

After the check, values have the types that the form states, and readers need no checks of their own. A document may
have more keys than its form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

LARGEST: Final = 1 << 40  # The largest size, extent or count that is accepted.
MOST_DIMENSIONS: Final = 32
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST_SHOWN: Final = 60  # Characters of a wrong value that a message shows.


# A list of one form, ``[form]``, or an object with these keys; a key that ends in ``?`` may be missing.
Form: TypeAlias = "Value | Rows | Maybe | Named | list[Any] | Mapping[str, Any]"


@dataclass(frozen=True)
class Value:
    """Accepts a single value for which ``holds`` is true; ``words`` say what is wanted."""

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Rows:
    """Accepts a list of ``least`` entries or more, all of one form."""

    each: Form
    least: int = 0


@dataclass(frozen=True)
class Maybe:
    """Accepts null, or the inner form."""

    inner: Form


@dataclass(frozen=True)
class Named:
    """Accepts an object whose keys are names, any or those of C, and whose values have one form."""

    each: Form
    in_c: bool = False


def optional(**forms: Form) -> dict[str, Form]:
    """The keys of an object that may be missing, with their forms."""
    return {f"{key}?": form for key, form in forms.items()}


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
    """The first thing that is wrong with a document, and where; empty if nothing is."""
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
    elif isinstance(form, (Rows, list)):
        rows = form if isinstance(form, Rows) else Rows(form[0])
        wanted = f"a list of {rows.least} or more" if rows.least else "a list"
        _need(isinstance(value, list) and len(value) >= rows.least, value, where, wanted)
        for number, entry in enumerate(value):
            _check(entry, rows.each, f"{where}[{number}]")
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


def _check_fields(value: dict[str, Any], form: Mapping[str, Form], where: str) -> None:
    for key, inner in form.items():
        name = key.removesuffix("?")
        path = f"{where}.{name}" if where else name
        if name in value:
            _check(value[name], inner, path)
        elif name == key:
            raise ValueError(f"{path} is missing")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
