"""Input tensors: from an .npz file, or the ramp that makes two runs comparable."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import InputError
from uaccel.session.tensors import TensorType

Array = NDArray[Any]


def ramp(tensor: TensorType) -> Array:
    """((7 i + 3) mod 256) - 128 over the flat index; other types hold the same numbers as far as they can."""
    count = int(np.prod(tensor.shape, dtype=np.int64))
    values: Array = ((7 * np.arange(count, dtype=np.int64) + 3) % 256) - 128
    kind = np.dtype(tensor.dtype).kind
    if kind == "f":
        values = values / 128
    elif kind == "u":
        values = values + 128
    elif kind == "b":
        values = values > 0
    return values.astype(tensor.dtype).reshape(tensor.shape)


def load_inputs(path: Path, tensors: Sequence[TensorType]) -> list[list[Array]]:
    """The samples of an .npz file: arrays keyed by input name, of the input's shape or a batch of such."""
    arrays = _read(path)
    by_name = {tensor.name: tensor for tensor in tensors}
    unknown = sorted(set(arrays) - set(by_name))
    missing = [name for name in by_name if name not in arrays]
    if unknown or missing:
        wanted = ", ".join(f'"{name}"' for name in by_name)
        seen = ", ".join(f'"{name}"' for name in arrays) or "nothing"
        raise InputError(f"{path} holds {seen}; the model's inputs are {wanted}: name the arrays so")
    batches = {name: _samples(path, by_name[name], array) for name, array in arrays.items()}
    counts = {name: len(batch) for name, batch in batches.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"{path}: inputs have different numbers of samples {counts}; give each the same")
    number = next(iter(counts.values()), 1)
    return [[batches[tensor.name][i] for tensor in tensors] for i in range(number)]


def _read(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise InputError(f"{path} is a single array (.npy); wanted an .npz with one array per input")
            return {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read inputs {path}: {error.strerror or error}") from error
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise InputError(f"{path} is not a readable .npz file: {error}") from error


def _samples(path: Path, tensor: TensorType, array: Array) -> list[Array]:
    if str(array.dtype) != tensor.dtype:
        raise InputError(f'{path}: input "{tensor.name}" is {array.dtype}, the model wants {tensor.dtype}')
    if array.shape == tensor.shape:
        return [array]
    if array.shape[1:] == tensor.shape and len(array):
        return list(array)
    if array.ndim == len(tensor.shape) and array.shape[1:] == tensor.shape[1:] and tensor.shape[0] == 1 and len(array):
        return [row[np.newaxis] for row in array]
    raise InputError(
        f'{path}: input "{tensor.name}" has shape {list(array.shape)}, the model wants {list(tensor.shape)} '
        "(or several samples of it along a first axis)"
    )
