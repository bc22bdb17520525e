"""docs/architecture.md names files that there are, each stage in its place, and its picture is drawn of its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.run.scripts import script_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "uaccel"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MADE_UP = {"ops/NAME.py", "metadata.json"}
FILES = sorted(set(re.findall(r"`([\w./]+(?:\.(?:py|c|h|toml|json)|/))`", PAGE)) - MADE_UP)


@pytest.mark.parametrize("name", FILES)
def test_what_it_names_is_there(name: str) -> None:
    homes = [PACKAGE, ROOT, ROOT / "firmware"]
    found = any((home / name).exists() for home in homes)
    assert found or ("/" not in name and any(any(home.rglob(name)) for home in (PACKAGE, ROOT / "firmware"))), name


def test_the_page_names_enough_to_be_worth_checking() -> None:
    assert len(FILES) > 50


def test_every_package_is_on_it() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert packages - {name.partition("/")[0] for name in FILES} <= set()


def test_pictures_are_drawn_of_their_texts() -> None:
    script = script_of("scripts/box_pictures.py")
    for name in script.TEXTS:
        text = (script.DOCS / name).read_text(encoding="utf-8")
        drawn = (script.DOCS / name).with_suffix(".svg").read_text(encoding="utf-8")
        assert drawn == script.picture(text), "draw it anew: python scripts/box_pictures.py"
    ports = {path.name for path in (ROOT / "firmware" / "ports").iterdir()}
    assert set(re.findall(r"\b\w+_\w+(?=:)", (script.DOCS / "devices.txt").read_text())) <= ports
    with pytest.raises(KeyError, match="nowhere"):
        script.picture("a: x | b: y\na -> nowhere")
