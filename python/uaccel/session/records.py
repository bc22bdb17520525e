"""The records that the objects ``layers`` and ``times`` consist of."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from uaccel.cycles import Spot
from uaccel.errors import DeviceError
from uaccel.model import Array
from uaccel.session.description import ModelInfo

LAYER: Final = struct.Struct("<HHI")
"""layer, output, bytes; the data follows"""
TIME: Final = struct.Struct("<HQQ")
"""layer, ticks, instructions"""
INFERENCES: Final = struct.Struct("<I")
ACCOUNT: Final = struct.Struct("<HIQI")
"""layer, calls, cycles, fallbacks"""
NO_COUNT: Final = (1 << 64) - 1


class Waited(NamedTuple):
    """Cycles in which a simulated core finished no instruction while a bus of it was busy."""

    code: int
    data: int
    devices: int

    def to_json(self) -> dict[str, int]:
        return self._asdict()


@dataclass(frozen=True)
class LayerTime:
    """What one layer took; None where the device cannot measure it."""

    layer: int
    name: str
    seconds: float | None
    instructions: int | None
    cycles_estimated: int | None = None
    core_cycles: int | None = None
    """The core's own count."""
    waited: Waited | None = None
    hot: tuple[Spot, ...] = ()
    """Where they go, as far as that is known."""


@dataclass(frozen=True)
class Account:
    """What accelerators did for one layer in one inference: the mean, as every inference does the same.

    ``fallbacks``: in how many inferences of the session the CPU computed it in the accelerator's place.
    """

    calls: int
    cycles: int
    fallbacks: int = 0


def accounts(data: bytes, model: ModelInfo) -> dict[int, Account]:
    """By layer; those that called no accelerator are missing."""
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
    """By (layer, output)."""
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
    """As the device counted them, or by its clock where ``rate`` instructions make a second of that; else None."""
    if count != NO_COUNT:
        return count
    return round(ticks * rate / ticks_per_second) if rate and ticks_per_second else None


def layer_times(data: bytes, model: ModelInfo, rate: float | None = None) -> list[LayerTime]:
    """In order of execution; ``rate`` as in :func:`instructions_of`."""
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
