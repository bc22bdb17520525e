"""Holds what running a compiled model takes, as plain data: its archive, its firmware's identity, its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uaccel.build.archive_reader import METADATA, Metadata
from uaccel.errors import UaccelError
from uaccel.model import TensorSpec
from uaccel.session.description import Identity, Kinds
from uaccel.session.tensors import TensorType
from uaccel.util.text import CPU, round_up

ELEMENT_ALIGNMENT: Final = 4  # Bytes; that of any address of a tensor, whatever a device wants.
ARRAY_ALIGNMENT: Final = 16  # Bytes; that of arrays with tensors, where no device wants more.


@dataclass(frozen=True)
class ArchiveLayers:
    """Reads the rows of an archive's ``meanings``. Anybody may have written them, so numbers of layers are checked."""

    rows: Sequence[Mapping[str, Any]]
    layers: Sequence[Mapping[str, Any]]
    engines: Mapping[str, Mapping[str, Any]]
    least_tolerance: float = 0  # Of an archive of an older version, which tells of engines only.

    @classmethod
    def read(cls, metadata: Metadata) -> ArchiveLayers:
        layers, rows = metadata.at("uaccel", "layers"), metadata.at("uaccel").get("meanings", [])
        for number, row in enumerate(rows):
            outputs = layers[row["layer"]]["outputs"] if row["layer"] < len(layers) else None
            count = len(outputs or ())
            sound = outputs is not None and len(row["tensors"]) in (0, count)
            sound = sound and all(i < len(row["tensors"]) for i in row["watched"])
            if not sound or any(index >= row["layer"] for index in row["with"]):
                raise wrong_archive(f"meanings[{number}] is about layers or outputs that there are not")
        engines = {engine["name"]: engine for engine in metadata.at("uaccel", "accelerators")}
        known = "meanings" in metadata.at("uaccel")
        return cls(rows, layers, engines, 0 if known else max((e["tolerance"] for e in engines.values()), default=0))

    @property
    def exact(self) -> bool:
        """Whether all engines claim the model's own arithmetic."""
        return not self.tolerance and not any(row["golden"] for row in self.rows)

    @property
    def tolerance(self) -> float:
        """The most that any of the layers may be off."""
        return max((row["tolerance"] for row in self.rows), default=self.least_tolerance)

    def to_read(self, *, every_layer: bool, alone: bool = False) -> Sequence[int]:
        """Returns the layers whose outputs verification reads: those before operators that hide differences.

        It reads all where layers are asked for, or where an accelerator does not claim the model's own arithmetic: then
        layers must be judged one by one. If the archive is ``alone``, these are the ones that it tells of. It reads
        one at least where an accelerator wants aligned addresses, since only firmware that is watched checks them."""
        known = [row for row in self.rows if row["tensors"]]
        if every_layer or not self.exact:
            return [row["layer"] for row in known] if alone else range(len(self.layers))
        checked = [layer["index"] for layer in self.layers if self._alignment(layer["engine"]) > ELEMENT_ALIGNMENT]
        return [row["layer"] for row in known if row["watched"]] or checked[:1]

    def _alignment(self, name: str) -> int:
        engine = self.engines.get(name, {})
        return engine.get("alignment", 1) if engine.get("device", True) else 1


def wrong_archive(what: str) -> UaccelError:
    return UaccelError(f"{METADATA} of the archive: {what}; compile the model with this uaccel")


@dataclass(frozen=True)
class Firmware:
    """Describes a compiled model to those who build and run its firmware.

    ``metadata`` is the archive's, ``files`` gives all its files by path, ``archive`` is their digest. ``layers``: how
    many outputs each layer has. ``arena``, ``io``: bytes of the arena, and of inputs and outputs in the application.
    ``fed``: bytes of an input that is handed over in pieces. ``rows``: what reports say of the inputs."""

    name: str
    metadata: Metadata
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
        return {"archive": self.archive, "metadata": self.metadata.text.decode()}

    @property
    def facts(self) -> Sequence[Mapping[str, Any]]:
        """What the archive tells of each layer."""
        found: Sequence[Mapping[str, Any]] = self.metadata.at("uaccel", "layers")
        return found

    @property
    def offloads(self) -> bool:
        """Whether accelerators compute anything."""
        return any(layer["engine"] != CPU for layer in self.facts)

    @property
    def has_state(self) -> bool:
        """Whether the model keeps a state between inferences."""
        return "state" in self.metadata.at("uaccel")

    @classmethod
    def of(cls, metadata: Metadata, archive: str, files: Callable[[], Mapping[str, bytes]]) -> Firmware:
        """Describes what an archive's firmware is, as its metadata state it."""
        own, main, layers = metadata.at("uaccel"), metadata.main, metadata.at("uaccel", "layers")
        sides = [metadata.at("uaccel", side) for side in ("inputs", "outputs")]
        kinds = [_kinds((row["shape"], row["dtype"]) for row in side.values()) for side in sides]
        made = tuple(_kinds((row["shape"], row["dtype"]) for row in layer["outputs"]) for layer in layers)
        types = [tuple(_type(name, row) for name, row in side.items()) for side in sides]
        devices = [engine for engine in metadata.at("uaccel", "accelerators") if engine.get("device", True)]
        alignment = max([ARRAY_ALIGNMENT, *(engine.get("alignment", 1) for engine in devices)])
        sizes = {name: row["size"] for name, row in main["inputs"].items()}
        fed = sizes.pop(own.get("fed"), 0)
        apart = [] if metadata.workspace_io else [*sizes.values(), *(row["size"] for row in main["outputs"].values())]
        model, build = metadata.at("uaccel", "model", "sha256"), metadata.at("uaccel", "build")
        return cls(
            metadata.model,
            metadata,
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


def _type(name: str, row: Mapping[str, Any]) -> TensorType:
    fits = row.get("range")
    return TensorType(name, tuple(row["shape"]), row["dtype"], None if fits is None else tuple(fits))
