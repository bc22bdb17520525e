"""Reads the test data that ONNX's model zoo and node tests keep beside a model: folders ``test_data_set_N``.

Each holds a tensor in a file for each input (``input_0.pb``) and for each output (``output_0.pb``) of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import InputError, ModelError
from uaccel.frontend.onnx.graph import onnx_package
from uaccel.frontend.onnx.schema import AGAIN, check_tensor
from uaccel.model import LARGEST, Array
from uaccel.session.tensors import TensorType
from uaccel.util import incoming

FOLDERS: Final = "test_data_set_"
SUFFIX: Final = ".onnx"
_REMEDY: Final = "copy the folder again, or leave it out with --inputs IN.npz"


@dataclass(frozen=True)
class DataSet:
    """Holds a sample and what the model's author says of it; ``outputs`` is None where the folder has none."""

    name: str
    inputs: list[Array]
    outputs: list[Array] | None


def data_sets(model: Path, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> list[DataSet]:
    """Reads all folders beside a model file, by their numbers; InputError for a file that does not fit the model."""
    if model.suffix.lower() != SUFFIX:
        return []
    numbered = [(path.name.removeprefix(FOLDERS), path) for path in model.parent.glob(f"{FOLDERS}*") if path.is_dir()]
    folders = sorted((int(number), path) for number, path in numbered if number.isdecimal() and len(number) < 9)
    budget, found = _Budget(), []
    for _, folder in folders:
        given = _tensors(folder, "input", inputs, budget)
        made = _tensors(folder, "output", outputs, budget) if any(folder.glob("output_*.pb")) else None
        found.append(DataSet(folder.name, given, made))
    return found


class _Budget:
    """Counts the bytes of all files, which are kept in memory together."""

    def __init__(self) -> None:
        self._left = LARGEST

    def read(self, file: Path) -> bytes:
        with incoming.reading(InputError, file, _REMEDY):
            data = incoming.read_bytes(file, self._left)
        self._left -= len(data)
        return data


def _tensors(folder: Path, side: str, types: Sequence[TensorType], budget: _Budget) -> list[Array]:
    """Reads the tensors of one side, in the order of the model's."""
    seen = {path.name for path in folder.glob(f"{side}_*.pb")}
    files = [f"{side}_{number}.pb" for number in range(len(types))]
    if seen != set(files):
        wanted = ", ".join(files) or "none"
        raise InputError(f"{folder} holds {', '.join(sorted(seen)) or f'no {side}'}; wanted {wanted}; {_REMEDY}")
    named = [_tensor(folder / file, budget) for file in files]
    by_name = dict(named)
    if by_name.keys() == {tensor.name for tensor in types}:  # a file may tell which tensor it is, else its number does
        arrays = [by_name[tensor.name] for tensor in types]
    else:
        arrays = [array for _, array in named]
    return [
        _fitting(folder / file, array, tensor, side) for file, array, tensor in zip(files, arrays, types, strict=True)
    ]


def _tensor(file: Path, budget: _Budget) -> tuple[str, Array]:
    """Reads one file: the name that it gives its tensor, and the values; halves become floats as the model's do."""
    from google.protobuf.message import DecodeError

    onnx, data = onnx_package(), budget.read(file)
    tensor: Any = onnx.TensorProto()
    try:
        tensor.ParseFromString(data)
        check_tensor(onnx, tensor, str(file))
    except (DecodeError, RuntimeError, ValueError) as error:
        raise InputError(f"{file} is no tensor of ONNX, or is damaged ({len(data)} bytes); {_REMEDY}") from error
    except ModelError as error:
        raise InputError(f"{str(error).removesuffix(f'; {AGAIN}')}; {_REMEDY}") from error
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InputError(f"{file} keeps its values in another file, which is not read; {_REMEDY}")
    array = np.asarray(onnx.numpy_helper.to_array(tensor))
    return str(tensor.name), array.astype(np.float32) if array.dtype == np.float16 else array


def _fitting(file: Path, array: Array, tensor: TensorType, side: str) -> Array:
    """Returns an array of the model's type. An output may have fewer rows than firmware has room for."""
    exact = array.shape == tensor.shape
    fewer = len(array.shape) == len(tensor.shape) and all(map(int.__le__, array.shape, tensor.shape))
    if str(array.dtype) == tensor.dtype and (exact or (side == "output" and fewer)):
        return array
    raise InputError(
        f"{file} is {array.dtype} {list(array.shape)}, "
        f'the model\'s {side} "{tensor.name}" is {tensor.dtype} {list(tensor.shape)}; {_REMEDY}'
    )
