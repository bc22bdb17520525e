"""Holds what running a compiled model takes, as plain data: its archive, its firmware's identity, its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uaccel.build.archive_reader import METADATA, Metadata
from uaccel.model import TensorSpec
from uaccel.session.description import Identity, Kinds
from uaccel.session.tensors import TensorType
from uaccel.util.text import round_up

ARRAY_ALIGNMENT: Final = 16  # Bytes; that of arrays with tensors, where no device wants more.


@dataclass(frozen=True)
class Firmware:
    """Describes a compiled model to those who build and run its firmware.

    ``metadata`` is the archive's, ``files`` gives all its files by path, ``archive`` is their digest. ``layers``: how
    many outputs each layer has. ``arena``, ``io``: bytes of the arena, and of inputs and outputs in the application.
    ``fed``: bytes of an input that is handed over in pieces. ``rows``: what reports say of the inputs."""

    name: str
    metadata: bytes
    files: Callable[[], Mapping[str, bytes]]
    archive: str
    identity: Identity
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    layers: tuple[int, ...]
    arena: int
    io: int
    fed: int = 0
    rows: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns what all else follows from but the files."""
        return {"archive": self.archive, "metadata": self.metadata.decode()}

    @classmethod
    def of(cls, metadata: Metadata, archive: str, files: Callable[[], Mapping[str, bytes]]) -> Firmware:
        """Describes what an archive's firmware is, as its metadata state it."""
        own, main, layers = metadata.at("uaccel"), metadata.main, metadata.at("uaccel", "layers")
        sides = [metadata.at("uaccel", side) for side in ("inputs", "outputs")]
        kinds = [_kinds((row["shape"], row["dtype"]) for row in side.values()) for side in sides]
        made = tuple(_kinds((row["shape"], row["dtype"]) for row in layer["outputs"]) for layer in layers)
        types = [
            _types((name, row["shape"], row["dtype"], row.get("range")) for name, row in side.items()) for side in sides
        ]
        devices = [engine for engine in metadata.at("uaccel", "accelerators") if engine.get("device", True)]
        alignment = max([ARRAY_ALIGNMENT, *(engine.get("alignment", 1) for engine in devices)])
        sizes = {name: row["size"] for name, row in main["inputs"].items()}
        fed = sizes.pop(own.get("fed"), 0)
        apart = [] if metadata.workspace_io else [*sizes.values(), *(row["size"] for row in main["outputs"].values())]
        model, build = metadata.at("uaccel", "model", "sha256"), metadata.at("uaccel", "build")
        return cls(
            metadata.model,
            metadata.text,
            files,
            archive,
            Identity(bytes.fromhex(model), bytes.fromhex(build), (kinds[0], kinds[1], made)),
            types[0],
            types[1],
            tuple(map(len, made)),
            main["workspace_size_bytes"],
            sum(round_up(size, alignment) for size in apart),
            fed,
            sides[0],
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any], files: Callable[[], Mapping[str, bytes]]) -> Firmware:
        return cls.of(Metadata.of({METADATA: data["metadata"].encode()}), data["archive"], files)


def tensor_types(specs: Iterable[TensorSpec]) -> list[TensorType]:
    """Returns name, shape and type of each tensor, as sessions use them."""
    return [TensorType(spec.name, spec.info.shape, spec.info.dtype, spec.range) for spec in specs]


def _kinds(rows: Iterable[Sequence[Any]]) -> Kinds:
    return tuple((tuple(shape), dtype) for shape, dtype in rows)


def _types(rows: Iterable[Sequence[Any]]) -> tuple[TensorType, ...]:
    return tuple(
        TensorType(name, tuple(shape), dtype, tuple(fits) if fits is not None else None)
        for name, shape, dtype, fits in rows
    )
