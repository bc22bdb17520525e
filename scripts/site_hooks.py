"""What the site's builder is told besides mkdocs.yml: the first words of code blocks as it wants them."""

from __future__ import annotations

import re
from typing import Any

_FENCE = re.compile(r"^```(\w+)[ ]+(.+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return _FENCE.sub(_fence, markdown)


def _fence(match: re.Match[str]) -> str:
    """Blocks name a file, which becomes their title, or what they need, which is for the tests."""
    language, rest = match.groups()
    return f"```{language}" if rest.startswith("needs=") else f'```{language} title="{rest.strip()}"'
