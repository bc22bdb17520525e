"""Stored runs, and a browser to look at pages with."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.models.networks import OWN
from support.run.command import process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def gesture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run on an emulated board, partly on an accelerator, with all details."""
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not there to run the board")
    options = ("--board", "mps2_an386", "--accelerator", "matrix8", "--verify", "layers", "--details", "--json")
    done = process("run", OWN / "gesture.tflite", *options, cwd=tmp_path_factory.mktemp("run"))
    assert done.status == 0, done.err
    return done.report


@pytest.fixture
def stored(gesture: dict[str, Any]) -> dict[str, Any]:
    """The same, to change."""
    return copy.deepcopy(gesture)


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


def write(data: dict[str, Any], path: Path) -> Path:
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
