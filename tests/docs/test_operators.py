"""docs/operators.md lists exactly the operators that have a converter of ours."""

from __future__ import annotations

import re

from support.run.docblocks import ROOT
from uaccel.frontend.tflite.converter import CONVERTERS
from uaccel.frontend.tflite.state import VARIABLE_OPERATORS


def test_the_table_lists_every_converter_and_no_other() -> None:
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    listed = re.findall(r"`([A-Z0-9_]+|Signal\w+|TFLite_\w+)`", table)
    known = {name.removeprefix("CUSTOM:") for name in CONVERTERS.names}
    assert sorted(listed) == sorted({*known, *VARIABLE_OPERATORS})
