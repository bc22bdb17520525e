"""docs/report.png: the top of a run's page, as a browser shows it. ``python scripts/report_picture.py`` writes it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "report.png"
MODEL = ("tests/models/residual.tflite", "--board", "mps2_an386", "--accelerator", "matrix8")
WIDTH, HEIGHT = 1200, 1150


def write() -> None:
    """Needs Debian's Chromium."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder) / "report.html"
        subprocess.run([sys.executable, "-m", "uaccel", "report", *MODEL, "-o", str(page)], cwd=ROOT, check=True)
        browser = browsers.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        window.goto(page.as_uri())
        window.wait_for_timeout(500)
        window.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    write()
