"""Calibration data: samples of what the model will see, and where they have them their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uaccel.calibration.float_model import ModelInput
from uaccel.calibration.samples import Pixels, classes_of, given
from uaccel.errors import InputError
from uaccel.model import Array
from uaccel.session.inputs import samples_of
from uaccel.session.tensors import TensorType

LABELS = "labels"


@dataclass(frozen=True)
class Calibration:
    """Each sample by input name; ``labels``: the right class of each, or None."""

    samples: tuple[Mapping[str, Array], ...]
    labels: NDArray[np.int64] | None


def read_calibration(
    path: Path, inputs: Sequence[ModelInput], labels: Path | None, pixels: Pixels | None = None
) -> Calibration:
    """InputError for data that does not fit the model, or that no number could be learnt from."""
    found = given(path, inputs, pixels or Pixels())
    arrays = found.arrays
    own = {entry.name for entry in inputs}
    beside = arrays.pop(LABELS, found.labels) if LABELS not in own else found.labels
    for name, array in arrays.items():
        _check_numbers(path, name, array)
    types = [_type(entry, arrays.get(entry.name)) for entry in inputs]
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


def _type(entry: ModelInput, array: Array | None) -> TensorType:
    """One sample. Extents that the file leaves open are those of the data, but for the first: a batch of one."""
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
