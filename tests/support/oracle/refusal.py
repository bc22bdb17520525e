"""What the importer says of a model that it refuses."""

from __future__ import annotations

import pytest

from support.device.hostlib import compile_bytes
from support.models.many import Row, many
from uaccel.errors import ModelError


def refused(model: Row | bytes) -> str:
    """The operator and the reason, for a file or a model of one operator."""
    with pytest.raises(ModelError) as caught:
        compile_bytes(model if isinstance(model, bytes) else many({"row": model}))
    return str(caught.value).partition("unsupported: ")[2]


def refusal(row: Row) -> str:
    """The reason alone, for a model of one operator."""
    said = refused(row)
    found, _, reason = said.partition(f'operator 0 {row.operator} ("row: output 0"): ')
    assert found == "", said
    return reason
