"""Small pieces of C text: types, literals, comments, arrays."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.basics.sinks import comment_safe
from uaccel.emit.bytes_text import as_numbers, is_bytes
from uaccel.ops.kernel import ParameterValue

C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
}

WIDTH = 110
LONGEST_NAME = 90


def c_type(dtype: str) -> str:
    return C_TYPES[dtype]


def quoted(name: str) -> str:
    """A tensor's name for a comment; what converters fuse can have names of several hundred characters."""
    shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return f'"{comment_safe(shown)}"'


def block_comment(lines: Iterable[str]) -> str:
    rows = [f" * {comment_safe(line)}".rstrip() for line in lines]
    return f"/*{rows[0][2:]}" + "".join(f"\n{row}" for row in rows[1:]) + " */"


def wrapped_comment(lines: Iterable[str], indent: int = 0) -> str:
    """A block comment whose lines fit; what does not goes on below, indented."""
    shape = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return block_comment(part for line in lines for part in shape.wrap(line))


def parameter_literal(value: ParameterValue) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(parameter_literal(v) for v in value) + "}"
    if isinstance(value, float):
        return float_literal(value, "f")
    if 1 << 31 <= value < 1 << 32:  # the fields that hold such values are bytes side by side
        return f"0x{value:08X}u"
    return int_literal(value)


def int_literal(value: int) -> str:
    """The most negative values have no literal of their own in C."""
    if value == -(1 << 31):
        return "INT32_MIN"
    if value == -(1 << 63):
        return "INT64_MIN"
    if value >= 1 << 63:
        return f"UINT64_C({value})"
    if not -(1 << 31) <= value < (1 << 31):
        return f"INT64_C({value})"
    return str(value)


def float_literal(value: float, suffix: str) -> str:
    """The shortest decimal that reads back as the same number."""
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = str(np.float32(value)) if suffix else repr(value)
    return f"{text}{suffix}" if any(c in text for c in ".en") else f"{text}.0{suffix}"


def array_body(array: NDArray[Any]) -> str:
    """The elements, comma separated, wrapped."""
    if is_bytes(array):
        return as_numbers(array, WIDTH)
    flat = array.ravel()
    if array.dtype.kind == "f":
        suffix = "f" if array.dtype.itemsize == 4 else ""
        items = [float_literal(v, suffix) for v in flat.tolist()]
    elif array.dtype.kind == "b":
        items = [str(int(v)) for v in flat]
    elif array.dtype.itemsize <= 2:
        items = list(map(str, flat.tolist()))
    else:
        items = [int_literal(v) for v in flat.tolist()]
    return wrap(items)


def wrap(items: list[str], indent: str = "    ") -> str:
    """As many items a line as fit, counted by the longest, so that columns line up."""
    longest = max((len(item) for item in items), default=1)
    per_line = max(1, (WIDTH - len(indent)) // (longest + 2))
    rows = (items[i : i + per_line] for i in range(0, len(items), per_line))
    return ",\n".join(indent + ", ".join(f"{item:>{longest}}" for item in row) for row in rows)


def wrapped(head: str, arguments: Iterable[str]) -> str:
    """head(a, b, c), broken after a comma where the line would be too long."""
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    lines, line = [], f"{head}("
    items = list(arguments) or ["void"]
    for i, item in enumerate(items):
        text = item + (")" if i == len(items) - 1 else ",")
        if len(line) + len(text) + 1 > WIDTH and not line.endswith("("):
            lines.append(line.rstrip())
            line = indent
        line += text if line.endswith(("(", indent)) else f" {text}"
    return "\n".join([*lines, line])
