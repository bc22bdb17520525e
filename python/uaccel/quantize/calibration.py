"""Reads what quantising takes: the float ONNX model, checked and in a new enough opset, and calibration samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import InputError, ModelError, need
from uaccel.frontend.checks import Budget, read_file
from uaccel.frontend.onnx.reader import read_external, weight_files
from uaccel.frontend.onnx.schema import check_structure, dtype_name
from uaccel.model import LARGEST, Array
from uaccel.session.tensors import TensorType, read_array, read_arrays, samples_of
from uaccel.util import incoming
from uaccel.util.files import imported, quiet

# The packages onnx and ONNX Runtime, which are an optional extra; their exceptions become one line.


def package(name: str) -> Any:
    """Imports one of their modules when it is needed."""
    takes = f"quantising takes onnx and onnxruntime, and importing {name}"
    return imported(name, ModelError, takes, "install them: pip install 'uaccel[quantize]'")


@contextmanager
def complaints(what: str, advice: str) -> Iterator[None]:
    """Runs a block without its output; whatever it raises becomes a ModelError: ``what``, the reason, what to do."""
    try:
        with quiet():
            yield
    except ModelError:
        raise
    except Exception as error:  # protobuf, ONNX's checker and ONNX Runtime raise dozens of unrelated types
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ModelError(f"{what}: {lines[0].rstrip('.;')}; {advice}") from error


# The model to quantise, and its inputs, which calibration data must match.

SUFFIXES = (".onnx", ".pt2")
OTHERS: Mapping[str, str] = {
    ".tflite": "have the TFLite converter quantise it: converter.optimizations and representative_dataset",
    ".pt": "export it: torch.export.save(torch.export.export(module, inputs), 'model.pt2')",
}
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinear", "ConvInteger", "MatMulInteger")
_OLDEST_OPSET = 13  # The first whose DequantizeLinear takes a scale for each channel.


@dataclass(frozen=True)
class ModelInput:
    """Describes an input; ``shape`` has None for extents that the file leaves open, and is None where it has none."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class FloatModel:
    """Holds a float ONNX model, the bytes of its files, its inputs and its outputs."""

    path: Path
    proto: Any
    size: int
    inputs: tuple[ModelInput, ...]
    outputs: tuple[ModelInput, ...]


def read_float_model(path: Path) -> FloatModel:
    """Reads a float model; raises ModelError for what cannot be quantised here, with what to do instead."""
    onnx = package("onnx")
    with incoming.reading(ModelError, path):
        size = sum(file.stat().st_size for file in (path, *weight_files(path)))
    with complaints(f"{path} is not a readable ONNX model", "give a .onnx file as exporters write it"):
        proto = onnx.ModelProto.FromString(read_file(path))
        check_structure(onnx, proto, Budget(path), path)
        read_external(onnx, proto, path)
        onnx.checker.check_model(proto)
    _check_float(path, proto)
    outputs = tuple(_input(onnx, path, value) for value in proto.graph.output)
    return FloatModel(path, _renewed(onnx, path, proto), size, _inputs(onnx, path, proto), outputs)


def weights_size(proto: Any) -> int:
    """Counts the bytes of all constants of a model."""
    onnx = package("onnx")
    return sum(onnx.numpy_helper.to_array(tensor).nbytes for tensor in proto.graph.initializer)


def check_path(path: Path) -> None:
    """Raises ModelError for what is no file of a kind that is quantised here."""
    suffix = path.suffix.lower()
    need(path.exists(), f"no model file {path}; check the path")
    need(not path.is_dir(), f"{path} is a directory, wanted a model file (.onnx, .pt2)")
    if suffix not in SUFFIXES:
        advice = OTHERS.get(suffix, "export the model to ONNX")
        raise ModelError(f"{path}: only .onnx and .pt2 models are quantised here; {advice}")


def _check_float(path: Path, proto: Any) -> None:
    found = sorted({node.op_type for node in proto.graph.node if node.op_type.startswith(_QUANTISED)})
    need(not found, f"{path} is quantised already ({', '.join(found)}); give the float model")


def _renewed(onnx: Any, path: Path, proto: Any) -> Any:
    """Converts the model to an opset that can express what quantising needs."""
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
    need(found, f"{path} has no inputs; nothing to calibrate")
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


# Arrays of samples from a file or a folder: arrays or images, by the model's inputs.

IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".webp", ".tif", ".tiff"})
# Pillow goes by content, whatever a file's name says, and would give PostScript to an interpreter: nothing but these.
FORMATS: Final = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")
ARRAY: Final = ".npy"
MOST: Final = 100_000  # Files that a folder may have.
CHANNELS: Final = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Pixels:
    """States how pixels become floats: (pixel / 255 - mean) / std, with numbers for each channel or one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Given:
    """Holds arrays by input, samples along the first axis; ``labels`` where a folder has a folder for each class."""

    arrays: dict[str, Array]
    labels: Array | None = None


def given(path: Path, inputs: Sequence[ModelInput], pixels: Pixels) -> Given:
    """Reads a folder, an image or an ``.npy`` file of the one input, or an ``.npz`` file."""
    if path.is_dir():
        return _folder(path, inputs, pixels)
    if path.suffix.lower() in IMAGES:
        return Given({_only(path, inputs).name: _stack([path], _only(path, inputs), pixels)})
    if path.suffix.lower() == ARRAY:
        return Given({_only(path, inputs).name: read_array(path)})
    return Given(read_arrays(path))


def _only(path: Path, inputs: Sequence[ModelInput]) -> ModelInput:
    if len(inputs) == 1:
        return inputs[0]
    names = ", ".join(f'"{entry.name}"' for entry in inputs)
    raise InputError(f"{path} holds one array, and the model's inputs are {names}; give an .npz file, or a folder each")


def _folder(path: Path, inputs: Sequence[ModelInput], pixels: Pixels) -> Given:
    """Reads files of the one input, or a folder for each input, or one for each class in the order of their names."""
    folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    by_name = {entry.name: entry for entry in inputs}
    if folders and {folder.name for folder in folders} == set(by_name):
        return Given({folder.name: _stack(_files(folder), by_name[folder.name], pixels) for folder in folders})
    if not folders:
        return Given({_only(path, inputs).name: _stack(_files(path), _only(path, inputs), pixels)})
    classes = [_files(folder) for folder in folders]
    labels = np.repeat(np.arange(len(classes)), [len(files) for files in classes])
    entry = _only(path, inputs)
    return Given({entry.name: _stack([file for files in classes for file in files], entry, pixels)}, labels)


def _files(folder: Path) -> list[Path]:
    files = sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    if not files or len(files) > MOST:
        raise InputError(f"{folder} holds {len(files) or 'no'} files; wanted images or .npy files, {MOST:,} at most")
    other = [file for file in files if file.suffix.lower() not in IMAGES | {ARRAY}]
    if other:
        raise InputError(f"{other[0]} is no image and no .npy file; leave nothing else in {folder}")
    return files


def _stack(files: Sequence[Path], entry: ModelInput, pixels: Pixels) -> Array:
    """Stacks the samples of files, one each."""
    rows: list[Array] = []
    for file in files:
        row = read_array(file) if file.suffix.lower() == ARRAY else _image(file, entry, pixels)
        rows.append(row)
        if len(rows) * row.nbytes > LARGEST:
            raise InputError(f"{file.parent} holds more than {LARGEST} bytes of samples; give fewer of them")
        if row.shape != rows[0].shape:
            raise InputError(
                f"{file} has shape {list(row.shape)}, and {files[0].name} has {list(rows[0].shape)}; "
                "give all samples one shape"
            )
    return np.stack(rows)


def _image(path: Path, entry: ModelInput, pixels: Pixels) -> Array:
    """Reads an image, scaled so that it covers the input and cropped to its middle; channels first or last as there."""
    height, width, channels, first = _wanted(path, entry)
    takes, install = (
        f"{path}: images take Pillow, and importing it",
        "pip install 'uaccel[quantize]', or give .npy files",
    )
    image, ops = (imported(f"PIL.{name}", InputError, takes, install) for name in ("Image", "ImageOps"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Oddities of a file are none of the user's business.
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with incoming.opened(path) as stream, image.open(stream, formats=FORMATS) as opened:
                fitted = ops.fit(ops.exif_transpose(opened).convert(CHANNELS[channels]), (width, height))
            values = np.asarray(fitted).reshape(height, width, channels)
    except Exception as error:  # Pillow raises a dozen unrelated types where bytes make no sense
        raise InputError(
            f"{path} is not a readable image: {error}; give one that Pillow reads, or .npy files"
        ) from error
    values = values if entry.dtype == "uint8" else _scaled(values, entry, pixels)
    return np.ascontiguousarray(values.transpose(2, 0, 1) if first else values)


def _wanted(path: Path, entry: ModelInput) -> tuple[int, int, int, bool]:
    """Returns height, width, channels, and whether these come first."""
    shape = [extent for extent in (entry.shape or ())[-3:] if extent is not None]
    if len(shape) == 3 and entry.dtype in ("float32", "uint8"):
        if shape[0] in CHANNELS:
            return shape[1], shape[2], shape[0], True
        if shape[2] in CHANNELS:
            return shape[0], shape[1], shape[2], False
    seen = "any shape" if entry.shape is None else list(entry.shape)
    raise InputError(
        f'{path}: input "{entry.name}" is {entry.dtype} {seen}, no image of fixed size with 1, 3 or 4 channels; '
        "give .npy files"
    )


def _scaled(values: Array, entry: ModelInput, pixels: Pixels) -> Array:
    channels = values.shape[-1]
    for name, numbers in (("--mean", pixels.mean), ("--std", pixels.std)):
        if len(numbers) not in (1, channels):
            raise InputError(f'{name} has {len(numbers)} numbers, and input "{entry.name}" has {channels} channels')
    need(all(pixels.std), "--std has a zero; give what values are divided by", InputError)
    scaled = (values / np.float64(255) - np.asarray(pixels.mean)) / np.asarray(pixels.std)
    return np.asarray(scaled, np.float32)


def classes_of(path: Path) -> Mapping[str, Array]:
    """Reads the arrays of a file of labels, by name."""
    return {"labels": read_array(path)} if path.suffix.lower() == ARRAY else read_arrays(path)


# Calibration data: samples of what the model will see, with labels where there are any.

LABELS = "labels"


@dataclass(frozen=True)
class Calibration:
    """Holds samples, each by input name; ``labels``: the right class of each, or None."""

    samples: tuple[Mapping[str, Array], ...]
    labels: NDArray[np.int64] | None


def read_calibration(
    path: Path, inputs: Sequence[ModelInput], labels: Path | None, pixels: Pixels | None = None
) -> Calibration:
    """Reads calibration data; raises InputError where it does not fit the model or holds NaN or infinite values."""
    found = given(path, inputs, pixels or Pixels())
    arrays = found.arrays
    own = {entry.name for entry in inputs}
    beside = arrays.pop(LABELS, found.labels) if LABELS not in own else found.labels
    for name, array in arrays.items():
        _check_numbers(path, name, array)
    types = [type_of(entry, arrays.get(entry.name)) for entry in inputs]
    rows = samples_of(arrays, types, str(path))
    samples = tuple({kind.name: value for kind, value in zip(types, row, strict=True)} for row in rows)
    if labels is not None:
        beside, path = _only_array(labels), labels
    return Calibration(samples, None if beside is None else _checked_labels(path, beside, len(samples)))


def _check_numbers(path: Path, name: str, array: Array) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        wrong = int(array.size - np.isfinite(array).sum())
        raise InputError(
            f'{path}: input "{name}": {wrong} of {array.size} values are NaN or infinite; scales are learnt from the '
            "values, so give numbers only"
        )


def type_of(entry: ModelInput, array: Array | None) -> TensorType:
    """Returns the type of one sample. Extents that the file leaves open are the data's, but the batch is one."""
    if entry.shape is None:
        shape = (1,) if array is None else (1, *array.shape[1:])
        return TensorType(entry.name, shape, entry.dtype)
    given = array.shape[-len(entry.shape) :] if array is not None and entry.shape else ()
    known = [
        extent if extent is not None else 1 if axis == 0 or axis >= len(given) else given[axis]
        for axis, extent in enumerate(entry.shape)
    ]
    return TensorType(entry.name, tuple(known), entry.dtype)


def _only_array(path: Path) -> Array:
    arrays = classes_of(path)
    if LABELS in arrays:
        return arrays[LABELS]
    if len(arrays) != 1:
        raise InputError(f'{path} holds {len(arrays)} arrays; wanted one, or one that is named "{LABELS}"')
    return next(iter(arrays.values()))


def _checked_labels(path: Path, labels: Array, count: int) -> NDArray[np.int64]:
    if labels.dtype.kind not in "iu" or labels.size != count:
        raise InputError(
            f"{path}: labels are {labels.dtype} {list(labels.shape)}, wanted integers, one for each of {count} samples"
        )
    return labels.reshape(-1).astype(np.int64)
