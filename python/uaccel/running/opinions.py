"""What others than the compiler say of a run: the program's real meaning, and the model's own runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uaccel.model import ImportedModel
from uaccel.running.onnx_runtime import Samples
from uaccel.running.real_meaning import real_opinion
from uaccel.running.second_opinion import second_opinion


def opinions(model: ImportedModel, path: Path, samples: Samples, outputs: Samples) -> dict[str, Any]:
    """For a report, by who has one."""
    found = {"real_meaning": real_opinion(model, samples, outputs)}
    found["runtime"] = second_opinion(model, path, samples, outputs)
    return {who: said.to_json() for who, said in found.items() if said is not None}
