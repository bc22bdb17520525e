"""The onnx package, which is an extra: whoever has no ONNX models needs none of it."""

from __future__ import annotations

import importlib
from typing import Any

from uaccel.errors import ModelError


def onnx_package(name: str = "onnx") -> Any:
    """A module of the package, imported when it is first needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"reading ONNX models takes the onnx package, and importing it fails ({error}); "
            "install it: pip install 'uaccel[onnx]'"
        ) from error


def refusals() -> tuple[type[Exception], ...]:
    """What ONNX's native code raises where a model is wrong."""
    checker, inference = onnx_package("onnx.checker"), onnx_package("onnx.shape_inference")
    return (checker.ValidationError, inference.InferenceError, RuntimeError, ValueError, TypeError)
