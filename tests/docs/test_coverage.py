"""docs/reference/coverage.md is what scripts/coverage.py writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.run.scripts import script_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    for package in ("onnx", "torch"):
        pytest.importorskip(package, reason=f"the {package} package is not installed")
    module = script_of("scripts/coverage.py")
    text = (ROOT / "docs" / "reference" / "coverage.md").read_text(encoding="utf-8")
    assert text == module.page(), "run scripts/coverage.py"
