"""Calibration data from a file or a folder: arrays, or images, by the model's inputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.basics.npz import LARGEST
from uaccel.calibration.float_model import ModelInput
from uaccel.errors import InputError
from uaccel.model import Array
from uaccel.session.inputs import read_arrays

IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".webp", ".tif", ".tiff"})
FORMATS: Final = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")
"""Whatever a file's name says: Pillow also knows PostScript, which it gives to an interpreter."""
ARRAY: Final = ".npy"
MOST: Final = 100_000
"""Files of a folder."""
CHANNELS: Final = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Pixels:
    """What a float input is given of an image: (pixel / 255 - mean) / std, for each channel or one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Given:
    """Arrays by input, samples along the first axis; ``labels`` where a folder has one for each class."""

    arrays: dict[str, Array]
    labels: Array | None = None


def given(path: Path, inputs: Sequence[ModelInput], pixels: Pixels) -> Given:
    """Of a folder, an ``.npy`` file of the one input, or an ``.npz`` file."""
    if path.is_dir():
        return _folder(path, inputs, pixels)
    if path.suffix.lower() == ARRAY:
        return Given({_only(path, inputs).name: read_array(path)})
    return Given(read_arrays(path))


def read_array(path: Path) -> Array:
    """Of an ``.npy`` file."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a readable .npy file: it is no regular file; write it with numpy.save")
    try:
        with path.open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # numpy raises several unrelated types where bytes make no sense
        raise InputError(f"{path} is not a readable .npy file: {error}; write it with numpy.save") from error
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _only(path: Path, inputs: Sequence[ModelInput]) -> ModelInput:
    if len(inputs) == 1:
        return inputs[0]
    names = ", ".join(f'"{entry.name}"' for entry in inputs)
    raise InputError(f"{path} holds one array, and the model's inputs are {names}; give an .npz file, or a folder each")


def _folder(path: Path, inputs: Sequence[ModelInput], pixels: Pixels) -> Given:
    """Files of the one input; or a folder for each input; or one for each class, in the order of their names."""
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
    """A sample for each file."""
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
    """Scaled so that it covers the input, and cut in the middle; with its channels where the input has them."""
    height, width, channels, first = _wanted(path, entry)
    image, ops = _pillow(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is odd in a file
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(path, formats=FORMATS) as opened:
                fitted = ops.fit(ops.exif_transpose(opened).convert(CHANNELS[channels]), (width, height))
            values = np.asarray(fitted).reshape(height, width, channels)
    except Exception as error:  # Pillow raises a dozen unrelated types where bytes make no sense
        raise InputError(
            f"{path} is not a readable image: {error}; give one that Pillow reads, or .npy files"
        ) from error
    values = values if entry.dtype == "uint8" else _scaled(values, entry, pixels)
    return np.ascontiguousarray(values.transpose(2, 0, 1) if first else values)


def _wanted(path: Path, entry: ModelInput) -> tuple[int, int, int, bool]:
    """Height, width, channels, and whether these come first."""
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
    if not all(pixels.std):
        raise InputError("--std has a zero; give what values are divided by")
    scaled = (values / np.float64(255) - np.asarray(pixels.mean)) / np.asarray(pixels.std)
    return np.asarray(scaled, np.float32)


def _pillow(path: Path) -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise InputError(
            f"{path}: images take Pillow, and importing it fails ({error}); pip install 'uaccel[quantize]', or give "
            ".npy files"
        ) from error
    return Image, ImageOps


def classes_of(path: Path) -> Mapping[str, Array]:
    """Labels of a file, by array."""
    return {"labels": read_array(path)} if path.suffix.lower() == ARRAY else read_arrays(path)
