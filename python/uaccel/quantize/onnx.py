"""Quantises ONNX models by ONNX Runtime's quantiser: prepared and calibrated once, made as often as a search asks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from uaccel.errors import InputError, ModelError
from uaccel.model import Array
from uaccel.quantize.calibration import Calibration, FloatModel, complaints, package, weights_size
from uaccel.quantize.quality import CLAMPS, LayerQuality, Quality, compare, compare_layers, execute
from uaccel.quantize.search import Progress, QuantChoice, QuantLayer

FORMATS = {"qdq": "QDQ", "qoperator": "QOperator"}
METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
TYPES = {"int8": "QInt8", "uint8": "QUInt8", "int16": "QInt16"}
WIDE = "int16"


@dataclass(frozen=True)
class OnnxQuantOptions:
    """Holds what a user asks of the quantiser, as keys of the tables above."""

    format: str = "qdq"
    activations: str = "int8"
    weights: str = "int8"
    per_channel: bool = True
    method: str = "minmax"


class OnnxMaker:
    """Makes quantised models of one float model, with all files in a folder of its own."""

    def __init__(
        self, model: FloatModel, calibration: Calibration, options: OnnxQuantOptions, folder: Path, step: Progress
    ) -> None:
        self._model, self._calibration, self._options, self._folder = model, calibration, options, folder
        self._onnx = package("onnx")
        self._source = folder / "float.onnx"
        self._onnx.save(model.proto, str(self._source))
        step("prepare the float model")
        self._prepared = self._prepare()
        self._graph = self._onnx.load(str(self._prepared)).graph
        step(f"calibrate with {len(calibration.samples)} samples")

    def layers(self) -> list[QuantLayer]:
        """Lists the layers; a layer and the clamp behind it are one."""
        made = {name for node in self._graph.node for name in node.output}
        nodes = [node for node in self._graph.node if node.op_type not in CLAMPS or node.input[0] not in made]
        return [QuantLayer(node.name, node.op_type) for node in nodes]

    def compiled_names(self) -> Mapping[str, frozenset[str]]:
        return {}

    def make(self, choice: QuantChoice) -> Path:
        self._check(choice)
        result = self._folder / "quantised.onnx"
        self._quantise(choice, result)
        after = self._onnx.load(str(result))
        if self._wide(choice):
            _join_clamps(after.graph)
            self._onnx.save(after, str(result))
        if not any(node.op_type == "QuantizeLinear" for node in after.graph.node):
            kinds = ", ".join(sorted({node.op_type for node in after.graph.node})) or "none"
            left = " but for what is left out" if choice.floats else ""
            raise ModelError(f"nothing in {self._model.path} can be quantised{left}: its operators are {kinds}")
        return result

    def quality(self, made: Path) -> Quality:
        return compare(self._exact, execute(made, self._calibration), self._calibration.labels)

    def compared(self, made: Path) -> tuple[LayerQuality, ...]:
        return compare_layers(self._prepared, made, self._calibration)

    def sizes(self) -> tuple[int, int]:
        return self._model.size, weights_size(self._model.proto)

    def weights(self, made: Path) -> int:
        return weights_size(self._onnx.load(str(made)))

    @cached_property
    def _exact(self) -> dict[str, list[Array]]:
        return execute(self._source, self._calibration)

    def _prepare(self) -> Path:
        """Writes the float model with batch normalisation folded, the shape of every tensor, and names of all nodes."""
        preparing = package("onnxruntime.quantization.shape_inference")
        path = self._folder / "prepared.onnx"
        with complaints(f"ONNX Runtime cannot prepare {self._model.path}", "check the model with onnx.checker"):
            preparing.quant_pre_process(str(self._source), str(path), skip_symbolic_shape=True)
            model = self._onnx.load(str(path))
            _name_nodes(model.graph)
            self._onnx.save(model, str(path))
        return path

    def _wide(self, choice: QuantChoice) -> bool:
        return bool(choice.sixteen) or self._options.activations == WIDE

    def _check(self, choice: QuantChoice) -> None:
        if self._wide(choice) and self._options.format == "qoperator":
            raise InputError("--format qoperator has no operators of 16 bits; leave it out, or keep to 8 bits")

    def _quantise(self, choice: QuantChoice, result: Path) -> None:
        quantiser, options = package("onnxruntime.quantization"), self._options
        types = quantiser.QuantType
        more: dict[str, Any] = {}
        if "calibration_cache_path" in inspect.signature(quantiser.quantize_static).parameters:
            more["calibration_cache_path"] = self._folder / f"ranges{'_wide' * bool(choice.sixteen)}.json"
        with complaints(
            f"ONNX Runtime's quantiser refuses {self._model.path}", "try --format, --method or --per-tensor"
        ):
            quantiser.quantize_static(
                str(self._prepared),
                str(result),
                _Reader(self._calibration),
                quant_format=quantiser.QuantFormat[FORMATS[options.format]],
                per_channel=options.per_channel,
                activation_type=types[TYPES[options.activations]],
                weight_type=types[TYPES[options.weights]],
                calibrate_method=quantiser.CalibrationMethod[METHODS[options.method]],
                nodes_to_exclude=sorted(self._with_clamps(choice.floats)),
                extra_options=self._extra(types, choice),
                **more,
            )

    def _extra(self, types: Any, choice: QuantChoice) -> dict[str, Any]:
        """Returns options for results of 16 bits, whose ranges are symmetric: their kernels have no zero points. A
        symmetric range does not clamp as a Relu does, so clamps must stay (``QDQKeepRemovableActivations``)."""
        extra: dict[str, Any] = {"ActivationSymmetric": True} if self._options.activations == WIDE else {}
        if choice.sixteen:
            extra["QDQKeepRemovableActivations"] = True
            wide = [{"quant_type": types[TYPES[WIDE]], "symmetric": True}]
            nodes = self._with_clamps(choice.sixteen)
            tensors = [name for node in self._graph.node if node.name in nodes for name in node.output if name]
            extra["TensorQuantOverrides"] = dict.fromkeys(tensors, wide)
        return extra

    def _with_clamps(self, names: frozenset[str]) -> set[str]:
        results = {name for node in self._graph.node if node.name in names for name in node.output}
        clamps = {node.name for node in self._graph.node if node.op_type in CLAMPS and results & set(node.input[:1])}
        return {*names, *clamps}


def _name_nodes(graph: Any) -> None:
    taken = {node.name for node in graph.node}
    for node in graph.node:
        if not node.name:
            name = next(name for name in node.output if name)
            while name in taken:
                name += "_"
            taken.add(name)
            node.name = name


def _join_clamps(graph: Any) -> None:
    """Removes quantisation between a layer and its clamp: the clamp's result alone is quantised."""
    makers = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[Any]] = {output.name: [output] for output in graph.output}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for clamp in graph.node:
        again = makers.get(clamp.input[0]) if clamp.op_type in CLAMPS else None
        step = makers.get(again.input[0]) if again is not None and again.op_type == "DequantizeLinear" else None
        if again is None or step is None or step.op_type != "QuantizeLinear" or step.input[0] not in makers:
            continue
        if all(len(readers[name]) == 1 for name in (clamp.input[0], again.input[0], step.input[0])):
            clamp.input[0] = step.input[0]
            graph.node.remove(again)
            graph.node.remove(step)


class _Reader:
    """Gives samples to ONNX Runtime's quantiser, in the way it asks for them."""

    def __init__(self, calibration: Calibration) -> None:
        self._samples = iter(calibration.samples)

    def get_next(self) -> dict[str, Any] | None:
        sample = next(self._samples, None)
        return None if sample is None else dict(sample)
