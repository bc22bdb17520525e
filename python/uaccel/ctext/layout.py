"""Lines that fit: comments, heads of functions, calls, lists."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from uaccel.basics.sinks import comment_safe

WIDTH: Final = 110
INDENT: Final = "    "
LONGEST_NAME: Final = 90
UNBROKEN: Final = "\0"
"""A space at which ``filled`` breaks no line."""
_BREAK: Final = "\1"
"""Before a space that is not there unless a line is broken at it."""


def quoted(name: str) -> str:
    """A tensor's name for a comment; what converters fuse can have names of several hundred characters."""
    shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return f'"{comment_safe(shown)}"'


def block_comment(lines: Iterable[str]) -> str:
    rows = [f" * {comment_safe(line)}".rstrip() for line in lines]
    return f"/*{rows[0][2:]}" + "".join(f"\n{row}" for row in rows[1:]) + " */"


def wrapped_comment(lines: Iterable[str], indent: int = 0) -> str:
    """A block comment whose lines fit; what does not goes on below, indented."""
    shape = _wrapper("", " " * indent)
    return block_comment(part for line in lines for part in shape.wrap(line))


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


def filled(line: str) -> str:
    """A long line, broken at spaces, if it can be outside of indices; or behind parentheses where it has too few.

    There is no string in it that this could change.
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
    """As many items a line as fit, counted by the longest, so that columns line up."""
    longest = max((len(item) for item in items), default=1)
    per_line = max(1, (WIDTH - len(indent)) // (longest + 2))
    rows = (items[i : i + per_line] for i in range(0, len(items), per_line))
    return ",\n".join(indent + ", ".join(f"{item:>{longest}}" for item in row) for row in rows)
