"""docs/sweep.png: a design space as a sweep's page draws it. ``python scripts/sweep_picture.py`` writes it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "sweep.png"
MATRIX = f"""
models = ["{ROOT / "tests" / "models" / "residual.tflite"}"]
accelerators = ["npu"]
[run]
verify = "no"
[[space]]
accelerator = "npu"
NPU_ROWS = [4, 8, 16, 32]
NPU_COLUMNS = [4, 8, 16, 32]
"""
WIDTH, HEIGHT = 900, 700


def write() -> None:
    """Needs Debian's Chromium."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        matrix, page = Path(folder) / "space.toml", Path(folder) / "space.html"
        matrix.write_text(MATRIX, encoding="utf-8")
        for command in (("sweep", matrix), ("report", matrix.with_suffix(".jsonl"), "-o", page)):
            subprocess.run([sys.executable, "-m", "uaccel", *map(str, command)], check=True)
        browser = browsers.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        window.goto(f"{page.as_uri()}#space")
        window.wait_for_timeout(500)
        window.locator("#space figure").screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    write()
