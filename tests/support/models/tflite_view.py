"""Read a TFLite file back as plain data: tensors by index, operators by name."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite
from tflite.utils import opcode2name

Array = npt.NDArray[Any]

_DTYPE_NAMES = {value: name.lower() for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the file; `data` is there for constants alone."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    data: Array | None = field(default=None, repr=False, compare=False)

    @property
    def is_constant(self) -> bool:
        return self.data is not None


@dataclass(frozen=True)
class OperatorInfo:
    """One operator call, -1 for an optional input that is absent."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ModelView:
    """The first subgraph of a TFLite file."""

    tensors: tuple[TensorInfo, ...]
    operators: tuple[OperatorInfo, ...]
    input_indices: tuple[int, ...]
    output_indices: tuple[int, ...]

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return tuple(self.tensors[index] for index in self.input_indices)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return tuple(self.tensors[index] for index in self.output_indices)

    @property
    def computed_indices(self) -> tuple[int, ...]:
        """The tensors that operators write, in the order of execution."""
        return tuple(index for operator in self.operators for index in operator.outputs)


def view(data: bytes) -> ModelView:
    """The model in the bytes of a .tflite file."""
    model = tflite.Model.GetRootAs(data, 0)
    graph = model.Subgraphs(0)
    return ModelView(
        tuple(_tensor(model, graph.Tensors(index), index) for index in range(graph.TensorsLength())),
        tuple(_operator(model, graph.Operators(index)) for index in range(graph.OperatorsLength())),
        _integers(graph.InputsAsNumpy()),
        _integers(graph.OutputsAsNumpy()),
    )


def _integers(values: Any) -> tuple[int, ...]:
    """A flatbuffer vector reads as the integer 0 when it is absent."""
    return tuple(int(value) for value in values) if isinstance(values, np.ndarray) else ()


def _tensor(model: Any, tensor: Any, index: int) -> TensorInfo:
    shape = _integers(tensor.ShapeAsNumpy())
    dtype = _DTYPE_NAMES[tensor.Type()]
    quantisation = tensor.Quantization()
    scales = () if quantisation is None else quantisation.ScaleAsNumpy()
    return TensorInfo(
        index,
        (tensor.Name() or b"").decode(),
        shape,
        dtype,
        tuple(float(scale) for scale in scales) if isinstance(scales, np.ndarray) else (),
        () if quantisation is None else _integers(quantisation.ZeroPointAsNumpy()),
        0 if quantisation is None else quantisation.QuantizedDimension(),
        _constant(model.Buffers(tensor.Buffer()).DataAsNumpy(), shape, dtype) if tensor.Sparsity() is None else None,
    )


def _constant(raw: Any, shape: tuple[int, ...], dtype: str) -> Array | None:
    if not isinstance(raw, np.ndarray):
        return None
    if dtype == "int4":
        halves = np.stack([raw << 4, raw & 0xF0], axis=-1).astype(np.uint8).view(np.int8) >> 4
        return halves.reshape(-1)[: int(np.prod(shape))].reshape(shape)
    return np.frombuffer(raw.tobytes(), np.dtype(dtype).newbyteorder("<")).reshape(shape)


def _code(code: Any) -> int:
    """The larger of both fields, read from the bytes: the package's ``BuiltinCode`` prefers the old one."""
    table = code._tab
    slots = [(table.Offset(slot), form) for slot, form in ((4, "<b"), (10, "<i"))]
    return max(struct.unpack_from(form, table.Bytes, table.Pos + slot)[0] if slot else 0 for slot, form in slots)


def _operator(model: Any, operator: Any) -> OperatorInfo:
    code = model.OperatorCodes(operator.OpcodeIndex())
    return OperatorInfo(
        opcode2name(_code(code)),
        _integers(operator.InputsAsNumpy()),
        _integers(operator.OutputsAsNumpy()),
    )
