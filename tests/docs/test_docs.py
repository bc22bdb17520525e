"""README and docs: every command and code block runs, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.run.docblocks import ROOT, Block, blocks, commands_of, matches, run_commands, run_page

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """``reference/`` stands before a page of the reference: some have the names of others."""
    return page.relative_to(DOCS if DOCS in page.parents else ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
LONG = {"boards.md", "debugging.md", "reference/npu.md"}
SLOW = {
    *("index.md", "models.md", "generated-code.md", "export.md", "memory.md", "kernels.md", "cli.md"),
    *("bring-your-accelerator.md", "rtl.md", "testing.md", "session.md", "report.md", "sweep.md"),
    *("from-microtvm.md", "reference/api.md", "reference/chip.md"),
}


def pace(page: Path) -> Any:
    """How long its blocks take."""
    return pytest.mark.long if name_of(page) in LONG else pytest.mark.slow if name_of(page) in SLOW else ()


each_runnable_page = pytest.mark.parametrize("page", [pytest.param(p, marks=pace(p), id=name_of(p)) for p in PAGES])
REPOSITORY = "https://github.com/uaccel/uaccel/blob/main/"
RUNNABLE = {"sh", "console", "python", "c", "toml", "json", "verilog"}
READING = {"", "text"}


@each_runnable_page
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    left_out = run_page(page, tmp_path)
    if left_out:
        pytest.skip(f"all but some ran: {'; '.join(left_out)}")


@each_page
def test_every_block_says_what_it_is(page: Path) -> None:
    unknown = [f"line {b.line}: {b.language}" for b in blocks(page) if b.language not in RUNNABLE | READING]
    assert unknown == []
    unnamed = [f"line {b.line}" for b in blocks(page) if b.language in ("c", "toml", "json", "verilog") and not b.file]
    assert unnamed == [], "name the file, so that a later block can use it"


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not leads_somewhere(target, page)] == []


def leads_somewhere(target: str, page: Path) -> bool:
    """Also where the pages of ``docs/`` lie alone, as in an installation: what is not among them has an address."""
    if target.startswith(REPOSITORY):
        return (ROOT / target.removeprefix(REPOSITORY)).exists()
    place = (page.parent / target).resolve()
    return "://" in target or (place.exists() and (DOCS in place.parents or DOCS not in page.parents))


@pytest.mark.parametrize(
    ("target", "leads"),
    [
        ("cli.md", True),
        ("none.md", False),
        ("../README.md", False),
        ("reference/api.md", True),
        (f"{REPOSITORY}README.md", True),
        (f"{REPOSITORY}none.md", False),
        ("https://example.org", True),
    ],
)
def test_where_a_link_leads(target: str, leads: bool) -> None:
    assert leads_somewhere(target, ROOT / "docs" / "boards.md") is leads


def test_the_readme_shows_the_main_commands() -> None:
    page = [block for block in blocks(ROOT / "README.md") if block.file == ""]
    shown = "\n".join(command for block in page for command, _ in commands_of(block))
    for command in ("make setup", "make demo", "uaccel compile", "uaccel run", "uaccel doctor"):
        assert command in shown


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("...", "anything", True),
        ("a ... z", "a b z", True),
        ("a\nb", "a\nc", False),
        ("a", "a\nb", False),
    ],
)
def test_expected_output_is_compared(expected: str, output: str, same: bool) -> None:
    assert matches(expected, output) is same


def test_a_block_whose_program_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```sh needs=no-such-program\nfalse\n```\n```sh needs=bash\ntrue\n```\n")
    assert [block.lacks for block in blocks(tmp_path / "page.md")] == ["line 1: no-such-program is not installed", ""]


def test_a_failing_block_fails(tmp_path: Path) -> None:
    block = Block(3, "console", "", "$ echo one\ntwo\n")
    assert commands_of(block) == [("echo one", "two\n")]
    with pytest.raises(AssertionError, match="echo one"):
        run_commands(block, tmp_path, "page:3")
