"""What the site's builder is told besides mkdocs.yml: titles of code blocks, and where pages have moved."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any, Final

MOVED: Final = {
    "api.md": "reference/api.md",
    "lab.md": "sweep.md#a-lab",
    "mlperf-tiny.md": "testing.md#mlperf-tiny",
    "onnx.md": "models.md#onnx",
    "operators.md": "models.md#operators",
    "project-api.md": "from-microtvm.md#projects-and-the-project-api",
    "pytorch.md": "models.md#pytorch",
    "chip.md": "reference/chip.md",
    "commands.md": "reference/commands.md",
    "coverage.md": "reference/coverage.md",
    "networks.md": "reference/networks.md",
    "npu.md": "reference/npu.md",
    "reference-models.md": "reference/reference-models.md",
    "reliability.md": "reference/reliability.md",
}
# Pages that were elsewhere, seen from docs/: their old addresses lead to the new ones.

_SHIM: Final = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
_WORKER: Final = Path(__file__).resolve().parent / "site_worker.js"
_FENCE = re.compile(r"^```(\w+)[ ]+(.+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return _FENCE.sub(_fence, markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Called by MkDocs when all pages are written: what the theme would load from elsewhere goes into them."""
    worker = f"<script>\n{_WORKER.read_text(encoding='utf-8')}</script>"
    for page in Path(config["site_dir"]).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(_SHIM, worker), encoding="utf-8")
    for old, new in MOVED.items():
        (Path(config["site_dir"]) / old).with_suffix(".html").write_text(redirect(new), encoding="utf-8")


def redirect(page: str) -> str:
    """A page that leads to another one, which may have an anchor behind it."""
    path, mark, anchor = page.partition("#")
    target = escape(f"{path.removesuffix('.md')}.html{mark}{anchor}")
    return (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>Moved</title>\n<link rel="canonical" href="{target}">\n'
        f'<meta http-equiv="refresh" content="0; url={target}">\n<p>This page is now <a href="{target}">here</a>.</p>\n'
    )


def _fence(match: re.Match[str]) -> str:
    """Blocks name a file, which becomes their title, or what they need, which is for the tests."""
    language, rest = match.groups()
    return f"```{language}" if rest.startswith("needs=") else f'```{language} title="{rest.strip()}"'
