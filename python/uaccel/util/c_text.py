"""Writes pieces of C as text, for all code generators: types, literals, arrays, and lines that fit."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import need
from uaccel.util.text import c_character, comment_safe

# Lines that fit: comments, heads of functions, calls, lists.

WIDTH: Final = 110  # Columns of a line, at most.
INDENT: Final = "    "
LONGEST_NAME: Final = 90
UNBROKEN: Final = "\0"  # Stands for a space at which ``filled`` breaks no line.
_BREAK: Final = "\1"  # Marks the space behind it as a place to break a line; both vanish where it is not broken.


def quote_comment(name: str) -> str:
    """A tensor's name for a comment, cut short: converters give what they fuse names of several hundred characters."""
    shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return f'"{comment_safe(shown)}"'


def block_comment(lines: Iterable[str]) -> str:
    rows = [f" * {comment_safe(line)}".rstrip() for line in lines]
    return f"/*{rows[0][2:]}" + "".join(f"\n{row}" for row in rows[1:]) + " */"


def wrapped_comment(lines: Iterable[str], indent: int = 0) -> str:
    """A block comment whose lines fit; the rest of a long one goes on below, indented."""
    shape = _wrapper("", " " * indent)
    return block_comment(part for line in lines for part in shape.wrap(line))


def wrap_call(head: str, arguments: Iterable[str]) -> str:
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


def filled(line: str) -> str:
    """A long line of C, broken at spaces. The line must hold no string, which this could change.

    Three ways are tried, and the first that makes all lines fit is taken: break outside of indices only, break at any
    space, and break behind opening parentheses too.
    """
    indent, text = line[: len(line) - len(line.lstrip(" "))], line.strip(" ")
    shape = _wrapper(indent, indent + 2 * INDENT)
    whole = re.sub(r"\[[^][]*\]", lambda index: index[0].replace(" ", UNBROKEN), text)
    for way in (whole, text, text.replace("(", f"({_BREAK} ")):
        result = shape.fill(way)
        if max(map(len, result.splitlines())) <= WIDTH:
            break
    return result.replace(f"{_BREAK} ", "").replace(_BREAK, "").replace(UNBROKEN, " ")


def _wrapper(first: str, others: str) -> textwrap.TextWrapper:
    return textwrap.TextWrapper(
        WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def columns(items: Sequence[str], indent: str = INDENT) -> str:
    """A list with as many items a line as fit, all as wide as the longest, so that columns line up."""
    longest = max((len(item) for item in items), default=1)
    per_line = max(1, (WIDTH - len(indent)) // (longest + 2))
    rows = (items[i : i + per_line] for i in range(0, len(items), per_line))
    return ",\n".join(indent + ", ".join(f"{item:>{longest}}" for item in row) for row in rows)


# Types of C for element types by their TVM names ("int8", "float32", "bool"), and the values that they hold.

FLOATS: Final = {"float32": "float", "float64": "double"}
C_TYPES: Final = {
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **FLOATS,
}


def c_type(dtype: str) -> str:
    need(dtype in C_TYPES, f"C99 has no type {dtype}")
    return C_TYPES[dtype]


def storage_type(dtype: str) -> str:
    """The type of an element in memory: a bool is a byte that is 0 or 1."""
    return "uint8_t" if dtype == "bool" else c_type(dtype)


def bits(dtype: str) -> int:
    return 1 if dtype == "bool" else 8 * np.dtype(dtype).itemsize


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def limits(dtype: str) -> tuple[float, float]:
    """The bounds of a type; infinite for floating point."""
    if dtype in FLOATS:
        return -math.inf, math.inf
    if is_signed(dtype):
        return -(1 << (bits(dtype) - 1)), (1 << (bits(dtype) - 1)) - 1
    return 0, (1 << bits(dtype)) - 1


def fits(low: float, high: float, dtype: str) -> bool:
    bottom, top = limits(dtype)
    return bottom <= low and high <= top


# Literals of C.


def int_literal(value: int) -> str:
    """An integer as plain decimal wherever an int of 32 bits holds it. The most negative values have names instead,
    since C has no literal for them: -2147483648 negates a number that is no int."""
    if value == limits("int32")[0]:
        return "INT32_MIN"
    if fits(value, value, "int32"):
        return str(value)
    return sized_literal(value, "int64" if fits(value, value, "int64") else "uint64")


def sized_literal(value: int, dtype: str) -> str:
    """A literal of a type that has a macro for it: int64, uint32, uint64."""
    if is_signed(dtype) and value == limits(dtype)[0]:
        return f"{dtype.upper()}_MIN"
    return f"{'-' if value < 0 else ''}{dtype.upper()}_C({abs(value)})"


def float_literal(value: float, dtype: str) -> str:
    """The shortest decimal that reads back as the same number; NAN and INFINITY for what is none."""
    suffix, promoted = ("f", "") if dtype == "float32" else ("", "(double)")
    if math.isnan(value):
        return f"{promoted}NAN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{promoted}INFINITY" if math.isinf(value) else f"{sign}{abs(np.dtype(dtype).type(value))!s}{suffix}"


def string_literals(text: str, width: int) -> list[str]:
    """One string as literals of up to ``width`` columns between the quotes, which the compiler joins. Each ends behind
    a comma, unless the text between two commas is too long for a line."""
    lines = [""]
    for part in re.findall("[^,]*,|[^,]+", text):
        characters = [c_character(byte) for byte in part.encode()]
        if lines[-1] and len(lines[-1]) + sum(map(len, characters)) > width:
            lines.append("")
        for character in characters:
            if len(lines[-1]) + len(character) > width:
                lines.append("")
            lines[-1] += character
    return [f'"{line}"' for line in lines]


def literal(value: float, dtype: str) -> str:
    """An element of an array."""
    return float_literal(value, dtype) if dtype in FLOATS else int_literal(int(value))


# Arrays as C text. Arrays of bytes are formatted by numpy: large networks have a hundred million of these.

# Bytes of constants from which a model's longer arrays of bytes become strings.
#
# A compiler keeps each number of a list as a node of a tree, which takes a hundred bytes and a microsecond: minutes and
# gigabytes for a large network. It keeps a string as its bytes.
COMPACT_FROM: Final = 1 << 20
SHORTEST: Final = 4096  # An array that is shorter stays a list of numbers in any model.

SUPPRESSED: Final = """\
/* Long arrays are string literals here: compilers read them in seconds, and lists of numbers in minutes. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Woverlength-strings" /* C99 promises 4095 characters; compilers take any number */
#endif
#if (defined(__clang__) && __clang_major__ >= 21) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 15)
#pragma GCC diagnostic ignored "-Wunterminated-string-initialization" /* bytes have no mark at their end */
#endif
"""

_IN_A_STRING: Final = 26  # Bytes in a line of a literal.
_AT_ONCE: Final = 1 << 16  # Lines that are made together, so that numpy's intermediate arrays stay small.


def array_body(array: NDArray[Any]) -> str:
    """The elements, comma separated, wrapped."""
    if is_bytes(array):
        return as_numbers(array)
    numbers, dtype = array.ravel().tolist(), str(array.dtype)
    small = array.dtype.kind in "iu" and array.size > 0 and fits(int(array.min()) - 1, int(array.max()), "int32")
    return columns([*map(str, numbers)] if small else [literal(value, dtype) for value in numbers])


def is_bytes(array: NDArray[Any]) -> bool:
    return array.dtype in (np.int8, np.uint8)


def is_long(array: NDArray[Any]) -> bool:
    """Whether it becomes a string in a large model."""
    return is_bytes(array) and array.size >= SHORTEST


def as_numbers(array: NDArray[Any]) -> str:
    """Its elements, comma separated, as many a line as fit."""
    flat = np.ascontiguousarray(array).ravel()
    longest = max((len(str(value)) for value in np.unique(flat).tolist()), default=1)
    each = [
        f"{value:>{longest}}"[:longest] + ", " for value in np.arange(256, dtype=np.uint8).view(flat.dtype).tolist()
    ]
    count = max(1, (WIDTH - len(INDENT)) // (longest + 2))
    return _lines(flat, each, count, INDENT, "").rstrip("\n").removesuffix(", ").replace(", \n", ",\n")


def as_string(array: NDArray[Any]) -> str:
    """Its bytes as a string literal of many lines."""
    flat = np.ascontiguousarray(array).ravel()
    return _lines(flat, [f"\\{value:03o}" for value in range(256)], _IN_A_STRING, '    "', '"').rstrip("\n")


def _lines(flat: NDArray[Any], each: list[str], count: int, before: str, after: str) -> str:
    """The text of an array with ``count`` words a line. ``each`` has the word of every byte, by its value without sign;
    all words are equally long, so that whole lines come from one lookup by numpy."""
    words = np.array([list(word.encode()) for word in each], np.uint8)
    numbers = flat.view(np.uint8)
    whole = len(numbers) // count
    pieces = []
    for start in range(0, whole, _AT_ONCE):
        some = numbers[start * count : min(start + _AT_ONCE, whole) * count].reshape(-1, count)
        pieces.append(_framed(words[some].reshape(len(some), -1), before, f"{after}\n"))
    if whole * count < len(numbers):
        pieces.append(_framed(words[numbers[whole * count :]].reshape(1, -1), before, f"{after}\n"))
    return b"".join(pieces).decode("ascii")


def _framed(lines: NDArray[Any], before: str, after: str) -> bytes:
    """Every row with the same text before and after it."""
    columns = [np.tile(np.frombuffer(text.encode(), np.uint8), (len(lines), 1)) for text in (before, after)]
    return np.hstack([columns[0], lines, columns[1]]).tobytes()
