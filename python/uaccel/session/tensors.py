"""A tensor that goes to a device or comes from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from uaccel.errors import DeviceError, InputError
from uaccel.model import Array


@dataclass(frozen=True)
class TensorType:
    """What the device reads or writes: dense, in C order, little endian."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def pack(self, array: Array) -> bytes:
        """An array of this type as the device holds it; :class:`InputError` for any other."""
        if array.dtype != self.dtype or array.shape != self.shape:
            raise InputError(
                f'input "{self.name}" is {array.dtype} {list(array.shape)}, '
                f"the model wants {self.dtype} {list(self.shape)}"
            )
        return np.ascontiguousarray(array, np.dtype(self.dtype).newbyteorder("<")).tobytes()

    def unpack(self, data: bytes) -> Array:
        """The other way."""
        if len(data) != self.size:
            raise DeviceError(f'tensor "{self.name}" came with {len(data)} bytes, {self.size} were expected')
        little = np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<"))
        return little.astype(self.dtype).reshape(self.shape)
