"""The model to quantise: read, checked, and its inputs as calibration data must have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uaccel.calibration.package import complaints, package
from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget, read_file
from uaccel.frontend.onnx.external import read_external
from uaccel.frontend.onnx.structure import check_structure, dtype_name

SUFFIXES = (".onnx", ".pt2")
OTHERS: Mapping[str, str] = {
    ".tflite": "have the TFLite converter quantise it: converter.optimizations and representative_dataset",
    ".pt": "export it: torch.export.save(torch.export.export(module, inputs), 'model.pt2')",
}
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinear", "ConvInteger", "MatMulInteger")
_OLDEST_OPSET = 13  # the first whose DequantizeLinear takes a scale for each channel


@dataclass(frozen=True)
class ModelInput:
    """``shape``: None for extents that the file leaves open, None instead of all where it says nothing."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class FloatModel:
    path: Path
    proto: Any
    size: int
    inputs: tuple[ModelInput, ...]


def read(path: Path) -> FloatModel:
    """ModelError for what cannot be quantised here, with what to do instead."""
    onnx = package("onnx")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
    with complaints(f"{path} is not a readable ONNX model", "give a .onnx file as exporters write it"):
        proto = onnx.ModelProto.FromString(read_file(path))
        check_structure(onnx, proto, Budget(path), path)
        read_external(onnx, proto, path)
        onnx.checker.check_model(proto)
    _check_float(path, proto)
    return FloatModel(path, _renewed(onnx, path, proto), size, _inputs(onnx, path, proto))


def weights_size(proto: Any) -> int:
    """Bytes of all constants of a model."""
    onnx = package("onnx")
    return sum(onnx.numpy_helper.to_array(tensor).nbytes for tensor in proto.graph.initializer)


def check_path(path: Path) -> None:
    """ModelError for what is no file of a kind that is quantised here."""
    suffix = path.suffix.lower()
    if not path.exists():
        raise ModelError(f"no model file {path}; check the path")
    if path.is_dir():
        raise ModelError(f"{path} is a directory, wanted a model file (.onnx, .pt2)")
    if suffix not in SUFFIXES:
        advice = OTHERS.get(suffix, "export the model to ONNX")
        raise ModelError(f"{path}: only .onnx and .pt2 models are quantised here; {advice}")


def _check_float(path: Path, proto: Any) -> None:
    found = sorted({node.op_type for node in proto.graph.node if node.op_type.startswith(_QUANTISED)})
    if found:
        raise ModelError(f"{path} is quantised already ({', '.join(found)}); give the float model")


def _renewed(onnx: Any, path: Path, proto: Any) -> Any:
    """The model in an opset that can say what quantising needs."""
    opset = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=0)
    if opset >= _OLDEST_OPSET:
        return proto
    with complaints(
        f"{path} has opset {opset}, and cannot be renewed", f"export it with opset {_OLDEST_OPSET} or later"
    ):
        return onnx.version_converter.convert_version(proto, _OLDEST_OPSET)


def _inputs(onnx: Any, path: Path, proto: Any) -> tuple[ModelInput, ...]:
    constants = {tensor.name for tensor in proto.graph.initializer}
    found = tuple(_input(onnx, path, value) for value in proto.graph.input if value.name not in constants)
    if not found:
        raise ModelError(f"{path} has no inputs; nothing to calibrate")
    return found


def _input(onnx: Any, path: Path, value: Any) -> ModelInput:
    if not value.type.HasField("tensor_type"):
        raise ModelError(f'{path}: input "{value.name}" is a {value.type.WhichOneof("value")}, wanted tensors only')
    kind = value.type.tensor_type
    dtype = dtype_name(onnx, kind.elem_type)
    if not kind.HasField("shape"):
        return ModelInput(value.name, dtype, None)
    extents = (dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in kind.shape.dim)
    return ModelInput(value.name, dtype, tuple(extents))
