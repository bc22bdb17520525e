"""Handles words and names: shared vocabulary, spelling, whole numbers, and escaping for wherever names are written."""

from __future__ import annotations

import difflib
import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from uaccel.errors import escape_terminal, one_line

# Vocabulary that reports and archives share: readers of either compare these words.

CPU: Final = "cpu"  # The engine that computes what no accelerator does.
# The way to compute for which an arena's lower bound holds; another way may take less.
BOUNDED: Final = "layer by layer, outputs over what is read of their inputs"
BOUNDED_ONCE: Final = "layer by layer, outputs beside their inputs"  # Holds for archives that name no way.
# A file in a project's ``board``: with it firmware speaks the benchmark's protocol, and serves no session.
BENCHMARK_HEADER: Final = "uaccel_mlperf_tiny.h"


def named(source: object, *names: str) -> dict[str, Any]:
    """What an object has under these names, by the same names."""
    return {name: getattr(source, name) for name in names}


# Spelling: the nearest known word to a mistyped one, for error messages.


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'host'?"`` for ``hots``, or nothing where no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


# Numbers: division and rounding upwards, sizes and times in words.


def pieces(whole: int, size: int) -> int:
    """How many pieces of a size it takes; the last may be smaller."""
    return -(-whole // size)


def round_up(value: int, unit: int) -> int:
    """The next multiple of ``unit``."""
    return -(-value // unit) * unit


UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str, digits: int = 10) -> int | None:
    """The bytes that ``4096``, ``64K`` or ``16M`` stand for; None for what is no size, or has more digits."""
    match = re.fullmatch(rf"([0-9]{{1,{digits}}})([KMG]?)", text)
    return int(match[1]) * UNITS[match[2]] if match else None


_TIMES: Final[Sequence[tuple[float, str]]] = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


def seconds_in_words(seconds: float) -> str:
    """A time in the unit that leaves one to three digits before the point."""
    scale, unit = next(row for row in _TIMES if seconds * row[0] >= 1 or row[1] == "µs")
    number = float(f"{seconds * scale:.3g}")
    return f"{number:.3g} {unit}" if number < 1000 else f"{seconds * scale:,.0f} {unit}"


# Escaping: names from elsewhere, made safe for the place where they are written.
#
# A name from a model file, a board file, an archive or a device may hold any character. For each kind of place there is
# a function here, and a row of hostile names in tests/unit/test_sinks.py: whoever writes names somewhere new adds both.

_OTHER: Final = re.compile(r"[^ -~]")


def shown_json(text: str) -> str:
    """A JSON document for a terminal: escapes are those of JSON, so that its meaning stays."""
    return _OTHER.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


def code_span(text: str) -> str:
    """Text as code in Markdown: between more backticks than it has in a row."""
    line = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if line[:1] in ("`", " ") or line[-1:] in ("`", " ") else ""
    return f"{fence}{space}{line}{space}{fence}"


def comment_safe(text: str) -> str:
    """Text for a comment of C or of a linker script: it cannot end the comment, start one, or continue a line."""
    printable = "".join(c if c.isprintable() else "?" for c in text).replace("\\", "|")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", printable)


def c_string(text: str) -> str:
    """A C string literal. Bytes are escaped as three octal digits, since a hexadecimal escape would go on into the next
    character; question marks too, so that no trigraph begins."""
    return '"' + "".join(map(c_character, text.encode("utf-8", "replace"))) + '"'


def c_character(byte: int) -> str:
    """A byte of a C string literal."""
    short = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}
    plain = 32 <= byte < 127 and byte != ord("?")
    return short.get(byte) or (chr(byte) if plain else f"\\{byte:03o}")


def cmake_string(text: str) -> str:
    """One argument of a CMake command."""
    return '"' + re.sub(r'[\\"$]', r"\\\g<0>", text).replace("\r", "\\r").replace("\n", "\\n") + '"'


def cmake_list(words: Iterable[str]) -> str:
    """Arguments that make a list, whose elements CMake separates by semicolons."""
    return " ".join(cmake_string(word).replace(";", "\\;") for word in words)


# Keywords of C99 to C23 and of C++, since headers are for both; and macros that are defined nearly everywhere.
_WORDS: Final = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
    unsigned using virtual void volatile wchar_t while xor xor_eq _Alignas _Alignof _Atomic _BitInt _Bool
    _Complex _Generic _Imaginary _Noreturn _Pragma _Static_assert _Thread_local
    EOF INFINITY NAN NULL MAXFLOAT DECIMAL_DIG errno signgam math_errhandling stderr stdin stdout
    i386 linux mips powerpc sparc sun unix PPC
    ATOMIC_UNGETC FALLTHROUGH FAST_STRCMP POSIX_IO PREFER_SIZE_OVER_SPEED TINY_STDIO"""
_RESERVED: Final = frozenset(_WORDS.split())
# Macros of the headers that generated code includes, and of generated code itself.
_MACROS: Final = re.compile(
    r"U?INT\w*_(C|MAX|MIN|WIDTH)|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MAX|MIN|WIDTH)|HUGE_VAL[FL]?"
    r"|(TVMGEN|UACCEL|FP|FLT|DBL|LDBL|EXT|HAVE|MATH|NEWLIB|PICOLIBC)_\w+|M_(?=\w*[A-Z])\w+"
    r"|tvmgen_\w+_run"  # a macro where the run function has another name under it
)


def is_reserved(name: str) -> bool:
    """Whether C, C++, their headers or generated code give the name a meaning of their own."""
    return name in _RESERVED or _MACROS.fullmatch(name) is not None


# HTML for notebooks: a small table, and lines below it.


def table(head: Sequence[str], rows: Iterable[Sequence[object]], below: Iterable[str] = ()) -> str:
    """A table in HTML that shows every cell as text, whatever it contains."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>" + "".join(f"<div>{_text(line)}</div>" for line in below)


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align: left">{_text(cell)}</{tag}>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return html.escape(escape_terminal(f"{value:,}" if isinstance(value, int) else str(value)))
