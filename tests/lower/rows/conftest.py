"""What the tests of rows share."""

from __future__ import annotations

import pytest

from support.run.command import Call, call_in


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """A command in this process."""
    return call_in(capfd)
