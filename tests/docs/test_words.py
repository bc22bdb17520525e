"""Words are few and plain: scripts/check_pages.py holds pages to that, scripts/check_words.py the package's own."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from support.run.scripts import script_of

LONG = " ".join(["word"] * 26) + "."


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("scripts/check_pages.py")


def test_the_pages_are_as_they_should_be(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert (script.main([]), capsys.readouterr().out) == (0, "")
    assert {"README.md", "index.md", "models.md"} <= {path.name for path in script.read()}


def test_about_twenty_pages_are_in_the_reading_path(script: ModuleType) -> None:
    assert 18 <= len(script.read()) <= 23


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LONG, "1: a sentence of 26 words"),
        (f"# Title\n\nShort one. {LONG}", "3: a sentence of 26 words"),
        (f"- item\n- {LONG[:-1]}\n", "2: a sentence of 26 words"),
        ("A sentence. Of these two fail.", "begins with a word that hangs"),
        ("*By what?*", None),
        ("- **Those that fail** end.", "begins with a word that hangs"),
        (f"| {LONG} |\n", None),
        (f"```text\n{LONG}\n```\n", None),
        (f"<!-- {LONG} -->", None),
        ("Say `" + "word " * 30 + "` here.", None),
        (f"{LONG[:-1]}\n\n{LONG}", "3: a sentence of 26 words"),
        ("The workspace is small.", 'wanted "arena"'),
        ("Set `WORKSPACE`.", None),
    ],
)
def test_a_sentence_is_judged(text: str, told: str | None, script: ModuleType) -> None:
    found = list(script.problems(text))
    assert found == [] if told is None else any(told in line for line in found)


@pytest.mark.parametrize(("passive", "active", "told"), [(2, 18, False), (3, 17, True), (9, 9, False)])
def test_few_sentences_are_passive(passive: int, active: int, told: bool, script: ModuleType) -> None:
    text = " ".join(["Bytes are always sent."] * passive + ["It sends bytes."] * active)
    assert bool(list(script.passive(text))) is told


def test_words_are_those_of_prose(script: ModuleType) -> None:
    text = "# A title\n\nTwo [linked words](page.md) and `a b c`.\n\n| no | row |\n|---|---|\n\n```sh\nls -l\n```\n"
    assert script.words(text) == 8


@pytest.mark.parametrize(("columns", "wide"), [(7, False), (8, True)])
def test_a_table_has_seven_columns_at_most(columns: int, wide: bool, script: ModuleType) -> None:
    row, rule = "| a " * columns + "|", "|---" * columns + "|"
    assert bool(list(script.wide_tables(f"text\n\n{row}\n{rule}\n{row}\n"))) is wide


def test_too_many_words_are_told(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("One two three.\n")
    monkeypatch.setattr(script, "MOST_WORDS", 2)
    assert script.main([str(page)]) == 1
    assert "1 pages have 3 words of prose, wanted at most 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ('"""Says so."""\n\nX = 1  # Of no sentence.\n', None),
        ('"""Of that."""\n', 'begins with "Of"'),
        ('"""Says so. Of two the first counts."""\n', "1: a sentence begins with a word that hangs"),
        ('"""Says so."""\n\n# It does.\n# By what it knows.\n', "3: a sentence begins with a word that hangs"),
        (f'"""Says so.\n\n{"word " * 41}end.\n"""\n', "3: a sentence of 42 words"),
        (f'"""Says so.\n\nAs in::\n\n    {"word " * 41}end.\n"""\n', None),
        ('"""Says so."""\n\nX = 1\n"""What it is."""\n', "4: a string below a constant"),
        ("X = 1\n", "1: the module has no docstring"),
        ('"""Says so."""\n\nraise E(f"{x} is no y; give a z")\n', None),
        ('"""Says so."""\n\nraise E(f"{x} fails. Of {y} two are too many")\n', "3: a sentence begins with a word that"),
        (f'"""Says so."""\n\nraise E("{"word " * 41}")\n', "3: a sentence of 41 words"),
    ],
)
def test_docstrings_comments_and_errors_are_judged(code: str, told: str | None) -> None:
    found = list(script_of("scripts/check_words.py").problems(code))
    assert found == [] if told is None else any(told in line for line in found), found
