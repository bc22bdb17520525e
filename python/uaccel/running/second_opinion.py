"""What a model's own runtime computes, where it is installed: a second opinion beside the exact meaning.

ONNX and PyTorch say quantised models in floats, and the order in which a runtime adds floats up decides some roundings.
So a run is compared in steps of the outputs' scales, and elements one step apart are counted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uaccel.model import ImportedModel
from uaccel.ops.base import operator_of
from uaccel.ops.quantize import Dequantize
from uaccel.running.onnx_runtime import Array, Samples, onnx_runtime
from uaccel.tvm_api import bindings_of, is_call, is_tuple

_ARENA = 1 << 20
"""More than any model has that is tried on it."""
Runtime = Callable[[ImportedModel, Path, Samples], "tuple[str, list[list[Array]]] | None"]


@dataclass(frozen=True)
class Opinion:
    """How elements compare; ``largest`` difference is of outputs that lie on no grid, relative to the largest value.
    ``no_number``: of so many samples nothing is compared, since what they mean is no number."""

    runtime: str
    elements: int
    equal: int
    one_step: int
    more: int
    largest: float | None
    no_number: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "runtime": self.runtime,
            "elements": self.elements,
            "equal": self.equal,
            "one_step": self.one_step,
            "more": self.more,
            "largest_relative_difference": self.largest,
            "no_number": self.no_number,
        }


def second_opinion(
    model: ImportedModel, path: Path, samples: Samples, outputs: Samples, runtime: Runtime | None = None
) -> Opinion | None:
    """The comparison; None where the format has no such runtime, or it is not installed."""
    runtime = runtime or RUNTIMES.get(model.source_format)
    found = runtime(model, path, samples) if runtime is not None else None
    if found is None:
        return None
    name, wanted = found
    return compared(model, name, outputs, wanted)


def compared(model: ImportedModel, name: str, outputs: Samples, wanted: Samples) -> Opinion:
    """Outputs with what ``name`` gives for the same samples."""
    scales = _scales(model)
    steps: list[Array] = [np.zeros(0)]
    floats: list[float] = []
    for given, expected in zip(outputs, wanted, strict=True):
        for whole, other, scale in zip(given, expected, scales, strict=True):
            value = whole[tuple(map(slice, other.shape))]  # behind the rows that depend on data there may be room
            if scale is None:
                floats.append(_relative(value, other))
            else:
                steps.append(np.rint(np.abs(value.astype(np.float64) - other.astype(np.float64)) / scale).reshape(-1))
    apart = np.concatenate(steps)
    equal, one_step = int((apart == 0).sum()), int((apart == 1).sum())
    return Opinion(name, apart.size, equal, one_step, apart.size - equal - one_step, max(floats, default=None))


def _relative(value: Array, other: Array) -> float:
    """The largest difference, as a share of the largest value."""
    wide, other = value.astype(np.float64), other.astype(np.float64)
    size = float(np.abs(other).max(initial=0.0))
    difference = float(np.abs(wide - other).max(initial=0.0))
    return difference / size if size else difference


def _scales(model: ImportedModel) -> list[float | None]:
    """For each output its step; None for one that lies on no grid."""
    _, bindings, result = bindings_of(model.module["main"])
    definitions = dict(bindings)
    results = list(result.fields) if is_tuple(result) else [result]
    return [
        _scale(definitions, var) if spec.info.dtype == "float32" else 1.0
        for spec, var in zip(model.signature.outputs, results, strict=True)
    ]


def _scale(definitions: dict[Any, Any], var: Any) -> float | None:
    call = definitions.get(var)
    operator = operator_of(call) if call is not None and is_call(call) else None
    return float(operator.attrs_of(call).scale) if isinstance(operator, Dequantize) else None


def _onnx(_model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    return onnx_runtime(path, samples)


def tflite_micro(model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    """TensorFlow Lite Micro's reference kernels, for models without a state. No entry of :data:`RUNTIMES`: its
    arithmetic is the exact meaning, so that it says nothing new but to those who have yet to believe it."""
    try:
        package = importlib.import_module("tflite_micro")
    except ImportError:
        return None
    interpreter = package.runtime.Interpreter.from_bytes(path.read_bytes(), arena_size=_ARENA)
    results = []
    for sample in samples:
        for index, value in enumerate(sample):
            interpreter.set_input(value, index)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(index)) for index in range(len(model.signature.outputs))])
    return "TensorFlow Lite Micro", results


def _torch_program(_model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]]:
    """The exported program itself; whoever could import it has PyTorch."""
    from uaccel.frontend.torch.isolated import execute_isolated

    version, rows = execute_isolated(path, samples)
    return f"PyTorch {version}", rows


RUNTIMES: dict[str, Runtime] = {"onnx": _onnx, "torch.export": _torch_program}
