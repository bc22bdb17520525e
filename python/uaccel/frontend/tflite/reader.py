"""Reads TFLite flatbuffers as plain, checked data."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers, number_types

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import MOST_RANK, Budget, read_file
from uaccel.frontend.tflite.sparse import dense
from uaccel.model import Array, Quantisation, Shape, TensorInfo, TensorSpec, unique_names

# The file is checked once, so that the converters never meet a broken flatbuffer.

_KNOWN = ("float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "bool")
DTYPES: Mapping[int, str] = {getattr(tflite.TensorType, name.upper()): name for name in _KNOWN}


class _Names(dict[int, str]):
    """Names an enumeration's values; a value that it lacks is a ModelError."""

    def __init__(self, enum: type) -> None:
        super().__init__((value, name) for name, value in vars(enum).items() if isinstance(value, int))
        self._enum = enum.__name__

    def __missing__(self, value: int) -> str:
        raise ModelError(f"its options name {self._enum} {value}, which does not exist; the file is damaged or newer")


OPERATOR_NAMES = _Names(tflite.BuiltinOperator)
OPTION_NAMES = _Names(tflite.BuiltinOptions)
TYPE_NAMES = _Names(tflite.TensorType)
ACTIVATIONS = _Names(tflite.ActivationFunctionType)
PADDINGS = _Names(tflite.Padding)

# Errors that the flatbuffer reader raises where the bytes make no sense; UnicodeDecodeError is a ValueError.
DAMAGE = (struct.error, IndexError, ValueError, TypeError, OverflowError, AssertionError)


NUMBER = 64  # Bytes of one number in a Python tuple, with room to spare.

# Fields that the tflite package interprets for its callers are read raw here, and TVM's converters see them so as well.
# A slot is a field's place in its table, as schema.fbs numbers them: 4 and two more for each field before it.
_BUILTIN_CODE = 10


class _Model(tflite.Model):
    """Gives the tables below in place of the package's own."""

    def OperatorCodes(self, j: int) -> Any:
        return _same_place(super().OperatorCodes(j), _OperatorCode())

    def Buffers(self, j: int) -> Any:
        return _same_place(super().Buffers(j), _Buffer())


class _OperatorCode(tflite.OperatorCode):
    """Tells an operator by the larger of two fields, as TFLite does: files may leave the old one, of 8 bits, at 0.

    The package gives the old field for all numbers below 127, so a file without it would have additions alone.
    """

    def BuiltinCode(self) -> int:
        slot = self._tab.Offset(_BUILTIN_CODE)
        code = self._tab.Get(number_types.Int32Flags, self._tab.Pos + slot) if slot else 0
        return max(int(code), int(self.DeprecatedBuiltinCode()))


class _Buffer(tflite.Buffer):
    """Finds its bytes inside the flatbuffer, or behind it: there ``Offset`` counts from the start of the file.

    An offset of 0 or 1 means none. Files above 2 GB keep constants so, and whoever likes may.
    """

    def DataLength(self) -> int:
        return int(self.Size() if self.Offset() > 1 else super().DataLength())

    def DataAsNumpy(self) -> Any:
        begin, size = int(self.Offset()), int(self.Size())
        if begin <= 1:
            return super().DataAsNumpy()
        if begin + size > len(self._tab.Bytes):
            raise ValueError(f"a buffer of {size} bytes at {begin} ends behind the file")
        return np.frombuffer(self._tab.Bytes, np.uint8, size, begin)


def _same_place(table: Any, own: Any) -> Any:
    """``own`` as the reader of a table."""
    own.Init(table._tab.Bytes, table._tab.Pos)
    return own


class OperatorOptions:
    """Reads an operator's option table on demand, such as ``options.StrideH()``."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Callable[..., Any]:
        getter = getattr(self._table, name, None)
        if getter is None:
            raise ModelError(f"its options are {type(self._table).__name__}, which hold no {name}; the file is damaged")

        def read(*arguments: int) -> Any:
            try:
                return getter(*arguments)
            except DAMAGE as error:
                raise ModelError(f"its option {name} lies outside the file: {error}; the file is damaged") from error

        return read


@dataclass(frozen=True, eq=False)
class Tensor:
    """Describes a tensor; ``data`` is a constant's value, None where it is computed or given at run time.

    ``signature`` is the shape as the author declared it, with -1 for extents that may vary. A constant of int4 is int8
    here, and ``bits`` 4 says how the file holds it.
    """

    index: int
    name: str
    info: TensorInfo
    quantisation: Quantisation | None
    data: Array | None
    signature: Shape
    is_variable: bool
    bits: int = 8

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.name, self.info, self.quantisation)

    @property
    def scale(self) -> float:
        return self.required_quantisation.scale

    @property
    def zero_point(self) -> int:
        return self.required_quantisation.zero_point

    @property
    def required_quantisation(self) -> Quantisation:
        if self.quantisation is None:
            raise ModelError(f'tensor "{self.name}" ({self.info}) has no quantisation parameters')
        return self.quantisation


@dataclass(frozen=True, eq=False)
class Operator:
    """Describes an operator; ``given_options`` is None where it has none.

    ``custom`` has the option bytes of a custom operator. ``table`` is the flatbuffer's own, for TVM.
    """

    index: int
    name: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    given_options: OperatorOptions | None
    table: Any
    custom: bytes = b""

    def required_input(self, position: int) -> Tensor:
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise ModelError(f"input {position} is missing")
        return tensor

    @property
    def options(self) -> OperatorOptions:
        if self.given_options is None:
            raise ModelError("the operator has no options table")
        return self.given_options

    def option(self, name: str) -> int:
        """An option as a number, 0 where the operator has no options."""
        return int(getattr(self.given_options, name)()) if self.given_options else 0

    def optional_input(self, position: int) -> Tensor | None:
        return self.inputs[position] if position < len(self.inputs) else None


@dataclass(frozen=True, eq=False)
class TfliteGraph:
    """Holds a subgraph; ``file`` and ``subgraph`` are the flatbuffer tables, for TVM's own converter.

    ``other`` reads another subgraph of the file, by its number.
    """

    file: Any
    subgraph: Any
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    other: Callable[[int], TfliteGraph]


def read(path: Path, budget: Budget) -> tuple[TfliteGraph, bytes]:
    """Reads a file; gives its graph and its bytes."""
    data = read_file(path)
    return parse(data, str(path), budget), data


def parse(data: bytes, where: str, budget: Budget) -> TfliteGraph:
    """Checks and reads the bytes of a file; ``where`` names it in errors."""
    if len(data) < 8 or data[4:8] != b"TFL3":
        raise ModelError(
            f"{where} is not a TFLite file: bytes 4 to 8 are {data[4:8]!r}, wanted b'TFL3'; "
            "give a .tflite file as the TFLite converter writes it"
        )
    budget.spare(len(data))
    return _Reader(data, where, budget).main()


class _Reader:
    """Reads subgraphs, and counts every vector against the budget before it becomes Python data."""

    def __init__(self, data: bytes, where: str, budget: Budget) -> None:
        self.data = data
        self.where = where
        self.budget = budget

    def main(self) -> TfliteGraph:
        graph = self.graph(0)
        need(graph.operators, f"{self.where} is empty: its graph has no operators; nothing to compile")
        need(graph.outputs, f"{self.where} has no outputs; convert the model again")
        return graph

    def graph(self, number: int) -> TfliteGraph:
        try:
            self.model = _same_place(tflite.Model.GetRootAs(self.data, 0), _Model())
            return self._graph(number)
        except DAMAGE as error:
            raise ModelError(
                f"{self.where} is damaged or truncated ({len(self.data)} bytes): {error}; "
                "copy or convert the model again"
            ) from error

    def _graph(self, number: int) -> TfliteGraph:
        need(self.model.SubgraphsLength() >= 1, f"{self.where} holds no subgraph; convert the model again")
        subgraph = self._entry(self.model.Subgraphs, self.model.SubgraphsLength(), number)
        indices = range(self._length(subgraph.TensorsLength()))
        self.budget.nodes(len(indices) // 8)  # an operator has a handful
        names = unique_names(self._name(subgraph, i) for i in indices)
        tensors = tuple(self._tensor(subgraph, i, name) for i, name in zip(indices, names, strict=True))
        self.budget.nodes(self._length(subgraph.OperatorsLength()))
        operators = tuple(self._operator(subgraph, tensors, i) for i in range(subgraph.OperatorsLength()))
        inputs = tuple(self._pick(tensors, i) for i in self._indices(subgraph.Inputs, subgraph.InputsLength()))
        outputs = tuple(self._pick(tensors, i) for i in self._indices(subgraph.Outputs, subgraph.OutputsLength()))
        return TfliteGraph(self.model, subgraph, tensors, operators, inputs, outputs, self.graph)

    def _length(self, count: int) -> int:
        """Checks a vector's length against the file's, and counts it: many tables may point to one vector."""
        need(0 <= count <= len(self.data), f"a vector claims {count} entries", ValueError)
        self.budget.bytes(count)
        return count

    def _entry(self, getter: Callable[[int], Any], count: int, index: int) -> Any:
        if not 0 <= index < self._length(count):
            raise IndexError(f"entry {index} of {count}")
        return getter(index)

    def _pick(self, tensors: tuple[Tensor, ...], index: int) -> Tensor:
        if not 0 <= index < len(tensors):
            raise IndexError(f"tensor {index} of {len(tensors)}")
        return tensors[index]

    def _name(self, subgraph: Any, index: int) -> str:
        """A tensor's name, or its number where it has none; duplicates are renamed later, for reports."""
        name = subgraph.Tensors(index).Name() or b""
        self._length(len(name))
        return name.decode() or f"tensor_{index}"

    def _tensor(self, subgraph: Any, index: int, name: str) -> Tensor:
        table = subgraph.Tensors(index)
        kind = table.Type()
        shape = self._indices(table.Shape, table.ShapeLength())
        if len(shape) > MOST_RANK:
            raise ValueError(f'tensor "{name[:80]}" has {len(shape)} dimensions, and at most {MOST_RANK} are read')
        signature = self._indices(table.ShapeSignature, table.ShapeSignatureLength()) or shape
        info = TensorInfo(shape, DTYPES.get(kind, TYPE_NAMES.get(kind, f"type {kind}")))
        data, bits = self._constant(table, info, name), 8
        if data is not None and kind == tflite.TensorType.INT4:
            info, data, bits = TensorInfo(shape, "int8"), self._halves(data, shape, name), 4
        return Tensor(index, name, info, self._quantisation(table), data, signature, bool(table.IsVariable()), bits)

    def _halves(self, raw: Array, shape: Shape, name: str) -> Array:
        """Unpacks int4 numbers, of which a byte has the first in its low half; shifting right extends the sign."""
        count = math.prod(shape)
        self.budget.bytes(2 * len(raw))
        if len(raw) != -(-count // 2):
            raise ValueError(f'tensor "{name}" (int4) needs {-(-count // 2)} bytes and its buffer has {len(raw)}')
        halves = np.stack([raw << 4, raw & 0xF0], axis=-1).astype(np.uint8).view(np.int8) >> 4
        return np.ascontiguousarray(halves.reshape(-1)[:count].reshape(shape))

    def _constant(self, table: Any, info: TensorInfo, name: str) -> Array | None:
        """A constant's value; one without elements has no buffer, as a list of no axes."""
        if info.elements == 0 and info.dtype in DTYPES.values():
            return np.zeros(info.shape, info.dtype)
        number = table.Buffer()
        if number == 0:
            return None
        buffer = self._entry(self.model.Buffers, self.model.BuffersLength(), number)
        length = self._length(buffer.DataLength())
        if length == 0:
            return None
        raw = buffer.DataAsNumpy()
        if info.dtype not in DTYPES.values():
            return np.frombuffer(raw.tobytes(), np.uint8)
        dtype = np.dtype(info.dtype).newbyteorder("<")
        if table.Sparsity() is not None and length % dtype.itemsize == 0 and len(raw) == length:
            self.budget.bytes(NUMBER * (length // dtype.itemsize) * (len(info.shape) + 1) + info.size)
            return dense(table.Sparsity(), np.frombuffer(raw.tobytes(), dtype), info.shape)
        if length != info.size or len(raw) != length:
            raise ValueError(f'tensor "{name}" ({info}) needs {info.size} bytes and its buffer has {length}')
        return np.frombuffer(raw.tobytes(), dtype).reshape(info.shape)

    def _quantisation(self, table: Any) -> Quantisation | None:
        parameters = table.Quantization()
        if parameters is None or parameters.ScaleLength() == 0:
            return None
        for count in (parameters.ScaleLength(), parameters.ZeroPointLength()):
            self.budget.bytes(NUMBER * self._length(count))
        scales = tuple(parameters.ScaleAsNumpy().tolist())
        given = parameters.ZeroPointLength() > 0
        points = tuple(parameters.ZeroPointAsNumpy().tolist()) if given else (0,) * len(scales)
        if not all(np.isfinite(scale) and scale > 0 for scale in scales):
            raise ValueError(f"quantisation scale {min(scales)} is not a positive number")
        return Quantisation(scales, points, int(parameters.QuantizedDimension()))

    def _operator(self, subgraph: Any, tensors: tuple[Tensor, ...], index: int) -> Operator:
        table = subgraph.Operators(index)
        code = self._entry(self.model.OperatorCodes, self.model.OperatorCodesLength(), table.OpcodeIndex())
        number = code.BuiltinCode()
        name = OPERATOR_NAMES.get(number, f"operator {number}")
        if name == "CUSTOM":
            name = f"CUSTOM:{(code.CustomCode() or b'').decode()}"
        inputs = self._indices(table.Inputs, table.InputsLength())
        operands = tuple(None if i < 0 else self._pick(tensors, i) for i in inputs)
        outputs = tuple(self._pick(tensors, i) for i in self._indices(table.Outputs, table.OutputsLength()))
        custom = table.CustomOptionsAsNumpy().tobytes() if self._length(table.CustomOptionsLength()) else b""
        return Operator(index, name, operands, outputs, _options(table), table, custom)

    def _indices(self, getter: Callable[[int], int], count: int) -> tuple[int, ...]:
        self.budget.bytes(NUMBER * self._length(count))
        return tuple(int(getter(i)) for i in range(count))


def _options(table: Any) -> OperatorOptions | None:
    kind = OPTION_NAMES.get(table.BuiltinOptionsType(), "NONE")
    raw = table.BuiltinOptions()
    cls = getattr(tflite, kind, None)
    if raw is None or not isinstance(cls, type):
        return None
    options = cls()
    options.Init(raw.Bytes, raw.Pos)
    return OperatorOptions(options)


# Options of TFLite Micro's custom operators: a map by name, written as a FlexBuffer.

MOST_BYTES = 1 << 16  # Bytes of options; no operator of TFLite Micro has as many.


def custom_options(operator: Operator) -> Mapping[str, Any]:
    """The options of a custom operator by name; empty where it has none."""
    if not operator.custom:
        return {}
    try:
        found = flexbuffers.Loads(operator.custom) if len(operator.custom) <= MOST_BYTES else None
    except (*DAMAGE, LookupError, NotImplementedError, RecursionError) as error:  # as flexbuffers says it
        raise ModelError(f"its options cannot be read: {error}; the file is damaged") from error
    if not isinstance(found, dict):
        raise ModelError("its options are no map of names; the file is damaged")
    return found


def whole_number(options: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = options.get(name, default)
    if not isinstance(value, int):
        raise ModelError(f"its option {name} is {value!r}, wanted a whole number")
    return int(value)
