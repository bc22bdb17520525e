"""What ``metadata.json`` of an archive must look like where uaccel reads it: anybody may have written it.

Checked once, when it is read; what reports and comparisons take out of it later is of these types. More keys may stand
there, and an archive of another compiler has no key ``uaccel``.
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
    """A list."""

    each: Form


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


Form: TypeAlias = Value | Rows | Named | Fields

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


def _digits(count: int) -> Value:
    pattern = re.compile(f"[0-9a-f]{{{count}}}")
    return Value(
        f"{count} hexadecimal digits", lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None
    )


_SIZES: Final = Named(Fields({"size": WHOLE}))
_MAIN: Final = Fields(
    {
        "workspace_size_bytes": WHOLE,
        "constants_size_bytes": WHOLE,
        "device_constants_size_bytes": WHOLE,
        "io_size_bytes": WHOLE,
        "inputs": _SIZES,
        "outputs": _SIZES,
    },
    optional=("device_constants_size_bytes",),
)
_TENSORS: Final = Named(Fields({"shape": SHAPE, "dtype": TEXT}))
_COVERED: Final = Fields(
    {**dict.fromkeys(("name", "op", "reason", "tensor"), TEXT), "operator": INDEX, "macs": WHOLE, "shape": SHAPE}
)
_LAYER: Final = Fields(
    {
        **dict.fromkeys(("name", "op", "engine", "reason", "refused", "tensor", "variant"), TEXT),
        **dict.fromkeys(("index", "macs"), WHOLE),
        "operator": INDEX,
        "covers": Rows(_COVERED),
        "outputs": Rows(Fields({"shape": SHAPE, "dtype": TEXT})),
        "commands": Rows(TEXT),
    },
    optional=("commands",),
)
_OWN: Final = Fields(
    {
        "board": TEXT,
        "workspace_io": FLAG,
        "model": Fields({"name": TEXT, "file": TEXT, "sha256": _digits(64)}, loose=True),
        "build": _digits(16),
        "inputs": _TENSORS,
        "outputs": _TENSORS,
        "arena": Fields({"lower_bound": WHOLE}),
        "requires": Rows(TEXT),
        "accelerators": Rows(Fields({"name": TEXT, "tolerance": NUMBER})),
        "layers": Rows(_LAYER),
        "state": Fields({"bytes": WHOLE, "tensors": _TENSORS}),
    },
    loose=True,  # what reads a key says so where it is missing
)
_MODULE: Final = Fields({"memory": Fields({"functions": Fields({"main": Rows(_MAIN)})})})
_OBJECT: Final = Value("an object", lambda value: isinstance(value, dict))
FOREIGN: Final = Fields({"modules": Named(_OBJECT, in_c=True)}, loose=True)
OWN: Final = Fields({"modules": Named(_MODULE, in_c=True), "uaccel": _OWN}, loose=True)


def complaint(document: dict[str, Any]) -> str:
    """What is not as it should be, and where; empty where all is."""
    try:
        _check(document, OWN if "uaccel" in document else FOREIGN, "")
    except ValueError as error:
        return str(error)
    return ""


def _check(value: Any, form: Form, where: str) -> None:
    if isinstance(form, Value):
        if not form.holds(value):
            raise ValueError(f"{where} is {_shown(value)}, wanted {form.words}")
    elif isinstance(form, Rows):
        if not isinstance(value, list):
            raise ValueError(f"{where} is {_shown(value)}, wanted a list")
        for number, entry in enumerate(value):
            _check(entry, form.each, f"{where}[{number}]")
    elif not isinstance(value, dict):
        raise ValueError(f"{where} is {_shown(value)}, wanted an object")
    elif isinstance(form, Named):
        for name, entry in value.items():
            if form.in_c and not IDENTIFIER.fullmatch(name):
                raise ValueError(f"{where} names {_shown(name)}, wanted letters, digits and underscores")
            _check(entry, form.each, f"{where}[{_shown(name)}]")
    else:
        _check_fields(value, form, where)


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
