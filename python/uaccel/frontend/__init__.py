"""Model files to Relax."""

from __future__ import annotations

from pathlib import Path

from uaccel.errors import ModelError
from uaccel.model import ImportedModel

FORMATS = (".tflite", ".pt2")


def import_model(path: Path) -> ImportedModel:
    """Read a model file; the format follows from its suffix."""
    if not path.exists():
        raise ModelError(f"no model file {path}; check the path")
    if path.is_dir():
        raise ModelError(f"{path} is a directory, wanted a model file ({', '.join(FORMATS)})")
    if path.suffix.lower() not in FORMATS:
        raise ModelError(f"{path}: suffix {path.suffix or 'missing'!r} is not known; wanted {', '.join(FORMATS)}")
    if path.suffix.lower() == ".pt2":
        from uaccel.frontend.torch.importer import import_torch

        return import_torch(path)
    from uaccel.frontend.tflite.importer import import_tflite

    return import_tflite(path)
