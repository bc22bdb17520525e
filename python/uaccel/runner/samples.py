"""Provides inputs for a run: made up where the user gives none, or read from files with labels."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import InputError
from uaccel.model import LARGEST, Array, read_npy
from uaccel.session.tensors import TensorType, ramp, read_arrays, samples_of
from uaccel.util import incoming

# Inputs when the user gives none: a ramp, and for verification samples that show what a ramp hides.

SAMPLES: Final = 8  # How many samples verification takes if the user does not say.
# The largest number in tensors of 32 and 64 bits, which often are indices; the ramp has no larger ones either.
WIDE: Final = 127


def default_samples(tensors: Sequence[TensorType], count: int, seed: int = 0) -> list[list[Array]]:
    """Makes a ramp, zeros, all least, all largest, least and largest in turn, then random numbers from ``seed``.

    Extremes show sums that overflow, zeros what is added besides the products."""
    made = [
        [ramp(tensor) for tensor in tensors],
        [_zeros(tensor) for tensor in tensors],
        [_filled(tensor, 0) for tensor in tensors],
        [_filled(tensor, 1) for tensor in tensors],
        [_by_turns(tensor) for tensor in tensors],
    ]
    generator = np.random.default_rng(seed)
    while len(made) < count:
        made.append([_random(tensor, generator) for tensor in tensors])
    return made[:count]


def _zeros(tensor: TensorType) -> Array:
    least = tensor.range[0] if tensor.range is not None else 0
    return np.full(tensor.shape, max(least, 0), tensor.dtype)


def _limits(tensor: TensorType) -> tuple[float, float]:
    if tensor.range is not None:
        return tensor.range
    kind = np.dtype(tensor.dtype)
    if kind.kind == "b":
        return 0, 1
    if kind.kind not in "iu":
        return -1.0, 1.0
    info = np.iinfo(kind)
    return (info.min, info.max) if kind.itemsize < 4 else (max(info.min, -WIDE), WIDE)


def _filled(tensor: TensorType, side: int) -> Array:
    return np.full(tensor.shape, _limits(tensor)[side], tensor.dtype)


def _by_turns(tensor: TensorType) -> Array:
    low, high = _limits(tensor)
    return np.resize(np.array([low, high], tensor.dtype), tensor.shape)


def _random(tensor: TensorType, generator: np.random.Generator) -> Array:
    low, high = _limits(tensor)
    if np.dtype(tensor.dtype).kind == "f" and tensor.range is None:
        return generator.uniform(low, high, tensor.shape).astype(tensor.dtype)
    return generator.integers(int(low), int(high), tensor.shape, endpoint=True).astype(tensor.dtype)


# Samples with labels. Samples are an .npz or .npy file or a folder of .npy files, labels .npy, .csv or .txt.

LABEL_COLUMNS: Final = ("label", "class")
DIGITS: Final = 9  # The most digits of a label.


@dataclass(frozen=True)
class Grid:
    """Holds the quantisation of a tensor; ``scale`` is None where its integers stand for themselves."""

    scale: float | None
    zero_point: int

    def integers(self, values: Array, dtype: str) -> Array:
        """Quantises real numbers; halves are rounded away from zero."""
        limits = np.iinfo(dtype)
        steps = values.astype(np.float64) / (self.scale or 1.0)
        rounded = np.sign(steps) * np.floor(np.abs(steps) + 0.5) + self.zero_point
        found: Array = np.clip(rounded, limits.min, limits.max).astype(dtype)
        return found


@dataclass(frozen=True)
class Labelled:
    """Holds samples, each an array for each input, and the label of each."""

    samples: list[list[Array]]
    labels: Array


def read_labelled(data: Path, labels: Path, tensors: Sequence[TensorType], grids: Sequence[Grid]) -> Labelled:
    """Reads samples and as many labels; floats for an integer input are quantised by its grid."""
    arrays, names = _read_data(data, tensors)
    for tensor, grid in zip(tensors, grids, strict=True):
        array = arrays.get(tensor.name)
        if array is not None and array.dtype.kind == "f" and tensor.dtype in ("int8", "uint8", "int16") and grid.scale:
            if np.isnan(array).any():
                raise InputError(f'{data}: input "{tensor.name}" holds a NaN, which no {tensor.dtype} stands for')
            arrays[tensor.name] = grid.integers(array, tensor.dtype)
    samples = samples_of(arrays, tensors, str(data))
    found = _read_labels(labels, names)
    if len(found) != len(samples):
        raise InputError(f"{data} has {len(samples)} samples and {labels} {len(found)} labels; give one for each")
    return Labelled(samples, found)


def _read_data(path: Path, tensors: Sequence[TensorType]) -> tuple[dict[str, Array], list[str]]:
    """Returns a batch for each input by name, and the names of files where each sample has its own."""
    if path.suffix == ".npz":
        arrays = read_arrays(path)
        return ({tensors[0].name: next(iter(arrays.values()))} if len(arrays) == len(tensors) == 1 else arrays), []
    if len(tensors) != 1:
        raise InputError(f"--data {path}: the model has {len(tensors)} inputs; give an .npz file with them by name")
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        if not files:
            raise InputError(f"--data {path} has no .npy files; give one for each sample, or an .npz or .npy file")
        rows: list[Array] = []
        for file in files:
            rows.append(_reshaped(file, _read_npy(file, "--data"), tensors[0]))
            if len(rows) * rows[0].nbytes > LARGEST:
                raise InputError(f"--data {path} holds more than {LARGEST} bytes of samples; give fewer of them")
        return {tensors[0].name: np.stack(rows)}, [file.name for file in files]
    if path.suffix == ".npy":
        return {tensors[0].name: _read_npy(path, "--data")}, []
    raise InputError(f"--data {path}: wanted an .npz or .npy file, or a folder of .npy files")


def _reshaped(file: Path, array: Array, tensor: TensorType) -> Array:
    if array.shape not in (tensor.shape, tensor.shape[1:]):
        raise InputError(f"{file} has shape {list(array.shape)}, the model wants {list(tensor.shape)}")
    return array.reshape(tensor.shape)


def _read_npy(path: Path, option: str) -> Array:
    try:
        return read_npy(path)
    except OSError as error:
        raise InputError(
            f"cannot read {option} {path}: {error.strerror or error}; give what numpy.save writes"
        ) from error
    except ValueError as error:
        raise InputError(f"{option} {path} is not a readable .npy file: {error}; write it with numpy.save") from error


def _read_labels(path: Path, names: list[str]) -> Array:
    if path.suffix == ".npy":
        array = _read_npy(path, "--labels")
        if array.dtype.kind not in "iu":
            raise InputError(f"--labels {path} holds {array.dtype}; wanted whole numbers, one for each sample")
        return array.reshape(-1).astype(np.int64)
    if path.suffix not in (".csv", ".txt"):
        raise InputError(f"--labels {path}: wanted a file .npy, .csv or .txt")
    try:
        text = incoming.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read --labels {path}: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix == ".txt":
        return np.array([_label(path, i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()], np.int64)
    return _from_csv(path, text, names)


def _from_csv(path: Path, text: str, names: list[str]) -> Array:
    """Reads the column that is named after labels, else the last; with a folder the first column names the file."""
    rows = [(i, [cell.strip() for cell in row]) for i, row in enumerate(csv.reader(text.splitlines()), 1) if any(row)]
    column = -1
    if rows and not _is_number(rows[0][1][-1]):
        head = [cell.lower() for cell in rows.pop(0)[1]]
        column = next((head.index(name) for name in LABEL_COLUMNS if name in head), -1)
    if rows and column >= min(len(row) for _, row in rows):
        raise InputError(f"--labels {path}: a line has fewer columns than the first one; give each the same")
    found = [(row[0], _label(path, i, row[column])) for i, row in rows]
    if not names or not rows or len(rows[0][1]) == 1:
        return np.array([label for _, label in found], np.int64)
    by_name = {Path(name).name: label for name, label in found}
    missing = [name for name in names if name not in by_name]
    if missing:
        raise InputError(f"--labels {path} has no line for {missing[0]}; begin one with that name")
    return np.array([by_name[name] for name in names], np.int64)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _label(path: Path, line: int, text: str) -> int:
    label = text.strip()
    if not label.isdecimal() or len(label) > DIGITS:
        shown = label if len(label) < 40 else label[:36] + "..."
        raise InputError(f"--labels {path}, line {line}: {shown!r} is no label; wanted a whole number from 0")
    return int(label)


def grid_of(row: dict[str, Any]) -> Grid:
    """Makes a grid of what a report says of a tensor."""
    scale = row.get("scale")
    return Grid(scale if isinstance(scale, float) else None, int(row.get("zero_point") or 0))
