"""SVG elements as text, everything in them escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

Value = str | float | int | None


def tag(name: str, /, *inside: Markup | str, **attributes: Value) -> Markup:
    """``class_`` is ``class``; underscores become hyphens; what is None is left away; text is escaped."""
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
    """An image for screen readers, which is called ``label``; a table beside it tells its numbers."""
    box = f"0 0 {_text(width)} {_text(height)}"
    inside = Markup("").join(parts)
    return tag(
        "svg", inside, viewBox=box, width=width, height=height, role="img", aria_label=label, class_=class_ or None
    )


def _text(value: Value) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
