"""What ``uaccel quantize --json`` wrote of the model that a run is about."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_json
from uaccel.errors import InputError

QUANTIZED: Final = "quantized"
"""The key of a run's data that holds it."""
LARGEST: Final = 1 << 26
WANTED: Final = "wanted what 'uaccel quantize MODEL --json' writes"


def with_quantised(run: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The run, and how far each layer of its model is from the float one; InputError if that is of another model."""
    told, source = _read(path), run.get("source") or {}
    _require_same(path, told, source.get("sha256"), str(source.get("file", run["model"])))
    return {**run, QUANTIZED: {"samples": told["samples"], "layers": told["layers"]}}


def require_quantised(path: Path, model: Path) -> None:
    """The same before there is a run: InputError if it is of another model than this file."""
    told = _read(path)
    if model.is_file():
        _require_same(path, told, hashlib.sha256(model.read_bytes()).hexdigest(), str(model))


def _require_same(path: Path, told: Mapping[str, Any], digest: str | None, file: str) -> None:
    if told["sha256"] != digest:
        raise InputError(
            f"{path} is about {told['output']} as it was made, and not about {file}: "
            "give what 'uaccel quantize --json' wrote when it made that file"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has {path.stat().st_size} bytes, more than any such file; {WANTED}")
        told = parse_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; {WANTED}") from error
    except ValueError as error:
        raise InputError(f"{path} is no JSON, or only a part of it: {error}; {WANTED}") from error
    kinds: dict[str, type] = {"output": str, "sha256": str, "samples": int, "layers": list}
    if not isinstance(told, dict) or not all(isinstance(told.get(key), kind) for key, kind in kinds.items()):
        raise InputError(f"{path} tells of no quantised model; {WANTED}")
    if not all(_is_layer(row) for row in told["layers"]):
        raise InputError(f"{path} has layers without name, op, tensor, snr_db and max_difference; {WANTED}")
    return told


def _is_layer(row: Any) -> bool:
    words, numbers = ("name", "op", "tensor"), ("snr_db", "max_difference")
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in words):
        return False
    return all(key in row and isinstance(row[key], (int, float, type(None))) for key in numbers)
