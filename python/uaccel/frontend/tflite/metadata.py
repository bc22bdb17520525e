"""Reads the metadata of TFLite files: how an input is normalised, and the names of an output's classes.

They are a flatbuffer of their own (identifier ``M001``) in the buffer ``TFLITE_METADATA``. The files that it names lie
in a zip archive behind the model. Nothing of it changes what the model computes, so damage is only a warning.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

from uaccel.errors import need
from uaccel.frontend.tflite.reader import DAMAGE, TfliteGraph
from uaccel.model import Normalisation, TensorSpec

NAME: Final = b"TFLITE_METADATA"
IDENTIFIER: Final = b"M001"
MOST_ENTRIES: Final = 10_000  # Of a vector.
MOST_LABELS: Final = 1 << 20  # Bytes of a file of labels.
LONGEST: Final = 200  # Characters of a label.
LEFT_OUT: Final = "labels and normalisation are left out"

# Places of fields in their tables, as metadata_schema.fbs numbers them: 4, and two more for each field before it.
_SUBGRAPHS, _INPUTS, _OUTPUTS = 10, 8, 10
_UNITS, _TENSOR_FILES, _FILE_NAME, _FILE_KIND, _LOCALE = 12, 16, 4, 8, 10
_OPTIONS_KIND, _OPTIONS, _MEAN, _STD = 4, 6, 4, 6
_NORMALIZATION: Final = 1  # Of a process unit's options.
_AXIS_LABELS, _VALUE_LABELS = 2, 3  # Kinds of files.

_ERRORS: Final = (*DAMAGE, zipfile.BadZipFile, KeyError, RuntimeError, EOFError, OSError)


class _Node:
    """Reads fields of a table by their places; whatever lies outside of the data raises one of ``DAMAGE``."""

    def __init__(self, data: bytes, position: int) -> None:
        need(0 <= position <= len(data) - 4, f"a table lies at {position}", ValueError)
        self._data, self._table = data, Table(data, position)

    def byte(self, slot: int) -> int:
        offset = self._table.Offset(slot)
        return int(self._table.Get(number_types.Uint8Flags, self._table.Pos + offset)) if offset else 0

    def text(self, slot: int) -> str:
        offset = self._table.Offset(slot)
        return bytes(self._table.String(self._table.Pos + offset)).decode() if offset else ""

    def table(self, slot: int) -> _Node | None:
        offset = self._table.Offset(slot)
        return _Node(self._data, self._table.Indirect(self._table.Pos + offset)) if offset else None

    def tables(self, slot: int) -> Iterator[_Node]:
        start, count = self._vector(slot)
        return (_Node(self._data, self._table.Indirect(start + 4 * index)) for index in range(count))

    def floats(self, slot: int) -> tuple[float, ...]:
        start, count = self._vector(slot)
        return tuple(np.frombuffer(self._data, "<f4", count, start).tolist()) if count else ()

    def _vector(self, slot: int) -> tuple[int, int]:
        """Returns where a vector of 4-byte entries begins, and how many there are."""
        offset = self._table.Offset(slot)
        if not offset:
            return 0, 0
        start, count = self._table.Vector(offset), self._table.VectorLen(offset)
        if not 0 <= count <= MOST_ENTRIES or start + 4 * count > len(self._data):
            raise ValueError(f"a vector claims {count} entries")
        return int(start), int(count)


@dataclass(frozen=True)
class Described:
    """Holds inputs and outputs with what metadata say of them, and what could not be read."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    warnings: tuple[str, ...] = ()


def described(
    graph: TfliteGraph, data: bytes, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]
) -> Described:
    """Adds normalisation and labels to the inputs and outputs of a file; ``data`` are all its bytes."""
    try:
        content = _content(graph.file)
        if content is None:
            return Described(inputs, outputs)
        return _Reader(data).described(content, inputs, outputs)
    except _ERRORS as error:
        reason = str(error) or type(error).__name__
        return Described(inputs, outputs, (f"the metadata of the file cannot be read ({reason}); {LEFT_OUT}",))


def _content(model: Any) -> bytes | None:
    for index in range(min(model.MetadataLength(), MOST_ENTRIES)):
        entry = model.Metadata(index)
        if entry.Name() == NAME:
            number = entry.Buffer()
            need(0 < number < model.BuffersLength(), f"they lie in buffer {number}", ValueError)
            content = bytes(np.asarray(model.Buffers(number).DataAsNumpy()))
            if content[4:8] != IDENTIFIER:
                raise ValueError(f"bytes 4 to 8 are {content[4:8]!r}, wanted {IDENTIFIER!r}")
            return content
    return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._warnings: list[str] = []

    def described(self, content: bytes, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Described:
        root = _Node(content, int.from_bytes(content[:4], "little"))
        graph = next(root.tables(_SUBGRAPHS), None)
        if graph is None:
            return Described(inputs, outputs)
        given = self._side("input", inputs, list(graph.tables(_INPUTS)))
        made = self._side("output", outputs, list(graph.tables(_OUTPUTS)))
        return Described(given, made, tuple(self._warnings))

    def _side(self, side: str, specs: tuple[TensorSpec, ...], nodes: Sequence[_Node]) -> tuple[TensorSpec, ...]:
        """Describes tensors in the file's order; metadata of another number of tensors belong to another model."""
        if nodes and len(nodes) != len(specs):
            self._warnings.append(
                f"the metadata of the file describe {len(nodes)} {side}s, and it has {len(specs)}; these are left out"
            )
        if len(nodes) != len(specs):
            return specs
        return tuple(self._tensor(f'{side} "{spec.name}"', spec, node) for spec, node in zip(specs, nodes, strict=True))

    def _tensor(self, what: str, spec: TensorSpec, node: _Node) -> TensorSpec:
        """Adds what one tensor's metadata say; what is wrong with one is no reason to leave out others."""
        try:
            found = replace(spec, normalisation=_normalisation(spec, node))
            return replace(found, labels=self._labels(spec, node))
        except _ERRORS as error:
            words = str(error.args[0]) if isinstance(error, KeyError) else str(error)
            reason = words or type(error).__name__
            self._warnings.append(f"the metadata of {what} cannot be used ({reason}); {LEFT_OUT}")
            return spec

    def _labels(self, spec: TensorSpec, node: _Node) -> tuple[str, ...]:
        """Reads the labels of an output: of the first file without a language, else of the first one."""
        kinds = {_AXIS_LABELS, _VALUE_LABELS}
        files = sorted((f for f in node.tables(_TENSOR_FILES) if f.byte(_FILE_KIND) in kinds), key=_has_locale)
        if not files:
            return ()
        name = files[0].text(_FILE_NAME)
        with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
            if archive.getinfo(name).file_size > MOST_LABELS:
                raise ValueError(
                    f"{name} has {archive.getinfo(name).file_size} bytes, and at most {MOST_LABELS} are read"
                )
            text = archive.read(name).decode()
        labels = tuple(line.strip()[:LONGEST] for line in text.rstrip().splitlines())
        if files[0].byte(_FILE_KIND) == _AXIS_LABELS and len(labels) not in spec.info.shape:
            raise ValueError(f"{name} has {len(labels)} labels, and the tensor is {spec.info}")
        return labels


def _has_locale(file: _Node) -> bool:
    return bool(file.text(_LOCALE))


def _normalisation(spec: TensorSpec, node: _Node) -> Normalisation | None:
    units = (unit for unit in node.tables(_UNITS) if unit.byte(_OPTIONS_KIND) == _NORMALIZATION)
    options = next((unit.table(_OPTIONS) for unit in units), None)
    if options is None:
        return None
    mean, std = options.floats(_MEAN), options.floats(_STD)
    channels = spec.info.shape[-1] if spec.info.shape else 1
    if not {len(mean), len(std)} <= {1, channels}:
        raise ValueError(f"{len(mean)} means and {len(std)} deviations are given for {channels} channels")
    if not np.isfinite([*mean, *std]).all() or 0.0 in std:
        raise ValueError("a mean or deviation is no number to calculate with")
    return Normalisation(mean, std)
