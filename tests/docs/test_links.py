"""Every link in the repository leads to a file and to a heading in it; every page that a source file names is there."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from support.run.docblocks import BLOCK, ROOT

REPOSITORY = "https://github.com/uaccel/uaccel/blob/main/"
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"docs/[\w./-]+?\.(?:md|svg|png|txt)\b(?:#[\w-]+)?")

MADE_UP = {"docs/NAME.md", "docs/frontier-MODEL.svg"}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of the headings of a page, as GitHub and the site make them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).replace("`", "") for head in heads)
    return frozenset(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in plain)


def leads(target: str, page: Path) -> bool:
    if target.startswith(REPOSITORY):
        target, page = target.removeprefix(REPOSITORY), ROOT / "README.md"
    if "://" in target or target.startswith("mailto:"):
        return True
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    return path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors(path))


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    assert [target for target in LINK.findall(text) if not leads(target, page)] == []


def test_pages_that_sources_name_are_there() -> None:
    """In messages, docstrings, comments of C and in settings; tests of links make some up."""
    wrong = []
    for path in tracked("*.py", "*.c", "*.h", "*.toml", "*.yml", "*.json", "*.txt", "*.md", "Makefile"):
        if path.name in ("test_links.py", "test_description.py"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for name in NAMED.findall(text) if "docs/" in text else ():
            if name not in MADE_UP and not leads(name, ROOT / "README.md"):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert wrong == []


@pytest.mark.parametrize(
    ("target", "good"),
    [
        ("docs/models.md", True),
        ("docs/models.md#onnx", True),
        ("docs/models.md#nowhere", False),
        ("docs/none.md", False),
        (f"{REPOSITORY}docs/cli.md#json", True),
        (f"{REPOSITORY}docs/onnx.md", False),
        ("#two-commands", True),
        ("#nowhere", False),
        ("https://example.org", True),
    ],
)
def test_where_a_link_leads(target: str, good: bool) -> None:
    assert leads(target, ROOT / "README.md") is good
