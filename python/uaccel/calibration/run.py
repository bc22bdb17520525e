"""Prepare, calibrate, quantise, compare: ONNX Runtime does each, in a folder of its own until all is well."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from uaccel.basics.files import write_atomically
from uaccel.calibration.calibration import Calibration
from uaccel.calibration.float_model import FloatModel, weights_size
from uaccel.calibration.layers import LayerQuality, compare_layers
from uaccel.calibration.package import complaints, package
from uaccel.calibration.quality import Quality, compare, execute
from uaccel.errors import ModelError

FORMATS = {"qdq": "QDQ", "qoperator": "QOperator"}
METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
TYPES = {"int8": "QInt8", "uint8": "QUInt8"}
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Keys of the tables above."""

    format: str = "qdq"
    activations: str = "int8"
    weights: str = "int8"
    per_channel: bool = True
    method: str = "minmax"


@dataclass(frozen=True)
class Quantised:
    """Bytes of the file and of its constants, before and after."""

    size: tuple[int, int]
    weights: tuple[int, int]
    quality: Quality
    layers: tuple[LayerQuality, ...]
    digest: str
    """SHA-256 of the file."""


def quantise(model: FloatModel, calibration: Calibration, output: Path, options: Options, step: Progress) -> Quantised:
    """Write the quantised model, if all goes well."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        folder = Path(temporary)
        onnx = package("onnx")
        source = folder / "float.onnx"
        onnx.save(model.proto, str(source))
        prepared = _prepared(model, source, step)
        step(f"calibrate with {len(calibration.samples)} samples and quantise")
        result = folder / "quantised.onnx"
        _quantise(model, prepared, calibration, result, options)
        step("compare with the float model")
        before = execute(source, calibration)
        quality = compare(before, execute(result, calibration), calibration.labels)
        after = onnx.load(str(result))
        _check_quantised(model, after)
        layers = compare_layers(prepared, result, calibration)
        data = result.read_bytes()
    step(f"write {output}")
    write_atomically(output, partial(_write, data), "-o")
    sizes = (model.size, len(data)), (weights_size(model.proto), weights_size(after))
    return Quantised(*sizes, quality, layers, hashlib.sha256(data).hexdigest())


def _write(data: bytes, stream: IO[bytes]) -> None:
    stream.write(data)


def _prepared(model: FloatModel, source: Path, step: Progress) -> Path:
    """With batch normalisation folded, and with the shape of every tensor."""
    step("prepare the float model")
    preparing = package("onnxruntime.quantization.shape_inference")
    path = source.with_name("prepared.onnx")
    with complaints(f"ONNX Runtime cannot prepare {model.path}", "check the model with onnx.checker"):
        preparing.quant_pre_process(str(source), str(path), skip_symbolic_shape=True)
    return path


class _Reader:
    """What ONNX Runtime's quantiser asks for samples."""

    def __init__(self, calibration: Calibration) -> None:
        self._samples = iter(calibration.samples)

    def get_next(self) -> dict[str, Any] | None:
        sample = next(self._samples, None)
        return None if sample is None else dict(sample)


def _quantise(model: FloatModel, source: Path, calibration: Calibration, result: Path, options: Options) -> None:
    quantiser = package("onnxruntime.quantization")
    with complaints(f"ONNX Runtime's quantiser refuses {model.path}", "try --format, --method or --per-tensor"):
        quantiser.quantize_static(
            str(source),
            str(result),
            _Reader(calibration),
            quant_format=quantiser.QuantFormat[FORMATS[options.format]],
            per_channel=options.per_channel,
            activation_type=quantiser.QuantType[TYPES[options.activations]],
            weight_type=quantiser.QuantType[TYPES[options.weights]],
            calibrate_method=quantiser.CalibrationMethod[METHODS[options.method]],
        )


def _check_quantised(model: FloatModel, after: Any) -> None:
    if not any(node.op_type == "QuantizeLinear" for node in after.graph.node):
        kinds = ", ".join(sorted({node.op_type for node in after.graph.node})) or "none"
        raise ModelError(f"nothing in {model.path} can be quantised: its operators are {kinds}")
