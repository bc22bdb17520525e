"""Pages of sweeps in a real browser: maps, fronts and histories are what the results say, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from report.looked_at import looked_at, number, table
from report.swept import HOSTILE, line, space, sweep, write
from uaccel.report.sweep_page import page_of_results

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
SECTIONS = ["failures", "matrix", "space", "history", "rows"]
KWS = "kws on mps2_an386 with npu"


def text_of(shown: Page, selector: str) -> str:
    return (shown.locator(selector).first.text_content() or "").strip()


def seen(
    browser: Browser, folder: Path, *sweeps: list[dict[str, Any]], width: int = 1400, theme: Any = "light"
) -> AbstractContextManager[Page]:
    paths = [write(folder / f"day{i}.jsonl", rows, f"commit{i}") for i, rows in enumerate(sweeps)]
    return looked_at(browser, folder / "page.html", page_of_results(paths)[0], width, theme)


def test_failures_come_first_with_their_words(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep()) as shown:
        assert shown.locator("main > section").evaluate_all("all => all.map(one => one.id)") == SECTIONS
        assert "Of 24 rows 1 computed wrong and 1 failed." in text_of(shown, "#failures .verdict")
        titles = shown.locator(".failure h3").all_text_contents()
        assert titles == ["wrong ad on mps2_an386 with matrix8", "failed ic on mps2_an386 with matrix8"]
        assert shown.locator(".failure .error").all_text_contents() == ["conv_2: 3 of 9 bytes differ", "no room for it"]
        assert text_of(shown, ".failure pre").endswith("last words")
        shown.locator("[data-heat] td.bad a").first.click()
        assert shown.evaluate("location.hash") == "#failure-5"


def test_the_map_shows_the_figure_that_is_chosen(browser: Browser, tmp_path: Path) -> None:
    rows = sweep()
    with seen(browser, tmp_path, rows) as shown:
        cells = {row[0]: row[1:] for row in table(shown, "[data-heat]")}
        assert shown.locator("[data-heat] tbody th").all_text_contents() == ["kws", "ic", "ad"]
        body = table(shown, "[data-heat]")
        assert body[0][1:3] == ["1 M", "200,000"]
        assert body[1][1:3] == ["2 M", "failed"]
        assert body[2][1:3] == ["3 M", "wrong"]
        assert body[0][-2:] == ["–", "–"], "the host counts no instructions"
        assert len(cells) == 3
        assert shown.locator("[data-heat] tbody tr").first.locator("strong").all_text_contents() == ["1,000"] * 12
        shown.locator("[data-figure]").select_option("flash.total")
        assert table(shown, "[data-heat]")[1][-2:] == ["2,000 B", "2,000 B"]
        shown.locator("[data-figure]").select_option("accelerator_cycles")
        share = "all => all.map(td => td.style.getPropertyValue('--share'))"
        within = shown.locator("[data-heat] tbody tr").first.locator("td").evaluate_all(share)
        cycles = [row["figures"]["accelerator_cycles"] for row in rows if row["title"].startswith("kws on mps2")]
        assert (within[0], cycles[0]) == ("0", 0)
        assert max(map(float, filter(None, within))) == 1
        shown.locator("[data-within]").select_option("all")
        assert text_of(shown, "[data-most]") == f"{max(cycles):,}"


def front_of(rows: list[dict[str, Any]], across: str, up: str, more: bool) -> set[tuple[int, ...]]:
    """By brute force."""
    points = {
        tuple(row["row"]["tags"].values()): (
            row["figures"][across],
            -row["figures"][up] if more else row["figures"][up],
        )
        for row in rows
    }
    return {
        name
        for name, (x, y) in points.items()
        if not any(ox <= x and oy <= y and (ox, oy) != (x, y) for ox, oy in points.values())
    }


def shown_front(shown: Page) -> set[tuple[int, ...]]:
    return {(int(row[0]), int(row[1])) for row in table(shown, "[data-points]") if row[-1] == "yes"}


def test_the_front_is_that_of_the_points(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep()) as shown:
        assert shown.locator("[data-group] option").all_text_contents()[0] == KWS
        wanted = front_of(space(), "accelerator_cycles", "utilisation", True)
        assert 2 <= len(wanted) < 12
        assert shown_front(shown) == wanted
        assert shown.locator(".point").count() == 12
        assert shown.locator(".point.front").count() == len(wanted)
        marked = shown.locator(".point.front text").all_text_contents()
        assert set(marked) <= {" × ".join(map(str, numbers)) for numbers in wanted}
        shown.locator("[data-up]").select_option("ram.total")
        assert shown_front(shown) == front_of(space(), "accelerator_cycles", "ram.total", False)
        best = min(space(), key=lambda row: row["figures"]["accelerator_cycles"])
        assert number(table(shown, "[data-points]")[0][2]) == best["figures"]["accelerator_cycles"]


def test_points_can_be_walked_along_without_a_mouse(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep()) as shown:
        shown.locator("[data-up]").focus()
        for _ in range(4):
            shown.keyboard.press("Tab")
            if shown.evaluate("document.activeElement.classList.contains('point')"):
                break
        first = text_of(shown, "[data-told]")
        assert first.startswith("ROWS 32, PORTS 1: Accelerator cycles 13,500")
        shown.keyboard.press("ArrowRight")
        assert text_of(shown, "[data-told]") != first
        assert shown.locator('.point[tabindex="0"]').count() == 1
        shown.locator(".point circle").last.hover()
        assert "Utilisation" in text_of(shown, "[data-told]")


def test_a_history_tells_what_changed_by_how_much(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep(1.1), sweep(1.05), sweep()) as shown:
        assert shown.locator("[data-past]").input_value() == "instructions"
        rows = table(shown, "[data-changes]")
        assert [row[0] for row in rows[:1]] == ["kws on mps2_an386 with cpu"]
        assert rows[0][1:] == ["1,100,000", "1,050,000", "1,000,000", "-9.1 %"]
        assert shown.locator("[data-changes] td.better").count() == len(rows) == 4
        assert "4 of 16 rows changed" in text_of(shown, "[data-changed]")
        assert shown.locator("[data-lines] polyline").count() == 16
        shown.locator("[data-past]").select_option("flash.total")
        assert shown.locator("[data-lines] svg").count() == 0
        assert text_of(shown, "h1") == "Sweep day2, commit2"
    with seen(browser, tmp_path, sweep(), sweep(1.2)) as shown:
        assert text_of(shown, "[data-changes] td.worse") == "+20 %"


def test_rows_can_be_sorted_by_any_column(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep()) as shown:
        assert len(table(shown, "[data-all]")) == 24
        head = shown.locator("[data-all] th").all_text_contents()
        at = next(i for i, title in enumerate(head) if title.startswith("CPU instructions"))
        for order in ("ascending", "descending"):
            shown.get_by_role("button", name=re.compile("^CPU instructions")).click()
            assert shown.locator("[data-all] th").nth(at).get_attribute("aria-sort") == order
            values = [row[at] for row in table(shown, "[data-all]")]
            known = [number(value) for value in values if value != "–"]
            assert known == sorted(known, reverse=order == "descending")
            assert all(value == "–" for value in values[len(known) :]), "what is not known comes last either way"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_widths_and_themes(browser: Browser, tmp_path: Path, width: int, theme: str) -> None:
    long: list[dict[str, Any]] = json.loads(json.dumps(sweep()).replace('"kws', '"' + "a_long_name_" * 12))
    with seen(browser, tmp_path, long, sweep(), long, width=width, theme=theme) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (theme == "light")
        for name in SECTIONS:
            assert shown.locator(f"#{name}").bounding_box() is not None


def test_names_that_are_markup_are_text(browser: Browser, tmp_path: Path) -> None:
    bad = line(HOSTILE, HOSTILE, [HOSTILE], status="failed", error=HOSTILE, log=HOSTILE, options={HOSTILE: HOSTILE})
    other = line("m", "__proto__", figures={"__proto__": 3, HOSTILE: 4, "ram.total": 5}, tags={"__proto__": HOSTILE})
    rows = [bad, other, *space(HOSTILE)]
    changed = [row | {"figures": {name: 2 * value for name, value in row["figures"].items()}} for row in rows]
    with seen(browser, tmp_path, rows, changed) as shown:
        assert shown.locator("script").count() == 2
        assert shown.locator("img").count() == 0
        assert text_of(shown, ".failure .error") == HOSTILE
        for menu in ("[data-figure]", "[data-across]", "[data-past]"):
            for option in shown.locator(f"{menu} option").evaluate_all("all => all.map(one => one.value)"):
                shown.locator(menu).select_option(option)
        assert HOSTILE in text_of(shown, "[data-points] thead")


def test_print(browser: Browser, tmp_path: Path) -> None:
    with seen(browser, tmp_path, sweep()) as shown:
        shown.emulate_media(media="print")
        assert not shown.locator(".controls").first.is_visible()
        assert shown.locator("svg.plot").is_visible()
        assert len(shown.pdf()) > 20_000


def test_a_thousand_rows_are_quick(browser: Browser, tmp_path: Path) -> None:
    rows = [
        line(f"m{i}", f"b{k}", figures=dict.fromkeys(("instructions", "ram.total"), i))
        for i in range(50)
        for k in range(20)
    ]
    with seen(browser, tmp_path, rows) as shown:
        times = []
        for _ in range(4):
            times.append(shown.evaluate("performance.getEntriesByType('navigation')[0].domComplete"))
            shown.reload()
        assert min(times) < 2000, f"it took {min(times):.0f} ms until the page could be used"
        assert (tmp_path / "page.html").stat().st_size < 2_000_000
