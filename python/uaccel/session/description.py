"""What a device says of its model: the JSON that the generated description holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from uaccel.errors import DeviceError
from uaccel.session.ids import Flag, HelloReply
from uaccel.session.message import shown
from uaccel.session.tensors import TensorType

LARGEST_DESCRIPTION: Final = 1 << 22
"""Bytes; a layer takes some 150 of them."""
DTYPES: Final = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)
MOST_DIMENSIONS: Final = 32
LONGEST_DIMENSION: Final = 1 << 32

Kinds: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]
"""Shape and type of elements of each tensor."""
Tensors: TypeAlias = tuple[Kinds, Kinds, tuple[Kinds, ...]]
"""Of inputs, outputs and every layer."""


@dataclass(frozen=True)
class Identity:
    """Of a model and its generated code: SHA-256 of the model file, and the first 8 bytes of that of the code."""

    model_hash: bytes
    build: bytes
    tensors: Tensors | None = field(default=None, compare=False)
    """Where they are known beside: what a description must say."""


@dataclass(frozen=True)
class LayerInfo:
    """One layer; a ``view`` is another name for its input and is never executed."""

    name: str
    op: str
    engine: str
    view: bool
    outputs: tuple[TensorType, ...]


@dataclass(frozen=True)
class ModelInfo:
    """The model that the device runs, and what its firmware can do."""

    name: str
    identity: Identity
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    layers: tuple[LayerInfo, ...]
    observable: bool
    """Layers can be read and timed."""
    workspace_io: bool
    """A run uses the inputs up."""
    has_state: bool
    """It keeps a state from one inference to the next."""
    ticks_per_second: int
    details: Mapping[str, Any]
    """The whole description, with quantisation and provenance."""

    @property
    def tensors(self) -> Tensors:
        return _kinds(self.inputs), _kinds(self.outputs), tuple(_kinds(layer.outputs) for layer in self.layers)


def read_description(hello: HelloReply, text: bytes, device: str) -> ModelInfo:
    """Refuses, with a :class:`DeviceError`, what does not fit together."""
    try:
        details = json.loads(text)
        info = ModelInfo(
            name=_text(details["model"]),
            identity=Identity(hello.model_hash, hello.build),
            inputs=_tensors(details["inputs"]),
            outputs=_tensors(details["outputs"]),
            layers=tuple(_layer(layer) for layer in details["layers"]),
            observable=bool(hello.flags & Flag.OBSERVE),
            workspace_io=bool(hello.flags & Flag.WORKSPACE_IO),
            has_state=bool(hello.flags & Flag.STATE),
            ticks_per_second=hello.ticks_per_second,
            details=details,
        )
        seen = (sum(t.size for t in info.inputs), sum(t.size for t in info.outputs), len(info.layers))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = shown(repr(error))
        raise DeviceError(f"{device} describes its model in a way that this uaccel cannot read: {why}") from error
    if seen != (hello.input_bytes, hello.output_bytes, hello.layers):
        raise DeviceError(f"{device} describes a model that is not the one it has: build its firmware anew")
    for tensors in (info.inputs, info.outputs):
        if len({tensor.name for tensor in tensors}) < len(tensors):
            raise DeviceError(f"{device} gives two tensors of its model one name: build its firmware anew")
    return info


def _tensors(rows: list[dict[str, Any]]) -> tuple[TensorType, ...]:
    return tuple(_tensor(row["name"], row) for row in rows)


def _tensor(name: Any, row: dict[str, Any]) -> TensorType:
    shape, dtype = tuple(row["shape"]), row["dtype"]
    if len(shape) > MOST_DIMENSIONS or not all(type(size) is int and 0 <= size < LONGEST_DIMENSION for size in shape):
        raise ValueError(f"a tensor is called {name!r}, with shape {shape!r}")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"a tensor has elements of {dtype!r}")
    return TensorType(_text(name), shape, dtype)


def _layer(row: dict[str, Any]) -> LayerInfo:
    name = row["name"]
    outputs = tuple(_tensor(name, output) for output in row["outputs"])
    return LayerInfo(_text(name), _text(row["op"]), _text(row["engine"]), bool(row.get("view")), outputs)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value


def _kinds(tensors: tuple[TensorType, ...]) -> Kinds:
    return tuple((tensor.shape, tensor.dtype) for tensor in tensors)
