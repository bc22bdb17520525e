"""examples/: each README fits a screen, and what it says runs, in a copy of its folder."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.test_docs import READING, RUNNABLE
from support.run.docblocks import EXAMPLES, blocks, run_page

PAGES = sorted(EXAMPLES.glob("*/README.md"))
INDEX = EXAMPLES / "README.md"
NOTEBOOK = EXAMPLES / "notebook" / "first-look.ipynb"
QUICK = {"your-application"}
LINES = 60


def name_of(page: Path) -> str:
    return page.parent.name


def pace(page: Path) -> Any:
    return () if name_of(page) in QUICK else pytest.mark.slow


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.mark.parametrize("page", [pytest.param(page, marks=pace(page), id=name_of(page)) for page in PAGES])
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    left_out = run_page(page, tmp_path)
    if left_out:
        pytest.skip(f"all but some ran: {'; '.join(left_out)}")


@each_page
def test_it_begins_with_the_readers_question_and_fits_a_screen(page: Path) -> None:
    title, blank, question, *_ = lines = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert blank == ""
    assert question.startswith("*")
    assert "?" in question
    assert len(lines) <= LINES
    assert [f"line {block.line}" for block in blocks(page) if block.language not in RUNNABLE | READING] == []


def test_the_table_names_each() -> None:
    assert PAGES
    text = INDEX.read_text(encoding="utf-8")
    assert [page for page in PAGES if f"({page.relative_to(EXAMPLES)})" not in text] == []


@pytest.mark.parametrize("page", [INDEX, *PAGES], ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def shown_by(cell: str, names: dict[str, Any]) -> str:
    """What a notebook shows below a cell: its last expression."""
    *statements, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)


def unmeasured(shown: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"[\d.e-]+ seconds, [\d,]+ bytes", "", shown)


@pytest.mark.slow
def test_the_notebook_shows_what_it_gives() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    given = [shown_by("".join(cell["source"]), names) for cell in cells]
    kept = [next(iter(output["data"].values())) for cell in cells for output in cell["outputs"]]
    assert list(map(unmeasured, kept)) == list(map(unmeasured, given))
    on_board, offloaded, verified, labels = given
    assert "(arm_dsp)" in on_board
    assert ">matrix8</td>" in offloaded
    assert "verified: bit_exact True" in verified
    assert labels == "['still', 'tap', 'swipe', 'shake', 'circle', 'lift']"
