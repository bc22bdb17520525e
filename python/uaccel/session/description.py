"""What a device says of its model: the JSON that the generated description holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uaccel.errors import DeviceError
from uaccel.session.ids import Flag, HelloReply
from uaccel.session.tensors import TensorType


@dataclass(frozen=True)
class Identity:
    """Of a model and its generated code: SHA-256 of the model file, and the first 8 bytes of that of the code."""

    model_hash: bytes
    build: bytes


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


def read_description(hello: HelloReply, text: bytes, device: str) -> ModelInfo:
    """Refuses, with a :class:`DeviceError`, what does not fit together."""
    try:
        details = json.loads(text)
        info = ModelInfo(
            name=details["model"],
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
        raise DeviceError(f"{device} describes its model in a way that this uaccel cannot read: {error!r}") from error
    if seen != (hello.input_bytes, hello.output_bytes, hello.layers):
        raise DeviceError(f"{device} describes a model that is not the one it has: build its firmware anew")
    return info


def _tensors(rows: list[dict[str, Any]]) -> tuple[TensorType, ...]:
    return tuple(_tensor(row["name"], row) for row in rows)


def _tensor(name: Any, row: dict[str, Any]) -> TensorType:
    shape, dtype = tuple(row["shape"]), row["dtype"]
    if not isinstance(name, str) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"a tensor is called {name!r}, with shape {shape!r}")
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"a tensor has elements of {dtype!r}")
    return TensorType(name, shape, dtype)


def _layer(row: dict[str, Any]) -> LayerInfo:
    name = row["name"]
    outputs = tuple(_tensor(name, output) for output in row["outputs"])
    return LayerInfo(name, row["op"], row["engine"], bool(row.get("view")), outputs)
