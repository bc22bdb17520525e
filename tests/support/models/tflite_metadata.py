"""Writes metadata into a TFLite file, as the tools of tflite-support do, by the generic flatbuffer builder alone.

Fields are numbered as metadata_schema.fbs lists them: ``{0: name, 4: [units]}`` is a table.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers

AXIS, VALUES = 2, 3  # Kinds of files with labels.


@dataclass(frozen=True)
class Byte:
    """A field of one byte."""

    value: int


@dataclass(frozen=True)
class Floats:
    """A vector of float32."""

    values: Sequence[float]


@dataclass(frozen=True)
class About:
    """What the metadata say of one tensor. ``files``: names of label files with their kinds and languages."""

    mean: Sequence[float] = ()
    std: Sequence[float] = ()
    files: Sequence[tuple[str, int, str]] = field(default=())

    def table(self) -> dict[int, Any]:
        options = {0: Floats(self.mean), 1: Floats(self.std)}
        files = [{0: name, 2: Byte(kind), 3: locale} for name, kind, locale in self.files]
        threshold = {0: Byte(3), 1: {}}  # another process unit, which is to be passed over
        units = [threshold, {0: Byte(1), 1: options}] if self.mean or self.std else []
        return {0: "tensor", 1: "as it is", 4: units, 6: files}


def metadata(inputs: Sequence[About], outputs: Sequence[About]) -> bytes:
    """The buffer ``TFLITE_METADATA`` of a model with such inputs and outputs."""
    graph = {2: [about.table() for about in inputs], 3: [about.table() for about in outputs]}
    return finished({0: "model", 3: [graph]})


def with_files(model: bytes, files: Mapping[str, str | bytes]) -> bytes:
    """The model with a zip archive behind it, if there are any files."""
    if not files:
        return model
    stream = io.BytesIO(model)
    stream.seek(len(model))
    with zipfile.ZipFile(stream, "a") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def finished(root: Mapping[int, Any], identifier: bytes = b"M001") -> bytes:
    """A flatbuffer with this root."""
    builder: Any = flatbuffers.Builder(1024)
    builder.Finish(_table(builder, root), identifier)
    return bytes(builder.Output())


def _table(builder: Any, fields: Mapping[int, Any]) -> int:
    made = {number: _value(builder, value) for number, value in fields.items()}
    builder.StartObject(max(fields, default=-1) + 1)
    for number, value in made.items():
        if isinstance(fields[number], Byte):
            builder.PrependUint8Slot(number, fields[number].value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(number, value, 0)
    return int(builder.EndObject())


def _value(builder: Any, value: Any) -> int:
    if isinstance(value, Byte):
        return 0
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, Mapping):
        return _table(builder, value)
    if isinstance(value, Floats):
        builder.StartVector(4, len(value.values), 4)
        for number in reversed(value.values):
            builder.PrependFloat32(number)
        return int(builder.EndVector())
    tables = [_table(builder, entry) for entry in value]
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    return int(builder.EndVector())


def damaged_root(data: bytes) -> bytes:
    """The flatbuffer with a root that lies outside of it."""
    return struct.pack("<I", 1 << 30) + data[4:]
