"""The page of a model shows what less RAM costs, if that is asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from report.looked_at import looked_at
from support.models.networks import OWN
from support.run.command import process
from uaccel.report.page_memory import NO_WAYS

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def page_of(folder: Path, *options: str) -> str:
    target = folder / "page.html"
    done = process("report", OWN / "residual.tflite", *options, "-o", target)
    assert done.status == 0, done.err
    return target.read_text(encoding="utf-8")


def test_every_point_of_the_frontier_is_shown(browser: Browser, tmp_path: Path) -> None:
    told: dict[str, Any] = process("compile", OWN / "residual.tflite", "--frontier", "--workspace-io", "--json").report
    with looked_at(browser, tmp_path / "shown.html", page_of(tmp_path, "--frontier")) as shown:
        rows = shown.locator("#frontier tbody tr").all_text_contents()
        assert shown.locator("#frontier .dot").count() == len(rows) == len(told["points"]) > 3
        for row, point in zip(rows, told["points"], strict=True):
            assert f"{point['ram']:,}" in row
        assert shown.locator("#frontier .dot.e1").count() == 1, "this run is one of them"


def test_without_the_search_the_page_says_how_to_get_it(tmp_path: Path) -> None:
    text = page_of(tmp_path)
    assert NO_WAYS in re.sub("&#39;", "'", text)
    (data,) = json.loads(text.partition('id="runs">')[2].partition("</script>")[0])
    assert "frontier" not in data
