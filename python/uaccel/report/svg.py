"""Provides what sections are made of: SVG elements, numbers as text, and the section itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from uaccel.util.text import seconds_in_words

# SVG elements as text; everything inside is escaped.

Value = str | float | int | None


def tag(name: str, /, *inside: Markup | str, **attributes: Value) -> Markup:
    """Makes an element. ``class_`` stands for ``class``, underscores become hyphens, attributes of None are omitted."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(part) for part in inside)
    return Markup(f"<{name}{words}>{content}</{name}>" if content or name == "g" else f"<{name}{words}/>")


def text(x: float, y: float, words: str, anchor: str = "start", class_: str | None = None) -> Markup:
    return tag("text", words, x=x, y=y, text_anchor=anchor if anchor != "start" else None, class_=class_)


def title(words: str) -> Markup:
    return tag("title", words)


def drawing(width: float, height: float, label: str, parts: Iterable[Markup], class_: str = "") -> Markup:
    """Makes a drawing that screen readers call ``label``; a table beside it holds its numbers."""
    box = f"0 0 {_text(width)} {_text(height)}"
    inside = Markup("").join(parts)
    return tag(
        "svg", inside, viewBox=box, width=width, height=height, role="img", aria_label=label, class_=class_ or None
    )


def _text(value: Value) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


# Sections of a page.

Shown = Mapping[str, Any] | str  # What a section's template shows, or why there is nothing to show.


@dataclass(frozen=True)
class Section:
    """Holds a section of a page. Its template lies in ``templates/``, and is called after the id if it is not named."""

    id: str
    title: str
    shown: Shown
    template: str = ""


# The advice where a stored run lacks something.
DETAILS = "run the model with 'uaccel run MODEL --details --json', or with '--report FILE'"


# Numbers as text.

UNKNOWN = "not known"


def count(number: float | None) -> str:
    """A count such as 12,345; None is not known."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def size(number: float | None) -> str:
    """Bytes in a unit that leaves one to five digits before the point."""
    if number is None:
        return UNKNOWN
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= 10 * scale or (unit == "MiB" and number >= scale):
            return f"{number / scale:,.1f} {unit}"
    return f"{number:,.0f} B"


def percent(part: float, whole: float) -> str:
    if not whole or not part:
        return "0 %"
    share = 100 * part / whole
    if 0 < share < 0.05:
        return "< 0.1 %"
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def seconds(number: float | None) -> str:
    return UNKNOWN if number is None else seconds_in_words(number)


def shape(extents: Sequence[int]) -> str:
    return "×".join(map(str, extents)) or "scalar"


def join_words(words: Iterable[str]) -> str:
    """Joins words as in "a, b and c"."""
    *most, last = list(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def numbered(labels: Sequence[str]) -> list[str]:
    """Makes each label the only one of its kind: equal ones get their places as numbers."""
    seen = Counter(labels)
    return [f"{label} {place}" if seen[label] > 1 else label for place, label in enumerate(labels, 1)]


def ellipsize(text: str, characters: int) -> str:
    """Cuts a text with an ellipsis in its middle, since names differ at their ends."""
    if len(text) <= characters:
        return text
    left = (characters - 1) // 2
    return f"{text[:left]}…{text[len(text) - (characters - 1 - left) :]}"


def ticks(largest: float, about: int = 5) -> list[float]:
    """Round numbers from 0 to at least the largest: multiples of 1, 2 or 5 times a power of ten, ``about`` so many."""
    if largest <= 0:
        return [0.0, 1.0]
    rough, step = largest / about, 1.0
    while step * 10 <= rough:
        step *= 10
    while step > rough:
        step /= 10
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor >= rough)
    found = [0.0]
    while found[-1] < largest:
        found.append(found[-1] + step)
    return found
