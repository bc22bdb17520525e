"""Measures how far a quantised model is from its float model, as a whole and by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import InputError
from uaccel.frontend.state import pairs_of
from uaccel.model import Array, Signature, TensorInfo, TensorSpec
from uaccel.quantize.calibration import Calibration, FloatModel, ModelInput, complaints, package, type_of

# The whole model: outputs on the calibration data, as ONNX Runtime executes both models.


@dataclass(frozen=True)
class OutputQuality:
    """Compares one output. ``snr``: signal to noise in dB, None where there is no difference (or no signal).

    ``agreement``: the share of samples with the largest element in the same place, None for an output that does not
    look like classes.
    """

    snr: float | None
    largest_difference: float
    agreement: float | None


@dataclass(frozen=True)
class Quality:
    """Compares all outputs; ``top1``: the share of right classes before and after, where there are labels."""

    outputs: Mapping[str, OutputQuality]
    top1: tuple[float, float] | None


def execute(model: Path, calibration: Calibration) -> dict[str, list[Array]]:
    """Computes every output of every sample, without ONNX Runtime's optimiser: just what the file says."""
    with complaints(f"ONNX Runtime cannot execute {model.name}", "check the model with onnx.checker, and its inputs"):
        session = session_of(model)
        names = [output.name for output in session.get_outputs()]
        results = [session.run(None, dict(sample)) for sample in calibration.samples]
    return {name: [np.asarray(result[i]) for result in results] for i, name in enumerate(names)}


def states_of(model: FloatModel, words: Sequence[str]) -> dict[str, int]:
    """The inputs that outputs of the frame before become, each with that output's number; ``words`` as ``--state``."""
    pairs = pairs_of(Signature(_specs(model.inputs), _specs(model.outputs)), words)
    return {model.inputs[pair.input].name: pair.output for pair in pairs}


def frames(model: FloatModel, calibration: Calibration, states: Mapping[str, int]) -> Calibration:
    """The samples as frames in order, with these inputs: zeros at first, then what the frame before gave."""
    types = [type_of(entry, None) for entry in model.inputs if entry.name in states]
    held: dict[str, Array] = {kind.name: np.zeros(kind.shape, kind.dtype) for kind in types}
    rows: list[Mapping[str, Array]] = []
    if not states:
        return calibration
    with complaints(f"ONNX Runtime cannot execute {model.path.name}", "check the model with onnx.checker"):
        session = session_of(model.path)
        for sample in calibration.samples:
            rows.append({**sample, **held})
            made = session.run(None, rows[-1])
            held = {name: made[output] for name, output in states.items()}
    return replace(calibration, samples=tuple(rows))


def _specs(entries: Sequence[ModelInput]) -> tuple[TensorSpec, ...]:
    """Describes inputs or outputs; extents that the file leaves open are 0."""
    shapes = [tuple(extent or 0 for extent in entry.shape or ()) for entry in entries]
    return tuple(
        TensorSpec(entry.name, TensorInfo(shape, entry.dtype)) for entry, shape in zip(entries, shapes, strict=True)
    )


def session_of(model: Path) -> Any:
    """Opens a session of ONNX Runtime without its optimiser."""
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def signal_to_noise(signal: float, noise: float) -> float | None:
    """Returns the ratio of two sums of squares in dB; None where there is no difference, or no signal."""
    return 10 * math.log10(signal / noise) if noise and signal else None


def compare(before: Mapping[str, Sequence[Array]], after: Mapping[str, Sequence[Array]], labels: Any) -> Quality:
    """Compares outputs before and after; labels are about the first output that looks like classes."""
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
    """Says whether a sample's output is a row of several floats."""
    first = values[0]
    return first.dtype.kind == "f" and first.ndim > 0 and first.size > 1 and max(first.shape) == first.size


def _classes(values: Sequence[Array]) -> NDArray[np.int64]:
    return np.array([int(np.argmax(value)) for value in values], np.int64)


# Layer by layer: tensors of both models, sample by sample. ONNX Runtime's quantiser keeps or extends names, so that the
# tensor of the quantised model that stands for one of the float model can be found.

CLAMPS: Final = frozenset({"Relu", "Clip"})  # The range of a quantised result may do what these do.

INTEGERS: Final = "_quantized"  # Ends the names of integer operators' results.


@dataclass(frozen=True)
class LayerQuality:
    """Compares a layer by the float model's ``tensor``; ``snr`` in dB as in `OutputQuality`."""

    name: str
    op: str
    tensor: str
    snr: float | None
    largest_difference: float


@dataclass(frozen=True)
class _Pair:
    """Joins a tensor of the float model with the one that stands for it in the quantised model."""

    node: Any
    exact: str
    got: str


class QualitySums:
    """Adds up signal and noise of one tensor over all samples."""

    def __init__(self) -> None:
        self.signal = self.noise = self.largest = 0.0

    def add(self, exact: Array, got: Array) -> None:
        exact, off = exact.astype(np.float64), got.astype(np.float64) - exact.astype(np.float64)
        self.signal += float(np.sum(exact**2))
        self.noise += float(np.sum(off**2))
        self.largest = max(self.largest, float(np.max(np.abs(off), initial=0)))


def compare_layers(before: Path, after: Path, calibration: Calibration) -> tuple[LayerQuality, ...]:
    """Compares layers in the order of the float model ``before``, as it was prepared for the quantiser. A layer whose
    result the quantised model has nowhere is left out."""
    onnx = package("onnx")
    exact, got = onnx.load(str(before)), onnx.load(str(after))
    pairs = list(_Quantised(onnx, got).pairs(exact.graph))
    one = _shown(onnx, exact, [pair.exact for pair in pairs], before.with_name("shown_float.onnx"))
    other = _shown(onnx, got, [pair.got for pair in pairs], after.with_name("shown_quantised.onnx"))
    sums = [QualitySums() for _ in pairs]
    with complaints(f"ONNX Runtime cannot execute {after.name} layer by layer", "try --format"):
        sessions = [session_of(path) for path in (one, other)]
        for sample in calibration.samples:
            wanted, found = (dict(zip(_names(s), s.run(None, dict(sample)), strict=True)) for s in sessions)
            for pair, sum_ in zip(pairs, sums, strict=True):
                sum_.add(np.asarray(wanted[pair.exact]), np.asarray(found[pair.got]))
    both = zip(pairs, sums, strict=True)
    return tuple(quality_of(pair.node.name, pair.node.op_type, pair.exact, sum_) for pair, sum_ in both)


def quality_of(name: str, op: str, tensor: str, sums: QualitySums) -> LayerQuality:
    return LayerQuality(name, op, tensor, signal_to_noise(sums.signal, sums.noise), sums.largest)


def _names(session: Any) -> list[str]:
    return [output.name for output in session.get_outputs()]


def _shown(onnx: Any, model: Any, tensors: list[str], path: Path) -> Path:
    """Writes the model with these tensors among its outputs."""
    there = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(tensors) if name not in there)
    onnx.save(model, str(path))
    return path


class _Quantised:
    """Finds the tensors of a quantised model that stand for those of the float one."""

    def __init__(self, onnx: Any, model: Any) -> None:
        self._onnx = onnx
        self._graph = model.graph
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._made = set(self._makers)
        self._constants = {tensor.name for tensor in model.graph.initializer}

    def pairs(self, exact: Any) -> Iterator[_Pair]:
        """Yields pairs of float tensors that depend on the inputs. A layer and its clamp are one where the quantised
        model has the result of only one of them."""
        alive = {value.name for value in exact.input} - {tensor.name for tensor in exact.initializer}
        types, told = self._types(exact), set[str]()
        for node in exact.node:
            if not alive & set(node.input):
                continue
            alive |= set(node.output)
            for name in node.output:
                clamp = self._clamp(exact, name)
                one = None if clamp and not self._has_step(name) else self._got(name)
                other = self._got(clamp) if clamp else None
                shown = clamp if clamp and (one is None or other is None) else name
                if types.get(name) == self._onnx.TensorProto.FLOAT and shown not in told and (got := one or other):
                    told.add(shown)
                    yield _Pair(node, shown, got)

    def _types(self, graph: Any) -> dict[str, int]:
        values = [*graph.value_info, *graph.output]
        return {value.name: value.type.tensor_type.elem_type for value in values}

    def _clamp(self, exact: Any, name: str) -> str:
        """Returns the clamped tensor, where nothing else reads this one; else nothing."""
        readers = [node for node in exact.node if name in node.input]
        return str(readers[0].output[0]) if len(readers) == 1 and readers[0].op_type in CLAMPS else ""

    def _has_step(self, name: str) -> bool:
        return name in self._passed or f"{name}{INTEGERS}" in self._made

    def _got(self, name: str) -> str | None:
        """Returns the name of the tensor's float values in the quantised model; None where it has none."""
        if name in self._passed:
            return self._passed[name]
        integers = f"{name}{INTEGERS}"
        if integers in self._made:
            return self._dequantised(integers, name)
        return name if name in self._made else None

    @cached_property
    def _passed(self) -> dict[str, str]:
        """Maps each tensor that is quantised and dequantised again to the result of that."""
        floats = {node.input[0]: node.output[0] for node in self._graph.node if node.op_type == "DequantizeLinear"}
        quantised = [node for node in self._graph.node if node.op_type == "QuantizeLinear"]
        return {node.input[0]: floats[node.output[0]] for node in quantised if node.output[0] in floats}

    def _dequantised(self, integers: str, name: str) -> str | None:
        """Adds a dequantisation of an integer operator's result, and returns its name."""
        result, scaled = f"{name}_uaccel_shown", self._scaled(integers)
        if scaled is None:
            return None
        if result not in self._made:
            ends = [integers, f"{scaled}_scale", f"{scaled}_zero_point"]
            self._graph.node.append(self._onnx.helper.make_node("DequantizeLinear", ends, [result]))
            self._made.add(result)
        return result

    def _scaled(self, integers: str) -> str | None:
        """Returns the name of the tensor whose scale it has: its own, or that of what it was moved from."""
        while integers.endswith(INTEGERS):
            name = integers.removesuffix(INTEGERS)
            if f"{name}_scale" in self._constants:
                return name
            maker = self._makers.get(integers)
            integers = maker.input[0] if maker is not None and maker.input else ""
        return None
