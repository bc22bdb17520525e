"""What the importer says of a model that it refuses."""

from __future__ import annotations

import pytest

from support.device.hostlib import compile_bytes
from support.models.many import Row, many
from uaccel.errors import ModelError


def refusal(row: Row) -> str:
    """The reason alone, for a model of one operator."""
    with pytest.raises(ModelError) as caught:
        compile_bytes(many({"row": row}))
    opening = f'operator 0 {row.operator} ("row: output 0"): '
    found, _, reason = str(caught.value).partition("1 unsupported: ")[2].partition(opening)
    assert found == "", str(caught.value)
    return reason
