"""Packs tensors for a device, and reads samples from files or makes them up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uaccel.errors import DeviceError, InputError
from uaccel.model import Array, read_npy, read_npz
from uaccel.util import incoming

# Tensors as a device holds them.


@dataclass(frozen=True)
class TensorType:
    """Describes a tensor that a device reads or writes: dense, in C order, little endian.

    ``range``: the least and the largest number that an index, a length or a shift may be; None for all other tensors.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    range: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def pack(self, array: Array, what: str = "input") -> bytes:
        """An array of this type as the device holds it; :class:`InputError` for any other."""
        if array.dtype != self.dtype or array.shape != self.shape:
            raise InputError(
                f'{what} "{self.name}" is {array.dtype} {list(array.shape)}, '
                f"the model wants {self.dtype} {list(self.shape)}"
            )
        return np.ascontiguousarray(array, np.dtype(self.dtype).newbyteorder("<")).tobytes()

    def unpack(self, data: bytes) -> Array:
        """The array of a device's bytes."""
        if len(data) != self.size:
            raise DeviceError(f'tensor "{self.name}" came with {len(data)} bytes, {self.size} were expected')
        little = np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<"))
        return little.astype(self.dtype).reshape(self.shape)


# Input tensors: from an .npz file, or a ramp, which is always the same and makes two runs comparable.


def ramp(tensor: TensorType) -> Array:
    """Makes ((7 i + 3) mod 256) - 128 over the flat index; other types hold the same numbers as far as they can.

    7 and 256 have no common factor, so that every int8 value comes once in 256 elements.
    """
    values: Array = ((7 * np.arange(256) + 3) % 256) - 128
    if tensor.range is not None:
        low, high = tensor.range
        return np.resize(low + (values + 128) % (high - low + 1), tensor.shape).astype(tensor.dtype)
    kind = np.dtype(tensor.dtype).kind
    if kind == "f":
        values = values / 128
    elif kind == "u":
        values = values + 128
    elif kind == "b":
        values = values > 0
    return np.resize(values.astype(tensor.dtype), tensor.shape)


def load_inputs(path: Path, tensors: Sequence[TensorType]) -> list[list[Array]]:
    """Reads the samples of an .npz file: arrays keyed by input name, of the input's shape or a batch of such. A model
    with one input may have an .npy file of its array."""
    return samples_of(input_arrays(path, tensors), tensors, str(path))


def input_arrays(path: Path, tensors: Sequence[TensorType]) -> dict[str, Array]:
    """Reads the arrays of such a file by name, whatever their types and shapes are."""
    if path.suffix.lower() != ".npy":
        return read_arrays(path)
    if len(tensors) != 1:
        names = ", ".join(f"{tensor.name}=..." for tensor in tensors)
        raise InputError(f"{path} is one array, the model has {len(tensors)} inputs; numpy.savez('IN.npz', {names})")
    return {tensors[0].name: read_array(path)}


def samples_of(
    arrays: Mapping[str, Array], tensors: Sequence[TensorType], source: str, kind: str = "input"
) -> list[list[Array]]:
    """Divides arrays into samples as ``load_inputs`` does; messages call them ``source``, and each array a ``kind``."""
    by_name = {tensor.name: tensor for tensor in tensors}
    unknown = sorted(set(arrays) - set(by_name))
    missing = [name for name in by_name if name not in arrays]
    if unknown or missing:
        wanted = ", ".join(f'"{name}"' for name in by_name)
        seen = ", ".join(f'"{name}"' for name in arrays) or "nothing"
        raise InputError(f"{source} holds {seen}; the model's {kind}s are {wanted}: name the arrays so")
    batches = {name: _samples(f'{source}: {kind} "{name}"', by_name[name], array) for name, array in arrays.items()}
    counts = {name: len(batch) for name, batch in batches.items()}
    if len(set(counts.values())) > 1:
        seen = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"{source}: {kind}s have different numbers of samples ({seen}); give each the same")
    number = next(iter(counts.values()), 1)
    return [[batches[tensor.name][i] for tensor in tensors] for i in range(number)]


def read_arrays(path: Path) -> dict[str, Array]:
    """Reads all arrays of an .npz file."""
    broken = incoming.reading(InputError, path, broken="not a readable .npz file")
    with broken, incoming.reading(InputError, f"inputs {path}"):
        return read_npz(path)


def read_array(path: Path, option: str = "") -> Array:
    """Reads an .npy file; errors name it behind the words of an ``option``."""
    advice = "give arrays as numpy.save writes them"
    with incoming.reading(InputError, f"{option}{path}", advice, "not a readable .npy file"):
        return read_npy(path)


def _samples(what: str, tensor: TensorType, array: Array) -> list[Array]:
    if str(array.dtype) != tensor.dtype:
        raise InputError(f"{what} is {array.dtype}, the model wants {tensor.dtype}")
    if array.shape == tensor.shape:
        return [array]
    if array.ndim and array.shape[0] == 0:
        raise InputError(f"{what} has shape {list(array.shape)}: no samples; give one or more")
    if array.shape[1:] == tensor.shape:
        return list(array)
    if array.ndim == len(tensor.shape) and array.shape[1:] == tensor.shape[1:] and tensor.shape[0] == 1:
        return [row[np.newaxis] for row in array]
    raise InputError(
        f"{what} has shape {list(array.shape)}, the model wants {list(tensor.shape)} "
        "(or several samples of it along a first axis)"
    )
