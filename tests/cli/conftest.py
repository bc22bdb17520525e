"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.windows import Window, conv_2d


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one convolution: int8 [1,4,3,2] to int8 [1,4,3,3]."""
    path = tmp_path_factory.mktemp("model") / "small.tflite"
    path.write_bytes(conv_2d(Window(input=(1, 4, 3, 2), channels=3)))
    return path
