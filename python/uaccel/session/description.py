"""Reads what a device says of its model: the description, and the records of layers, times and accelerators."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from uaccel.cycles import Spot
from uaccel.errors import DeviceError, InputError
from uaccel.model import Array
from uaccel.session.message import describe_bytes
from uaccel.session.protocol_ids import Flag, HelloReply, WriteState
from uaccel.session.tensors import TensorType

# Description: the JSON that generated code holds of its model. Another program may run on the board, so that all of it
# is checked before use.

LARGEST_DESCRIPTION: Final = 1 << 22  # Bytes; a layer takes some 150 of them.
DTYPES: Final = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)
MOST_DIMENSIONS: Final = 32
LONGEST_DIMENSION: Final = 1 << 32

Kinds: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]  # Shape and element type of each tensor.
Tensors: TypeAlias = tuple[Kinds, Kinds, tuple[Kinds, ...]]  # The same for inputs, outputs and every layer.


@dataclass(frozen=True)
class Identity:
    """Identifies a model and its generated code: SHA-256 of the model file, and the first 8 bytes of the code's."""

    model_hash: bytes
    build: bytes
    # The tensors that a description must state, if the caller knows them.
    tensors: Tensors | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LayerInfo:
    """Describes one layer; a ``view`` is another name for its input and is never executed."""

    name: str
    op: str
    engine: str
    view: bool
    outputs: tuple[TensorType, ...]


@dataclass(frozen=True)
class ModelInfo:
    """Describes the model that the device runs, and what its firmware can do."""

    name: str
    identity: Identity
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    layers: tuple[LayerInfo, ...]
    observable: bool  # Layers can be read and timed.
    workspace_io: bool  # A run uses the inputs up.
    has_state: bool  # It keeps a state from one inference to the next.
    ticks_per_second: int
    details: Mapping[str, Any]  # The whole description, with quantisation and provenance.
    state: tuple[tuple[int, TensorType], ...] = ()  # The tensors of the state, each behind its offset.

    @property
    def tensors(self) -> Tensors:
        return _kinds(self.inputs), _kinds(self.outputs), tuple(_kinds(layer.outputs) for layer in self.layers)


def read_description(hello: HelloReply, text: bytes, device: str) -> ModelInfo:
    """Reads a description, and raises a :class:`DeviceError` where it contradicts itself or ``hello``."""
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
            state=tuple((_offset(row["offset"]), _tensor_type(row["name"], row)) for row in details.get("state", [])),
        )
        seen = (sum(t.size for t in info.inputs), sum(t.size for t in info.outputs), len(info.layers))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = describe_bytes(repr(error))
        raise DeviceError(f"{device} describes its model in a way that this uaccel cannot read: {why}") from error
    if seen != (hello.input_bytes, hello.output_bytes, hello.layers):
        raise DeviceError(f"{device} describes a model that is not the one it has: build its firmware anew")
    for tensors in (info.inputs, info.outputs, tuple(tensor for _, tensor in info.state)):
        if len({tensor.name for tensor in tensors}) < len(tensors):
            raise DeviceError(f"{device} gives two tensors of its model one name: build its firmware anew")
    return info


def _tensors(rows: list[dict[str, Any]]) -> tuple[TensorType, ...]:
    return tuple(_tensor_type(row["name"], row) for row in rows)


def _offset(given: Any) -> int:
    if type(given) is not int or not 0 <= given < LONGEST_DIMENSION:
        raise ValueError(f"a tensor of the state lies at {given!r}")
    return given


def _tensor_type(name: Any, row: dict[str, Any]) -> TensorType:
    shape, dtype = tuple(row["shape"]), row["dtype"]
    if len(shape) > MOST_DIMENSIONS or not all(type(size) is int and 0 <= size < LONGEST_DIMENSION for size in shape):
        raise ValueError(f"a tensor is called {name!r}, with shape {shape!r}")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"a tensor has elements of {dtype!r}")
    return TensorType(_text(name), shape, dtype, _range(row.get("range")))


def _range(given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    low, high = given
    if type(low) is not int or type(high) is not int or not low <= high < LONGEST_DIMENSION:
        raise ValueError(f"a tensor holds numbers of the range {given!r}")
    return low, high


def _layer(row: dict[str, Any]) -> LayerInfo:
    name = row["name"]
    outputs = tuple(_tensor_type(name, output) for output in row["outputs"])
    return LayerInfo(_text(name), _text(row["op"]), _text(row["engine"]), bool(row.get("view")), outputs)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value


def _kinds(tensors: tuple[TensorType, ...]) -> Kinds:
    return tuple((tensor.shape, tensor.dtype) for tensor in tensors)


# Object ``state``: its tensors at their offsets, and at its end the mark by which the device knows its own.

State: TypeAlias = tuple[tuple[int, TensorType], ...]  # Each tensor of a state behind its offset.
STATE_ID: Final = "uaccel_state_id"  # The mark's name among the arrays of a state.
MARK: Final = struct.Struct("<I")
TAKE: Final = "write what read_state gave of this firmware"


def state_arrays(tensors: State, data: bytes) -> dict[str, Array]:
    """The tensors of a state by name, and its mark."""
    end = len(data) - MARK.size
    if end < max(offset + tensor.size for offset, tensor in tensors):
        raise DeviceError("the device sent a state that is cut short: build its firmware with this uaccel")
    found = {tensor.name: tensor.unpack(data[offset : offset + tensor.size]) for offset, tensor in tensors}
    return {**found, STATE_ID: np.array(MARK.unpack_from(data, end)[0], np.uint32)}


def state_pieces(tensors: State, state: Mapping[str, Array], body_bytes: int) -> list[WriteState]:
    """The requests that write a state, as :func:`state_arrays` gives it, with bodies of at most so many bytes."""
    names = [*(tensor.name for _, tensor in tensors), STATE_ID]
    if set(state) != set(names):
        raise InputError(f"tensors {sorted(state)} of a state were given; the model's are {names}; {TAKE}")
    mark = np.asarray(state[STATE_ID])
    if mark.dtype != np.uint32 or mark.shape != ():
        raise InputError(f'"{STATE_ID}" of the state is {mark.dtype} {list(mark.shape)}, wanted a uint32; {TAKE}')
    room = body_bytes - WriteState.LAYOUT.size
    return [
        WriteState(int(mark), offset + begin, data[begin : begin + room])
        for offset, data in [(offset, tensor.pack(state[tensor.name], "state")) for offset, tensor in tensors]
        for begin in range(0, len(data), room)
    ]


# Records of the objects ``layers``, ``times`` and ``accounts``.

LAYER: Final = struct.Struct("<HHI")  # layer, output, bytes; the data follows
TIME: Final = struct.Struct("<HQQ")  # layer, ticks, instructions
INFERENCES: Final = struct.Struct("<I")
ACCOUNT: Final = struct.Struct("<HIQI")  # layer, calls, cycles, fallbacks
NO_COUNT: Final = (1 << 64) - 1  # All ones: the device cannot count instructions.


class Waited(NamedTuple):
    """Counts the cycles in which a core waited for a bus: a simulated one by its own count, an emulated one by a model
    of the memories that its board file calls slow."""

    code: int
    data: int
    devices: int

    def to_json(self) -> dict[str, int]:
        return self._asdict()


@dataclass(frozen=True)
class LayerTime:
    """Holds what one layer took; None where the device cannot measure it."""

    layer: int
    name: str
    seconds: float | None
    instructions: int | None
    cycles_estimated: int | None = None
    core_cycles: int | None = None  # The core's own count.
    waited: Waited | None = None
    hot: tuple[Spot, ...] = ()  # The loops that take most of them, as far as that is known.

    def alone(self, waiting: int) -> int | None:
        """The CPU's cycles without the ``waiting`` for an accelerator, which a core's own count includes."""
        return self.cycles_estimated if self.core_cycles is None else max(0, self.core_cycles - waiting)


@dataclass(frozen=True)
class Account:
    """Holds what accelerators did for one layer in one inference: the mean, since every inference does the same.

    ``fallbacks`` counts the inferences of the session in which the CPU took the accelerator's place.
    """

    calls: int
    cycles: int
    fallbacks: int = 0


def accounts(data: bytes, model: ModelInfo) -> dict[int, Account]:
    """The accounts by layer; layers that called no accelerator are missing."""
    (inferences,) = _unpack(INFERENCES, data, 0)
    found = {}
    for position in range(INFERENCES.size, len(data), ACCOUNT.size):
        layer, calls, cycles, fallbacks = _unpack(ACCOUNT, data, position)
        if layer >= len(model.layers):
            raise _unknown(layer)
        found[layer] = Account(round(calls / max(1, inferences)), round(cycles / max(1, inferences)), fallbacks)
    return found


def _unknown(layer: int) -> DeviceError:
    return DeviceError(f"the device speaks of layer {layer}, which the model does not have")


def layer_outputs(data: bytes, model: ModelInfo) -> dict[tuple[int, int], Array]:
    """The tensors of object ``layers`` by (layer, output)."""
    found, position = {}, 0
    while position < len(data):
        layer, output, size = _unpack(LAYER, data, position)
        position += LAYER.size
        found[layer, output] = _tensor(model, layer, output, data[position : position + size])
        position += size
    return found


def _tensor(model: ModelInfo, layer: int, output: int, data: bytes) -> Array:
    if layer >= len(model.layers) or output >= len(model.layers[layer].outputs):
        raise DeviceError(f"the device speaks of output {output} of layer {layer}, which the model does not have")
    return model.layers[layer].outputs[output].unpack(data)


def instructions_of(count: int, ticks: int, ticks_per_second: int, rate: float | None) -> int | None:
    """Instructions as the device counted them; else by its clock, if ``rate`` instructions make a second; else None."""
    if count != NO_COUNT:
        return count
    return round(ticks * rate / ticks_per_second) if rate and ticks_per_second else None


def layer_times(data: bytes, model: ModelInfo, rate: float | None = None) -> list[LayerTime]:
    """The times of layers in order of execution; ``rate`` as in :func:`instructions_of`."""
    times = []
    for position in range(0, len(data), TIME.size):
        layer, ticks, instructions = _unpack(TIME, data, position)
        if layer >= len(model.layers):
            raise _unknown(layer)
        seconds = ticks / model.ticks_per_second if model.ticks_per_second else None
        counted = instructions_of(instructions, ticks, model.ticks_per_second, rate)
        times.append(LayerTime(layer, model.layers[layer].name, seconds, counted))
    return times


def _unpack(layout: struct.Struct, data: bytes, position: int) -> tuple[int, ...]:
    if position + layout.size > len(data):
        raise DeviceError("the device sent a record that is cut short: build its firmware with this uaccel")
    return layout.unpack_from(data, position)
