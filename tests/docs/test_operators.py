"""docs/models.md lists operators that have a converter, each once; docs/reference/operators.md has ours."""

from __future__ import annotations

import re

from support.run.docblocks import ROOT
from support.run.scripts import script_of
from uaccel.frontend.tflite.converter import CONVERTERS
from uaccel.frontend.tflite.state import VARIABLE_OPERATORS


def test_the_table_lists_operators_with_a_converter() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    text = page.partition("### Operators\n")[2].partition("\n### ")[0]
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    listed = re.findall(r"`([A-Z0-9_]+|Signal\w+|TFLite_\w+)`", table)
    known = {name.removeprefix("CUSTOM:") for name in CONVERTERS.names}
    assert (set(listed) - {*known, *VARIABLE_OPERATORS}, len(listed)) == (set(), len(set(listed)))


def test_the_page_of_our_operators_is_as_its_script_writes_it() -> None:
    script = script_of("scripts/operators_page.py")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "write it anew: python scripts/operators_page.py"
