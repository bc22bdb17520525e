"""A page in a browser, watched: what it logs, what it asks for, and whether a dialog opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uaccel.report import page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def opened(
    browser: Browser, folder: Path, runs: Sequence[dict[str, Any]], width: int = 1400, theme: Any = "light"
) -> Iterator[Page]:
    """A page of these runs."""
    with looked_at(browser, folder / "page.html", page(runs), width, theme) as shown:
        yield shown


@contextmanager
def looked_at(browser: Browser, file: Path, text: str, width: int = 1400, theme: Any = "light") -> Iterator[Page]:
    """From disk, without a network; nothing may go wrong until the end of the block."""
    file.write_text(text, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    told: list[str] = []
    shown = context.new_page()
    shown.on("console", lambda message: told.append(f"console: {message.text}"))
    shown.on("pageerror", lambda error: told.append(f"error: {error}"))
    shown.on("dialog", lambda dialog: told.append(f"dialog: {dialog.message}"))
    shown.on("request", lambda request: told.append(request.url) if request.url != file.as_uri() else None)
    shown.goto(file.as_uri())
    yield shown
    assert told == [], "the page must be quiet and ask nothing of anybody"
    context.close()


def table(shown: Page, selector: str) -> list[list[str]]:
    """The texts of a table's body, row by row."""
    script = "(t) => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent.trim()))"
    found: list[list[str]] = shown.locator(selector).first.evaluate(script)
    return found


def number(text: str) -> int:
    return int(text.replace(",", ""))
