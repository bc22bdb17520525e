"""How far the quantised model is from the float one, on the calibration data, as ONNX Runtime executes both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.calibration.calibration import Calibration
from uaccel.calibration.package import complaints, package
from uaccel.errors import InputError
from uaccel.model import Array


@dataclass(frozen=True)
class OutputQuality:
    """``snr``: signal to noise in dB, None where there is no difference (or no signal). ``agreement``: the share of
    samples with the largest element in the same place, None for an output that does not look like classes."""

    snr: float | None
    largest_difference: float
    agreement: float | None


@dataclass(frozen=True)
class Quality:
    """``top1``: the share of right classes before and after, where there are labels."""

    outputs: Mapping[str, OutputQuality]
    top1: tuple[float, float] | None


def execute(model: Path, calibration: Calibration) -> dict[str, list[Array]]:
    """Every output of every sample, without ONNX Runtime's optimiser: what the file says."""
    with complaints(f"ONNX Runtime cannot execute {model.name}", "check the model with onnx.checker, and its inputs"):
        session = session_of(model)
        names = [output.name for output in session.get_outputs()]
        results = [session.run(None, dict(sample)) for sample in calibration.samples]
    return {name: [np.asarray(result[i]) for result in results] for i, name in enumerate(names)}


def session_of(model: Path) -> Any:
    """Of ONNX Runtime, without its optimiser."""
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def signal_to_noise(signal: float, noise: float) -> float | None:
    """In dB, of sums of squares; None where there is no difference, or no signal."""
    return 10 * math.log10(signal / noise) if noise and signal else None


def compare(before: Mapping[str, Sequence[Array]], after: Mapping[str, Sequence[Array]], labels: Any) -> Quality:
    """The first output that looks like classes is the one that labels are about."""
    outputs = {name: _output(values, after[name]) for name, values in before.items()}
    if labels is None:
        return Quality(outputs, None)
    name = next((name for name, output in outputs.items() if output.agreement is not None), None)
    if name is None:
        raise InputError("there are labels, but no output of the model has a number for each class; leave them away")
    classes = before[name][0].size
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(
            f'labels go from {labels.min()} to {labels.max()}, and output "{name}" has {classes} classes, '
            f"0 to {classes - 1}"
        )
    first, second = (float(np.mean(_classes(values[name]) == labels)) for values in (before, after))
    return Quality(outputs, (first, second))


def _output(before: Sequence[Array], after: Sequence[Array]) -> OutputQuality:
    exact = np.concatenate([value.reshape(-1) for value in before]).astype(np.float64)
    got = np.concatenate([value.reshape(-1) for value in after]).astype(np.float64)
    snr = signal_to_noise(float(np.sum(exact**2)), float(np.sum((got - exact) ** 2)))
    agreement = float(np.mean(_classes(before) == _classes(after))) if _is_classes(before) else None
    return OutputQuality(snr, float(np.max(np.abs(got - exact), initial=0)), agreement)


def _is_classes(values: Sequence[Array]) -> bool:
    """A row of several floats for a sample."""
    first = values[0]
    return first.dtype.kind == "f" and first.ndim > 0 and first.size > 1 and max(first.shape) == first.size


def _classes(values: Sequence[Array]) -> NDArray[np.int64]:
    return np.array([int(np.argmax(value)) for value in values], np.int64)
