"""Models and pages that come with uaccel: a message names only what its reader can open."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import uaccel
from uaccel.accelerator.discovery import starter_files
from uaccel.board import load_board
from uaccel.board.chips import starter_text
from uaccel.errors import UaccelError
from uaccel.util import files

PACKAGE = Path(uaccel.__file__).parent


def sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that is no documentation."""
    lone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            yield node.lineno, node.value


def pages_named(source: str) -> list[tuple[int, str]]:
    """Words of literals that look like pages."""
    found = re.compile(r"[\w./-]+\.md\b")
    return [(line, word) for line, text in sentences(ast.parse(source)) for word in found.findall(text)]


def test_models_come_along() -> None:
    assert {"gesture", "residual", "branches", "int16", "mixed", "stream"} == set(uaccel.models())
    assert all(path.is_file() and path.stem == name for name, path in uaccel.models().items())


def test_a_page_is_named_by_its_file_alone() -> None:
    """So that ``page`` makes a path of it which its reader has."""
    assert pages_named("f\"see docs/boards.md, {page('cli.md')}\"") == [(1, "docs/boards.md"), (1, "cli.md")]
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for line, word in pages_named(source) if ".md" in source else ():
            assert "/" not in word, f"{path}:{line}: say page({Path(word).name!r})"
            assert files.page(word).is_file() or word == "README.md", f"{path}:{line}: there is no page {word}"


def test_what_new_writes_names_pages_that_are_there() -> None:
    board = starter_text(load_board("mps2_an386"), "mine", None)
    accelerator = "".join(
        content.decode() for path, content in starter_files("mine").items() if path.suffix != ".tflite"
    )
    assert set(re.findall(r"[\w./-]+/[\w-]+\.md\b", board)) == {str(files.page("boards.md"))}
    addresses = re.findall(r"https://github.com/uaccel/uaccel/blob/main/docs/([\w/-]+\.md)", accelerator)
    assert "bring-your-accelerator.md" in addresses
    assert all(files.page(name).is_file() for name in ("boards.md", *addresses))


def test_a_folder_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_INSTALLED", tmp_path)
    with pytest.raises(UaccelError) as caught:
        uaccel.models()
    assert str(caught.value) == (
        f"this installation of uaccel lacks its folder 'models' (looked at {tmp_path}/models): reinstall uaccel"
    )
