"""Pages in a real browser: every section shows what the JSON says, and can be used with mouse and keyboard."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from report.looked_at import number, opened, table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
SECTIONS = ["summary", "graph", "memory", "frontier", "times", "roofline", "flash", "timeline", "offload", "precision"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def text_of(shown: Page, selector: str) -> str:
    return re.sub(r"\s+", " ", shown.locator(selector).first.text_content() or "")


def test_every_section_says_what_the_json_says(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    with opened(browser, tmp_path, [stored]) as shown:
        assert shown.locator("main > section").evaluate_all("all => all.map(one => one.id)") == SECTIONS
        summary = text_of(shown, "#summary")
        assert "Every bit is as it should be" in summary
        for words in (stored["source"]["sha256"], stored["source"]["command"], f"{stored['instructions']:,}, counted"):
            assert words in summary
        assert f"{stored['ram']['total']:,} B" in summary
        assert f"{stored['flash']['total']:,} B" in summary

        rows = table(shown, "[data-bars]")
        costs = {row["name"]: (row["cycles_estimated"] or 0) + row["cycles"] for row in stored["layers"]}
        rest = stored["latency"]["cycles"] - sum(costs.values())
        costs |= {"what measuring layers added" if rest < 0 else "between layers": rest}
        assert {row[0]: number(row[3]) for row in rows} == {name: cost for name, cost in costs.items() if cost}

        held = [v for v in stored["graph"]["values"].values() if v["memory"] == "arena" and not v["view_of"]]
        areas = len(held) + len(stored["plan"]["scratch"])
        assert shown.locator("svg.memory g.held").count() == areas == len(table(shown, "#memory details table"))
        assert f"{stored['plan']['arena']} B" in text_of(shown, "#memory figcaption")

        macs = [layer for layer in stored["layers"] if layer["macs"]]
        assert shown.locator("svg.roofline g.dot").count() == len(macs)

        whole = sum(symbol["bytes"] for symbol in stored["flash"]["symbols"])
        sizes = shown.locator("#flash tbody td:nth-child(4):not(:has(strong))").all_text_contents()
        assert sum(map(number, sizes)) <= whole
        assert f"{whole / 1024:.1f} KiB" in text_of(shown, "#flash")

        tracks = [e["args"]["name"] for e in stored["trace"]["traceEvents"] if e["name"] == "thread_name"]
        assert [row[0] for row in table(shown, "#timeline table")] == tracks
        assert number(table(shown, "#timeline table")[1][1]) == stored["accelerator_cycles"]

        saved = [number(row[5]) for row in table(shown, "[data-refusals]")]
        refused = [
            d for d in stored["decisions"] if d["rejections"] and d["engine"] == "cpu" and "reshape" not in d["op"]
        ]
        assert saved == sorted(saved, reverse=True)
        assert len(saved) == len(refused)
        assert refused[0]["rejections"][0]["reason"] in text_of(shown, "#offload")
        assert f"No bit differs in {stored['verify']['compared']}" in text_of(shown, "#precision")


def test_a_chosen_layer_tells_all_of_itself(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    first = stored["layers"][0]
    with opened(browser, tmp_path, [stored]) as shown:
        assert shown.locator("[data-picture=full] g[data-open]").count() == len(stored["graph"]["layers"])
        shown.locator('g[data-open="layer-0"]').click()
        told = text_of(shown, "[data-panel]")
        for words in (first["name"], first["reason"], first["tensor"], f"{first['macs']:,}", "0.03125"):
            assert words in told
        code = shown.locator("[data-panel] pre").text_content()
        assert code == stored["sources"][first["name"]]
        layer = next(i for i, row in enumerate(stored["layers"]) if row["name"] == "softmax_8")
        shown.locator(f'g[data-open="layer-{layer}"]').click()
        spots, rows = stored["hot"]["softmax_8"], shown.locator("[data-panel] .hot > li")
        assert rows.count() == len(spots)
        assert spots[0]["cycles"] <= stored["layers"][layer]["cycles_estimated"]
        assert f"{100 * spots[0]['share']:.0f} %" in (rows.first.text_content() or "")
        assert f"{spots[0]['cycles']:,} cycles" in (rows.first.text_content() or "")
        loop = next(i for i, spot in enumerate(spots) if spot["loop"])
        assert rows.nth(loop).locator("pre").text_content() == "\n".join(spots[loop]["listing"])
        shown.locator('#offload a[data-open="layer-1"]').first.click()
        assert "each channel sees itself alone, and 1 of" in text_of(shown, "[data-panel]")


def test_the_graph_without_a_mouse(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    with opened(browser, tmp_path, [stored]) as shown:
        shown.locator("[data-search]").focus()
        for _ in range(10):
            shown.keyboard.press("Tab")
            if shown.evaluate("document.activeElement.dataset.open") == "layer-0":
                break
        shown.keyboard.press("ArrowDown")
        shown.keyboard.press("Enter")
        assert stored["layers"][1]["name"] in text_of(shown, "[data-panel] h3")
        assert shown.locator('g[data-open][tabindex="0"]').count() == 1, "one stop for Tab, not one a layer"
        assert "conv_2d_0" in (shown.locator('g[data-open="layer-0"]').get_attribute("aria-label") or "")


def test_search_zoom_and_order(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    with opened(browser, tmp_path, [stored]) as shown:
        shown.locator("[data-search]").fill("depthwise_conv_2d_3")
        assert shown.locator("g.node.found").first.get_attribute("data-open") in ("layer-3", "layer-2", "layer-4")
        shown.locator("[data-search]").press("Enter")
        shown.locator("[data-search]").fill("")
        assert shown.locator("g.node.found").count() == 0
        svg = shown.locator("[data-picture=full] svg")
        before = float(svg.get_attribute("width") or 0)
        shown.get_by_label("Zoom in", exact=True).click()
        assert float(svg.get_attribute("width") or 0) == pytest.approx(1.25 * before)
        shown.locator("[data-sort]").select_option("cost")
        costs = [number(row[3]) for row in table(shown, "[data-bars]")]
        assert costs == sorted(costs, reverse=True)
        shown.locator("[data-sort]").select_option("number")
        assert table(shown, "[data-bars]")[0][0] == stored["layers"][0]["name"]
        shown.locator("svg.memory g.held").first.hover()
        assert " at " in text_of(shown, "#memory figcaption")


def test_the_trace_can_be_saved(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    with opened(browser, tmp_path, [stored]) as shown:
        shown.evaluate(
            "() => { URL.createObjectURL = blob => { blob.text().then(t => window.saved = t); return '#'; } }"
        )
        shown.locator("[data-save]").click()
        shown.wait_for_function("window.saved")
        assert json.loads(shown.evaluate("window.saved")) == stored["trace"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_widths_and_themes(browser: Browser, stored: dict[str, Any], tmp_path: Path, width: int, theme: str) -> None:
    long: dict[str, Any] = json.loads(json.dumps(stored).replace('"conv_2d_2"', f'"{"conv_2d_2_" * 15}"'))
    with opened(browser, tmp_path, [long], width, theme) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        shown.locator('g[data-open="layer-0"]').click()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (theme == "light")
        for name in SECTIONS[:-1]:
            assert shown.locator(f"#{name}").bounding_box() is not None


def test_names_that_are_markup_are_text(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    hostile: dict[str, Any] = json.loads(
        json.dumps(stored).replace('"conv_2d_0"', json.dumps(HOSTILE)).replace('"motion"', json.dumps(HOSTILE))
    )
    hostile |= {"model": HOSTILE, "warnings": [HOSTILE]}
    hostile["source"]["command"] = HOSTILE
    hostile["sources"] = dict.fromkeys(hostile["sources"], HOSTILE)
    hostile["decisions"][1]["rejections"][0]["reason"] = HOSTILE
    for runs in ([hostile], [hostile, stored]):
        with opened(browser, tmp_path, runs) as shown:
            assert shown.locator("h1").text_content() is not None
            assert HOSTILE in (shown.locator("h1").text_content() or "")
            assert shown.locator("script").count() == 2
            assert shown.locator("img").count() == 0
            if len(runs) == 1:
                shown.locator('g[data-open="layer-0"]').click()
                assert HOSTILE in (shown.locator("[data-panel]").text_content() or "")
            carried = json.loads(shown.locator("#runs").text_content() or "")
            assert carried[0]["model"] == HOSTILE


def long_run(stored: dict[str, Any], blocks: int) -> dict[str, Any]:
    """The same model's layers again and again, one behind the other."""
    run = copy.deepcopy(stored)
    layers, rows = run["graph"]["layers"][:5], run["layers"][:5]
    run["graph"]["layers"], run["layers"], run["sources"] = [], [], {}
    last = layers[0]["inputs"][0]
    for block in range(blocks):
        for layer, row in zip(layers, rows, strict=True):
            name, value = f"{layer['name']}_{block}", f"{layer['outputs'][0]}_{block}"
            run["graph"]["values"][value] = run["graph"]["values"][layer["outputs"][0]]
            run["graph"]["layers"].append(layer | {"name": name, "inputs": [last], "outputs": [value]})
            run["layers"].append(row | {"name": name})
            run["sources"][name] = stored["sources"][layer["name"]]
            last = value
    return run


def time_until_ready(shown: Page) -> float:
    """Milliseconds, the least of a few: others may use this computer."""
    times: list[float] = []
    for _ in range(4):
        times.append(shown.evaluate("performance.getEntriesByType('navigation')[0].domComplete"))
        shown.reload()
    return min(times)


def test_a_long_network_is_folded_and_quick(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    run = long_run(stored, 40)
    with opened(browser, tmp_path, [run]) as shown:
        ready = time_until_ready(shown)
        assert ready < 1000, f"it took {ready:.0f} ms until the page could be used"
        nodes = shown.locator("[data-picture=folded] g[data-open]")
        assert nodes.count() == 1
        nodes.first.click()
        assert shown.locator("[data-panel] ol").count() == 40
        shown.locator("[data-unfold]").click()
        assert shown.locator("[data-picture=full]").is_visible()
        assert shown.locator("[data-picture=full] g[data-open]").count() == 200
        shown.locator("[data-fold]").click()
        assert shown.locator("[data-picture=folded]").is_visible()
        shown.locator("[data-fold]").click()
        shown.locator('#times a[data-open="layer-150"]').click()
        assert run["layers"][150]["name"] in text_of(shown, "[data-panel] h3")
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


def test_runs_beside_each_other(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    other = copy.deepcopy(stored)
    other |= {"instructions": 2 * stored["instructions"], "board": "another"}
    other["layers"][2] |= {"cycles_estimated": 100_000, "engine": "cpu"}
    with opened(browser, tmp_path, [stored, other]) as shown:
        assert shown.locator("main > section").first.get_attribute("id") == "compare"
        figures = table(shown, "[data-figures]")
        assert [row[0] for row in figures] == ["CPU instructions"]
        assert "+100.0 %" in figures[0][2]
        assert ["Board", "mps2_an386", "another"] in table(shown, "#compare table")
        layers = table(shown, "[data-layers]")
        assert [row[0] for row in layers] == [stored["layers"][2]["name"]]
        assert layers[0][1:4:2] == ["matrix8", "cpu"]
        assert "alike" in text_of(shown, "#compare details summary")


def test_differences_have_a_histogram(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    counts = {"-1": 3, "0": 90, "2": 7}
    stored["verify"] |= {"bit_exact": False, "within_tolerance": True, "largest_difference": 2, "tolerance": 2}
    stored["verify"]["differences"] = [{"tensor": "conv_2d_0", "what": "layer of matrix8", "counts": counts}]
    with opened(browser, tmp_path, [stored]) as shown:
        assert table(shown, "#precision .histogram") == [["-1", "", "3"], ["0", "", "90"], ["+2", "", "7"]]
        assert "90 % of 100 elements equal" in text_of(shown, "#precision")
        assert "Within what the accelerators state" in text_of(shown, "#summary")


def test_print(browser: Browser, stored: dict[str, Any], tmp_path: Path) -> None:
    with opened(browser, tmp_path, [stored]) as shown:
        shown.emulate_media(media="print")
        assert not shown.locator("nav").is_visible()
        assert not shown.locator(".controls").first.is_visible()
        assert shown.locator("svg.memory").is_visible()
        assert len(shown.pdf()) > 20_000
