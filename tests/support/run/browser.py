"""A browser to look at pages with: the system's Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip("there is no Chromium to look at pages with; on Debian: apt-get install -y chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright: pip install 'uaccel[dev]'")
    with playwright.sync_playwright() as running:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root one
        browser = running.chromium.launch(executable_path=found, args=sandbox)
        yield browser
        browser.close()
