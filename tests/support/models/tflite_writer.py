"""Write TFLite model files from Python, tensor by tensor, so that a test states exactly the model it means.

    model = ModelBuilder()
    x = model.input("x", (1, 8, 8, 3), "int8", scale=0.5, zero_point=-3)
    w = model.constant("w", weights, scales=[0.1, 0.2], axis=0)
    y = model.tensor("y", (1, 8, 8, 2), "int8", scale=0.25, zero_point=4)
    model.op("CONV_2D", [x, w, None], [y], {"padding": "SAME", "stride_w": 1, "stride_h": 1})
    data = model.build(y)

The file is the same, byte for byte, for the same calls.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from support.models.tflite_options import OptionValue, write_options

__all__ = ["ModelBuilder", "Operator", "OptionValue", "Sparsity", "Tensor"]

_PLACE_LATER = 1 << 62  # stands in a table until it is known where a constant lies
_SCHEMA_VERSION = 3
_BUFFER_ALIGNMENT = 16
_INTEGERS = ("int4", "int8", "uint8", "int16", "uint32", "int32", "uint64", "int64")
_DTYPES = (*_INTEGERS, "float16", "float32", "bool", "resource")


@dataclass(frozen=True)
class Sparsity:
    """How a constant leaves zeros out. `levels`: the size of a dense dimension, or segments and indices of a sparse
    one, in the order in which they are visited; `kind` is the type of these lists."""

    order: tuple[int, ...]
    blocked: tuple[int, ...]
    levels: tuple[int | tuple[Sequence[int], Sequence[int]], ...]
    kind: str = "uint8"


@dataclass(frozen=True)
class Tensor:
    """A tensor of the model under construction; `data` is there for constants alone."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    signature: tuple[int, ...] | None = None
    data: bytes | None = field(default=None, repr=False)
    is_variable: bool = False
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class Operator:
    """One operator call: tensor indices, -1 for an optional input that is absent."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, OptionValue]
    version: int
    custom_code: str | None
    custom_options: bytes = b""

    @property
    def code(self) -> tuple[str, int, str | None]:
        """What makes operators share one entry in the model's operator code table."""
        return self.name, self.version, self.custom_code


class ModelBuilder:
    """A model, or one subgraph more of it; `build` gives the file's bytes."""

    def __init__(self, description: str = "uaccel test model") -> None:
        self._description = description
        self._tensors: list[Tensor] = []
        self._operators: list[Operator] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._others: list[ModelBuilder] = []
        self._notes: list[tuple[str, bytes]] = []

    def note(self, name: str, content: bytes) -> None:
        """Metadata of the file: a buffer with a name, which no tensor has."""
        self._notes.append((name, content))

    def subgraph(self) -> ModelBuilder:
        """Another subgraph; the first is number 1."""
        self._others.append(ModelBuilder())
        return self._others[-1]

    def input(self, name: str, shape: Sequence[int], dtype: str, **more: Any) -> Tensor:
        """An input of the model, with what ``tensor`` takes."""
        tensor = self.tensor(name, shape, dtype, **more)
        self._inputs.append(tensor.index)
        return tensor

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        *,
        scale: float | None = None,
        zero_point: int = 0,
        signature: Sequence[int] | None = None,
    ) -> Tensor:
        """An activation, quantised as one whole when it has a scale."""
        return self._add(
            name,
            shape,
            dtype,
            scales=() if scale is None else (scale,),
            zero_points=() if scale is None else (zero_point,),
            signature=None if signature is None else tuple(signature),
        )

    def variable(
        self, name: str, shape: Sequence[int], dtype: str, *, scale: float | None = None, zero_point: int = 0
    ) -> Tensor:
        """A tensor that keeps its value from one inference to the next."""
        return self._add(
            name,
            shape,
            dtype,
            scales=() if scale is None else (scale,),
            zero_points=() if scale is None else (zero_point,),
            is_variable=True,
        )

    def requantised(self, tensor: Tensor, scale: float, zero_point: int) -> Tensor:
        """The tensor with other parameters, in its place."""
        changed = replace(tensor, scales=(scale,), zero_points=(zero_point,))
        self._tensors[tensor.index] = changed
        return changed

    def constant(
        self,
        name: str,
        array: npt.ArrayLike,
        *,
        scale: float | None = None,
        zero_point: int = 0,
        scales: Sequence[float] | None = None,
        zero_points: Sequence[int] | None = None,
        axis: int = 0,
        bits: int = 8,
    ) -> Tensor:
        """A constant of the array's dtype, quantised as a whole (`scale`) or along `axis` (`scales`); of 4 `bits`, two
        int8 values share a byte, the first in its low half."""
        values = np.ascontiguousarray(array).reshape(np.shape(array))
        if scale is not None:
            scales, zero_points = [scale], [zero_point]
        scales = list(scales or ())
        little_endian = values.astype(values.dtype.newbyteorder("<"))
        return self._add(
            name,
            values.shape,
            "int4" if bits == 4 else values.dtype.name,
            scales=tuple(scales),
            zero_points=tuple([0] * len(scales) if zero_points is None else zero_points),
            axis=axis,
            data=(_nibbles(values) if bits == 4 else little_endian).tobytes(),
        )

    def sparse(self, name: str, shape: Sequence[int], values: npt.NDArray[Any], sparsity: Sparsity) -> Tensor:
        """A constant of which only some values are stored, one after the other."""
        return self._add(name, shape, values.dtype.name, data=values.tobytes(), sparsity=sparsity)

    def op(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        options: Mapping[str, OptionValue] | None = None,
        *,
        version: int = 1,
        custom_code: str | None = None,
        custom_options: bytes = b"",
    ) -> None:
        """Append an operator by its schema name; see `write_options` for the options.

        Version 1 is what every runtime accepts whatever the types: TFLite Micro ignores the number, and
        LiteRT looks up one kernel for the whole range of versions.
        """
        if not hasattr(tflite.BuiltinOperator, name):
            raise ValueError(f"operator {name!r} is not in the TFLite schema")
        self._operators.append(
            Operator(
                name,
                tuple(-1 if tensor is None else tensor.index for tensor in inputs),
                tuple(tensor.index for tensor in outputs),
                dict(options or {}),
                version,
                custom_code,
                custom_options,
            )
        )

    def output(self, tensor: Tensor) -> None:
        """Make the tensor the next output of the model."""
        self._outputs.append(tensor.index)

    def build(self, *outputs: Tensor, outside: bool = False) -> bytes:
        """The bytes of the .tflite file, whose last ``outputs`` are these; with ``outside`` constants stand behind the
        flatbuffer, as in large files."""
        for tensor in outputs:
            self.output(tensor)
        writer = _Writer()
        graphs = [self, *self._others]
        constants = [tensor.data for graph in graphs for tensor in graph._tensors if tensor.data is not None]
        notes = [content for _, content in self._notes]
        buffers = writer.buffers([b"", *constants, *notes], outside=outside)
        codes = list(dict.fromkeys(operator.code for graph in graphs for operator in graph._operators))
        numbers = iter(range(1, len(constants) + 1))
        subgraphs = [
            writer.subgraph(graph._tensors, graph._operators, codes, graph._inputs, graph._outputs, numbers)
            for graph in graphs
        ]
        named = [(name, 1 + len(constants) + number) for number, (name, _) in enumerate(self._notes)]
        data = writer.finish(buffers, codes, subgraphs, self._description, named)
        return _with_constants_behind(data, constants) if outside else data

    def _add(self, name: str, shape: Sequence[int], dtype: str, **rest: Any) -> Tensor:
        if dtype not in _DTYPES:
            raise ValueError(f"tensor {name!r}: dtype {dtype!r} is not one of {', '.join(_DTYPES)}")
        tensor = Tensor(len(self._tensors), name, tuple(int(size) for size in shape), dtype, **rest)
        self._tensors.append(tensor)
        return tensor


def _nibbles(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Of int8 values from -8 to 7."""
    flat = np.append(values.astype(np.int64).reshape(-1) & 15, np.zeros(values.size % 2, np.int64))
    return np.asarray(flat[0::2] | flat[1::2] << 4, np.uint8)


def _with_constants_behind(data: bytes, constants: Sequence[bytes]) -> bytes:
    """Each constant at a multiple of 16 behind the flatbuffer, and its place in its buffer's table."""
    whole, model = bytearray(data), tflite.Model.GetRootAs(data, 0)
    for number, content in enumerate(constants, 1):
        whole += bytes(-len(whole) % 16)
        table = model.Buffers(number)._tab
        struct.pack_into("<Q", whole, table.Pos + table.Offset(6), len(whole))
        whole += content
    return bytes(whole)


class _Writer:
    """The flatbuffer under construction; it grows from its end, so children come before their parents."""

    def __init__(self) -> None:
        self._builder: Any = flatbuffers.Builder(4096)

    def buffers(self, contents: Sequence[bytes], *, outside: bool = False) -> int:
        tables = []
        for content in contents:
            data = self._bytes(content) if content and not outside else None
            tflite.BufferStart(self._builder)
            if data is not None:
                tflite.BufferAddData(self._builder, data)
            elif content:
                tflite.BufferAddOffset(self._builder, _PLACE_LATER)
                tflite.BufferAddSize(self._builder, len(content))
            tables.append(tflite.BufferEnd(self._builder))
        return self._tables(tflite.ModelStartBuffersVector, tables)

    def subgraph(
        self,
        tensors: Sequence[Tensor],
        operators: Sequence[Operator],
        codes: Sequence[tuple[str, int, str | None]],
        inputs: Sequence[int],
        outputs: Sequence[int],
        next_buffer: Iterator[int],
    ) -> int:
        tensor_tables = [self._tensor(t, 0 if t.data is None else next(next_buffer)) for t in tensors]
        operator_tables = [self._operator(op, codes.index(op.code)) for op in operators]
        children = (
            (tflite.SubGraphAddTensors, self._tables(tflite.SubGraphStartTensorsVector, tensor_tables)),
            (tflite.SubGraphAddInputs, self._int32s(inputs)),
            (tflite.SubGraphAddOutputs, self._int32s(outputs)),
            (tflite.SubGraphAddOperators, self._tables(tflite.SubGraphStartOperatorsVector, operator_tables)),
            (tflite.SubGraphAddName, self._builder.CreateString("main")),
        )
        return self._table(tflite.SubGraphStart, children, tflite.SubGraphEnd)

    def finish(
        self,
        buffers: int,
        codes: Sequence[tuple[str, int, str | None]],
        subgraphs: Sequence[int],
        description: str,
        notes: Sequence[tuple[str, int]],
    ) -> bytes:
        code_tables = [self._operator_code(*code) for code in codes]
        children = [
            (tflite.ModelAddVersion, _SCHEMA_VERSION),
            (tflite.ModelAddOperatorCodes, self._tables(tflite.ModelStartOperatorCodesVector, code_tables)),
            (tflite.ModelAddSubgraphs, self._tables(tflite.ModelStartSubgraphsVector, subgraphs)),
            (tflite.ModelAddDescription, self._builder.CreateString(description)),
            (tflite.ModelAddBuffers, buffers),
        ]
        if notes:
            tables = [self._note(*note) for note in notes]
            children.append((tflite.ModelAddMetadata, self._tables(tflite.ModelStartMetadataVector, tables)))
        model = self._table(tflite.ModelStart, children, tflite.ModelEnd)
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

    def _note(self, name: str, buffer: int) -> int:
        children = ((tflite.MetadataAddName, self._builder.CreateString(name)), (tflite.MetadataAddBuffer, buffer))
        return self._table(tflite.MetadataStart, children, tflite.MetadataEnd)

    def _tensor(self, tensor: Tensor, buffer: int) -> int:
        children = [
            (tflite.TensorAddShape, self._int32s(tensor.shape)),
            (tflite.TensorAddType, getattr(tflite.TensorType, tensor.dtype.upper())),
            (tflite.TensorAddBuffer, buffer),
            (tflite.TensorAddName, self._builder.CreateString(tensor.name)),
            (tflite.TensorAddHasRank, True),
        ]
        if tensor.scales:
            children.append((tflite.TensorAddQuantization, self._quantisation(tensor)))
        if tensor.signature is not None:
            children.append((tflite.TensorAddShapeSignature, self._int32s(tensor.signature)))
        if tensor.is_variable:
            children.append((tflite.TensorAddIsVariable, True))
        if tensor.sparsity is not None:
            children.append((tflite.TensorAddSparsity, self._sparsity(tensor.sparsity)))
        return self._table(tflite.TensorStart, children, tflite.TensorEnd)

    def _quantisation(self, tensor: Tensor) -> int:
        children = (
            (tflite.QuantizationParametersAddScale, self._array(tensor.scales, np.float32)),
            (tflite.QuantizationParametersAddZeroPoint, self._array(tensor.zero_points, np.int64)),
            (tflite.QuantizationParametersAddQuantizedDimension, tensor.axis),
        )
        return self._table(tflite.QuantizationParametersStart, children, tflite.QuantizationParametersEnd)

    def _sparsity(self, sparsity: Sparsity) -> int:
        levels = [self._level(level, sparsity.kind) for level in sparsity.levels]
        metadata = self._tables(tflite.SparsityParametersStartDimMetadataVector, levels)
        children = [
            (tflite.SparsityParametersAddTraversalOrder, self._int32s(sparsity.order)),
            (tflite.SparsityParametersAddDimMetadata, metadata),
        ]
        if sparsity.blocked:
            children.append((tflite.SparsityParametersAddBlockMap, self._int32s(sparsity.blocked)))
        return self._table(tflite.SparsityParametersStart, children, tflite.SparsityParametersEnd)

    def _level(self, level: int | tuple[Sequence[int], Sequence[int]], kind: str) -> int:
        if isinstance(level, int):
            dense = [(tflite.DimensionMetadataAddDenseSize, level)]
            return self._table(tflite.DimensionMetadataStart, dense, tflite.DimensionMetadataEnd)
        name = f"{kind.capitalize()}Vector"
        start, values, end = (getattr(tflite, f"{name}{part}") for part in ("Start", "AddValues", "End"))
        segments, indices = (self._table(start, [(values, self._array(list_, np.dtype(kind)))], end) for list_ in level)
        number = getattr(tflite.SparseIndexVector, name)
        children = (
            (tflite.DimensionMetadataAddFormat, tflite.DimensionType.SPARSE_CSR),
            (tflite.DimensionMetadataAddArraySegmentsType, number),
            (tflite.DimensionMetadataAddArraySegments, segments),
            (tflite.DimensionMetadataAddArrayIndicesType, number),
            (tflite.DimensionMetadataAddArrayIndices, indices),
        )
        return self._table(tflite.DimensionMetadataStart, children, tflite.DimensionMetadataEnd)

    def _operator(self, operator: Operator, opcode_index: int) -> int:
        kind, options = write_options(self._builder, operator.name, operator.options)
        children = [
            (tflite.OperatorAddOpcodeIndex, opcode_index),
            (tflite.OperatorAddInputs, self._int32s(operator.inputs)),
            (tflite.OperatorAddOutputs, self._int32s(operator.outputs)),
        ]
        if kind:
            children += [
                (tflite.OperatorAddBuiltinOptionsType, kind),
                (tflite.OperatorAddBuiltinOptions, options),
            ]
        if operator.custom_options:
            children.append((tflite.OperatorAddCustomOptions, self._bytes(operator.custom_options)))
        return self._table(tflite.OperatorStart, children, tflite.OperatorEnd)

    def _operator_code(self, name: str, version: int, custom_code: str | None) -> int:
        """Both code fields, as converters write them: old readers know only the 8-bit one."""
        code = getattr(tflite.BuiltinOperator, name)
        placeholder = tflite.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
        children = [
            (tflite.OperatorCodeAddDeprecatedBuiltinCode, min(code, placeholder)),
            (tflite.OperatorCodeAddVersion, version),
            (tflite.OperatorCodeAddBuiltinCode, code),
        ]
        if custom_code is not None:
            children.append((tflite.OperatorCodeAddCustomCode, self._builder.CreateString(custom_code)))
        return self._table(tflite.OperatorCodeStart, children, tflite.OperatorCodeEnd)

    def _table(
        self,
        start: Callable[..., Any],
        children: Sequence[tuple[Callable[..., Any], Any]],
        end: Callable[..., Any],
    ) -> int:
        start(self._builder)
        for add, value in children:
            add(self._builder, value)
        return int(end(self._builder))

    def _tables(self, start_vector: Callable[..., Any], offsets: Sequence[int]) -> int:
        start_vector(self._builder, len(offsets))
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _array(self, values: Sequence[float] | Sequence[int], dtype: npt.DTypeLike) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, dtype)))

    def _int32s(self, values: Sequence[int]) -> int:
        return self._array(values, np.int32)

    def _bytes(self, content: bytes) -> int:
        """A byte vector aligned as the schema asks: runtimes read the data in place."""
        self._builder.StartVector(1, len(content), _BUFFER_ALIGNMENT)
        head = self._builder.head - len(content)
        self._builder.head = head
        self._builder.Bytes[head : head + len(content)] = content
        return int(self._builder.EndVector())
