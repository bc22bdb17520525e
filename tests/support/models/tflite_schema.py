"""Fields of the options of each TFLite operator, and values for them, read from the schema's own classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tflite

from support.models.tflite_options import ENUMS, options_table

NUMBERS = {
    "Int32": (-2, -1, 0, 1, 2, 3),
    "Uint32": (0, 1, 2, 3),
    "Int64": (0, 7),
    "Float32": (0.0, 0.5, 1.0, -1.0, 3.0),
    "Bool": (False, True),
}


class _Recorder:
    """Takes the place of a flatbuffer's builder and keeps how a field is written."""

    kind = ""

    def __getattr__(self, name: str) -> Any:
        self.kind = name.removeprefix("Prepend").removesuffix("Slot")
        return lambda *_: None


def fields(operator: str) -> Iterator[tuple[str, str]]:
    """Name, in snake case, and kind of each field that is a number."""
    table = options_table(operator)
    for name in vars(tflite) if table else ():
        if name.startswith(f"{table}Add"):
            recorder = _Recorder()
            getattr(tflite, name)(recorder, 1)
            snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix(f"{table}Add")).lower()
            if recorder.kind != "UOffsetTRelative":
                yield snake, recorder.kind


def values(name: str, kind: str) -> tuple[Any, ...]:
    """Values of a field: all of an enumeration, both of a truth, some numbers."""
    if kind in ("Int8", "Uint8"):
        return tuple(key for key, value in vars(ENUMS[name]).items() if isinstance(value, int))
    return NUMBERS[kind]


def variations(operator: str) -> Iterator[dict[str, Any]]:
    """Yields options that differ from the usual in one field."""
    for name, kind in fields(operator):
        for value in values(name, kind):
            yield {name: value}
