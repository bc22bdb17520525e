"""Model files to Relax."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uaccel.errors import ModelError
from uaccel.model import ImportedModel, Shape

FORMATS = (".tflite", ".onnx", ".pt2")


def import_model(path: Path, input_shapes: Mapping[str, Shape] | None = None) -> ImportedModel:
    """Read a model file; the format follows from its suffix. ``input_shapes`` fixes what the file leaves open."""
    if not path.exists():
        raise ModelError(f"no model file {path}; check the path")
    if path.is_dir():
        raise ModelError(f"{path} is a directory, wanted a model file ({', '.join(FORMATS)})")
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ModelError(f"{path}: suffix {path.suffix or 'missing'!r} is not known; wanted {', '.join(FORMATS)}")
    if suffix == ".tflite":
        from uaccel.frontend.tflite.importer import import_tflite

        return import_tflite(path, input_shapes)
    return _with_integers(path, suffix, input_shapes or {})


def _with_integers(path: Path, suffix: str, input_shapes: Mapping[str, Shape]) -> ImportedModel:
    """A format that says float operators between quantisation steps."""
    from uaccel.islands import integers

    if suffix == ".onnx":
        from uaccel.frontend.onnx.importer import import_onnx

        return integers(import_onnx(path, input_shapes))
    from uaccel.frontend.torch.isolated import import_isolated

    return integers(import_isolated(path, input_shapes))
