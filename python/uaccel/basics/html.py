"""What an object shows of itself in a notebook: a small table, and lines below it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from uaccel.errors import escape_terminal


def table(head: Sequence[str], rows: Iterable[Sequence[object]], below: Iterable[str] = ()) -> str:
    """HTML that shows all of it as text, whatever it contains."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>" + "".join(f"<div>{_text(line)}</div>" for line in below)


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align: left">{_text(cell)}</{tag}>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return html.escape(escape_terminal(f"{value:,}" if isinstance(value, int) else str(value)))
