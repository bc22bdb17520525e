"""What a package index shows of uaccel: its addresses, and the README with links that lead somewhere from there."""

from __future__ import annotations

import email.parser
import zipfile
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from support.run.fresh import ROOT
from support.run.scripts import script_of

HOME = "https://github.com/uaccel/uaccel"


class Targets(HTMLParser):
    """Where a page's links and pictures lead, as (attribute, target)."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(name, value or "") for name, value in attrs if name in ("href", "src")]


def in_repository(address: str) -> str | None:
    """The path that an address below ours leads to; None for another's."""
    if not address.startswith(f"{HOME}/"):
        return None
    kind, _, rest = address.removeprefix(f"{HOME}/").partition("/main/")
    return rest.partition("#")[0] if kind in ("blob", "raw", "tree") else ""


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return email.parser.Parser().parsestr(archive.read(name).decode())


def test_it_has_addresses_below_one_home(metadata: Message) -> None:
    addresses = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert set(addresses) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert addresses["Homepage"] == HOME
    for name in ("Documentation", "Changelog"):
        path = in_repository(addresses[name])
        assert path, addresses[name]
        assert (ROOT / path).exists()


def test_every_link_and_picture_of_the_description_leads_somewhere(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    targets = Targets(str(metadata.get_payload())).found
    ours = [path for _, target in targets if (path := in_repository(target)) is not None]
    assert len(ours) >= 10
    assert [target for _, target in targets if not target.startswith("https://")] == []
    assert [path for path in ours if not (ROOT / path).is_file()] == []


def test_the_description_is_the_readme_but_for_links(metadata: Message) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = str(metadata.get_payload())
    assert shown.replace(f"{HOME}/blob/main/", "").replace(f"{HOME}/raw/main/", "").strip() == text.strip()


def hook() -> Any:
    return script_of("scripts/hatch_build.py")


@pytest.mark.parametrize(
    ("markdown", "wanted"),
    [
        ("[a](docs/cli.md)", [("href", "/blob/main/docs/cli.md")]),
        ("[a](./docs/cli.md#json 'title')", [("href", "/blob/main/docs/cli.md#json")]),
        ("[`a`](#numbers)", [("href", "/blob/main/README.md#numbers")]),
        ("![a](docs/a.png)", [("src", "/raw/main/docs/a.png")]),
        ("[![a](a.svg)](b.md)", [("href", "/blob/main/b.md"), ("src", "/raw/main/a.svg")]),
        ("[a]\n\n[a]: docs/cli.md", [("href", "/blob/main/docs/cli.md")]),
        ('<img width="9" src="docs/a.svg"/>', [("src", "/raw/main/docs/a.svg")]),
        ("<a href='docs/cli.md'>a</a>", [("href", "/blob/main/docs/cli.md")]),
        ("[a](https://x.org/a.md)", [("href", "https://x.org/a.md")]),
        ("[a](mailto:a@x.org)", [("href", "mailto:a@x.org")]),
        ("`[a](b.md)`\n\n```c\nx[a](b);\n```\n", []),
    ],
)
def test_links_are_made_absolute(markdown: str, wanted: list[tuple[str, str]]) -> None:
    found = Targets(hook().with_absolute_links(markdown, HOME)).found
    assert found == [(name, f"{HOME}{target}" if target.startswith("/") else target) for name, target in wanted]


def test_code_stays_as_it_is() -> None:
    text = "`[a](b.md)`\n\n```c\nx[a](b);\n```\n"
    assert hook().with_absolute_links(text, HOME) == text
