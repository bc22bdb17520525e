"""The documentation's site: it builds without a warning, every page is in its navigation, every block has its title."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from support.run.browser import browser
from support.run.docblocks import ROOT
from support.run.scripts import script_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser"]


def script(name: str) -> ModuleType:
    return script_of(f"scripts/{name}.py")


def build(configuration: Path, target: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(configuration), "--site-dir", str(target)]
    return subprocess.run(
        command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", target)
    assert done.returncode == 0, done.stderr
    return target


def test_it_builds(site: Path) -> None:
    docs = ROOT / "docs"
    made = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")} - {"404.md"}
    moved = script("site_hooks").MOVED
    assert made == {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} | set(moved)
    for old, new in moved.items():
        text = (site / old).with_suffix(".html").read_text(encoding="utf-8")
        target, _, anchor = new.partition("#")
        assert f"url={target.removesuffix('.md')}.html" in text
        assert not anchor or f'id="{anchor}"' in (site / target).with_suffix(".html").read_text(encoding="utf-8")
    assert "app.c" in (site / "generated-code.html").read_text(encoding="utf-8")


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|link(?=[^>]*stylesheet))[^>]*(?:src|href)="(\w*:?//[^"]*)"', text)
        assert loaded == []
        assert 'data-md-component="source"' not in text, "that asks api.github.com"
        assert '"provider"' not in text, "that asks for versions.json"


WIDE = """() => [...document.querySelectorAll("article table")].filter(table => {
    const room = table.closest(".md-typeset__scrollwrap") ?? table.parentElement;
    const cells = [...table.querySelectorAll("td, th")];
    return room.scrollWidth > room.clientWidth + 1 || cells.some(cell => cell.scrollWidth > cell.clientWidth + 1);
}).map(table => table.querySelector("th").textContent)"""
"""The tables that scroll, or have a cell that does."""


@pytest.mark.slow
def test_tables_fit_and_search_works_from_disk_without_a_network(site: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1600, "height": 1000}, offline=True)
    shown, asked, wrong = context.new_page(), list[str](), list[str]()
    too_wide = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    wide = {}
    for page in sorted(site.rglob("*.html")):
        if page.relative_to(site).with_suffix(".md").as_posix() not in script("site_hooks").MOVED:
            shown.goto(page.as_uri())
            wide[page.relative_to(site).as_posix()] = shown.evaluate(WIDE)
            for width in (390, 1024, 1600):
                shown.set_viewport_size({"width": width, "height": 1000})
                if shown.evaluate("() => document.documentElement.scrollWidth > window.innerWidth"):
                    too_wide.append((page.name, width))
    assert {page: tables for page, tables in wide.items() if tables} == {}
    assert too_wide == []
    shown.goto((site / "index.html").as_uri())
    for words in ("arena", "quickstart"):
        shown.click("input.md-search__input", click_count=3)
        shown.keyboard.type(words)
        shown.wait_for_selector(f".md-search-result__item:has-text('{words}')")
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert wrong == []
    context.close()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[away](none.md)", "'none.md'"),
        ("[away](#nowhere)", "'#nowhere'"),
        ("[away](index.md#nowhere)", "'index.md#nowhere'"),
    ],
)
def test_a_broken_link_fails(text: str, warning: str, tmp_path: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{text}\n")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "mkdocs.yml").write_text(settings)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert warning in done.stderr


@pytest.mark.parametrize(
    ("fence", "made"),
    [("```c app.c", '```c title="app.c"'), ("```sh needs=gcc", "```sh"), ("```sh", "```sh"), ("```", "```")],
)
def test_a_block_has_its_files_name_as_title(fence: str, made: str) -> None:
    page = f"a\n\n{fence}\nint x;\n```\n"
    assert script("site_hooks").on_page_markdown(page) == f"a\n\n{made}\nint x;\n```\n"


def test_the_page_of_options_is_up_to_date() -> None:
    module = script("commands_page")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "write it anew: python scripts/commands_page.py"


@pytest.mark.slow
def test_the_picture_of_a_terminal_is_up_to_date() -> None:
    shutil.which("qemu-system-arm") or pytest.skip("qemu-system-arm is not installed")
    module = script("terminal")
    assert module.PICTURE.read_text(encoding="utf-8") == module.picture(), "draw it anew: python scripts/terminal.py"


def test_the_pictures_of_frontiers_are_drawn_of_what_is_stored() -> None:
    """And their lines step up where the next point needs less RAM."""
    module = script("frontier_plot")
    made = module.pictures()
    assert set(made) == {path.name for path in module.DOCS.glob("frontier-*.svg")}
    for name, text in made.items():
        assert (module.DOCS / name).read_text(encoding="utf-8") == text, "draw it anew: python scripts/frontier_plot.py"
        assert f"]({name})" in (module.DOCS / "memory.md").read_text(encoding="utf-8")
    text = module.picture("two", {"whole": [[2048, 1_000_000], [1024, 2_000_000]]})
    (line,) = re.findall(r'<path class="whole" d="M(\S+) (\S+)V(\S+)H(\S+)"/>', text)
    x, y, higher, left = map(float, line)
    assert (x > left, y > higher) == (True, True)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(0, 37.5, [0, 10, 20, 30, 40]), (10.14, 10.99, [10, 10.2, 10.4, 10.6, 10.8, 11]), (3, 3, [3, 3.1])],
)
def test_the_ticks_of_frontiers(low: float, high: float, found: list[float]) -> None:
    assert script("frontier_plot").ticks(low, high) == found
