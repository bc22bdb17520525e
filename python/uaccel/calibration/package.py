"""onnx and ONNX Runtime, which are an extra, and whose complaints become one line."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uaccel.basics.quiet import quiet
from uaccel.errors import ModelError


def package(name: str) -> Any:
    """A module of theirs, imported when it is needed."""
    try:
        with quiet():
            return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"quantising takes onnx and onnxruntime, and importing {name} fails ({error}); "
            "install them: pip install 'uaccel[quantize]'"
        ) from error


@contextmanager
def complaints(what: str, advice: str) -> Iterator[None]:
    """In silence; whatever they raise as a ModelError: ``what`` with their reason, and what to do."""
    try:
        with quiet():
            yield
    except ModelError:
        raise
    except Exception as error:  # protobuf, ONNX's checker and ONNX Runtime raise dozens of unrelated types
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ModelError(f"{what}: {lines[0].rstrip('.;')}; {advice}") from error
