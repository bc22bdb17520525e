"""The options of TFLite Micro's own custom operators: a map of names, written as a FlexBuffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from uaccel.errors import ModelError
from uaccel.frontend.tflite.reader import DAMAGE, Operator

MOST_BYTES = 1 << 16
"""Of options; what is larger is no operator of TFLite Micro's."""


def custom_options(operator: Operator) -> Mapping[str, Any]:
    """By name; empty where the operator has none."""
    if not operator.custom:
        return {}
    try:
        found = flexbuffers.Loads(operator.custom) if len(operator.custom) <= MOST_BYTES else None
    except (*DAMAGE, LookupError, NotImplementedError, RecursionError) as error:  # as flexbuffers says it
        raise ModelError(f"its options cannot be read: {error}; the file is damaged") from error
    if not isinstance(found, dict):
        raise ModelError("its options are no map of names; the file is damaged")
    return found


def whole_number(options: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = options.get(name, default)
    if not isinstance(value, int):
        raise ModelError(f"its option {name} is {value!r}, wanted a whole number")
    return int(value)
