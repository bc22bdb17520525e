"""Streams for people: JSON that says all that the packed form says, constants included, and can be packed again."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import numpy as np

from uaccel.accelerator import AcceleratorError

from .commands import CHANNEL_BYTES, OPERATIONS, At, Command, Place, Stream, filter_bytes
from .packed import FORMAT, KINDS

TITLE: Final = "conveyor stream"
CHANNEL: Final = ("bias", "multiplier", "shift")


def to_json(stream: Stream, constants: bytes) -> str:
    """Weights are base64 text, as long as they are; everything else is numbers."""
    data = {
        "conveyor": TITLE,
        "format": FORMAT,
        "cycles": stream.cycles,
        "places": [{"kind": place.kind, "bytes": place.bytes} for place in stream.places],
        "commands": [_command_to_json(command, stream, constants) for command in stream.commands],
    }
    return json.dumps(data, indent=1) + "\n"


def from_json(text: str) -> tuple[Stream, bytes]:
    """The stream and its constants; pack() then gives the same bytes as ever."""
    try:
        data = json.loads(text)
        if data["conveyor"] != TITLE or data["format"] != FORMAT:
            raise ValueError(f"it is '{data['conveyor']}' of format {data['format']}, wanted '{TITLE}' of {FORMAT}")
        places = tuple(_place_from_json(place) for place in data["places"])
        constants = bytearray(sum(place.bytes for place in places if place.kind == "constants"))
        commands = tuple(_command_from_json(command, places, constants) for command in data["commands"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise AcceleratorError(f"conveyor: the stream's JSON cannot be packed: {what}") from error
    return Stream(places, commands), bytes(constants)


def constant_sizes(command: Command) -> dict[str, int]:
    """How long a command's tensors are where they lie among the constants, by role."""
    if command.operation == "add":
        return dict.fromkeys(("first", "second"), command.fields["elements"])
    if command.operation != "convolve":
        return {}
    channels = command.fields["out_channels"]
    return {"channels": channels * CHANNEL_BYTES, "filters": channels * filter_bytes(command.fields)}


def _command_to_json(command: Command, stream: Stream, constants: bytes) -> dict[str, Any]:
    sizes = constant_sizes(command)
    tensors: dict[str, Any] = {}
    for role, at in command.tensors.items():
        tensors[role] = {"place": at.place, "offset": at.offset}
        if stream.places[at.place].kind == "constants":
            held = constants[at.offset : at.offset + sizes[role]]
            tensors[role] |= _channels_to_json(held) if role == "channels" else {"data": _text(held)}
    return {"layer": command.layer, "operation": command.operation, "tensors": tensors, "fields": {**command.fields}}


def _channels_to_json(data: bytes) -> dict[str, list[int]]:
    columns = np.frombuffer(data, "<i4").reshape(-1, len(CHANNEL)).T.tolist()
    return dict(zip(CHANNEL, columns, strict=True))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _place_from_json(data: dict[str, Any]) -> Place:
    if data["kind"] not in KINDS:
        raise ValueError(f"a place of kind '{data['kind']}', wanted one of {', '.join(KINDS)}")
    return Place(data["kind"], int(data["bytes"]))


def _command_from_json(data: dict[str, Any], places: tuple[Place, ...], constants: bytearray) -> Command:
    operation = OPERATIONS.get(data["operation"])
    if operation is None:
        raise ValueError(f"no operation '{data['operation']}', wanted one of {', '.join(OPERATIONS)}")
    fields = {name: int(data["fields"][name]) for name in operation.fields}
    tensors = {role: _at_from_json(data["tensors"][role], len(places)) for role in operation.tensors}
    command = Command(data["operation"], tensors, fields, str(data["layer"]))
    for role, size in constant_sizes(command).items():
        at, given = tensors[role], data["tensors"][role]
        if places[at.place].kind == "constants":
            held = _channels_from_json(given) if role == "channels" else base64.b64decode(given["data"], validate=True)
            if len(held) != size or at.offset + size > len(constants):
                raise ValueError(f"'{role}' of '{command.layer}' has {len(held)} bytes, wanted {size} in its place")
            constants[at.offset : at.offset + size] = held
    return command


def _at_from_json(data: dict[str, Any], places: int) -> At:
    at = At(int(data["place"]), int(data["offset"]))
    if not 0 <= at.place < places or at.offset < 0:
        raise ValueError(f"a tensor at {at.offset} of place {at.place}, and there are {places} places")
    return at


def _channels_from_json(data: dict[str, Any]) -> bytes:
    return np.stack([np.array(data[name], np.int64) for name in CHANNEL], axis=1).astype("<i4").tobytes()
