"""docs/reference/zoo.md shows the list of known models."""

from __future__ import annotations

from pathlib import Path

from support.run.scripts import script_of
from uaccel.zoo.known import known_models


def test_the_page_shows_the_list() -> None:
    script = script_of("scripts/models_page.py")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "write it anew: python scripts/models_page.py"


def test_a_refusal_has_the_kind_that_its_words_say() -> None:
    script = script_of("benchmarks/zoo.py")
    refused = [model.refused for model in known_models() if model.refused is not None]
    assert [script.refusal(one["error"], Path("none")) for one in refused] == refused
    assert "other" not in {one["kind"] for one in refused}
