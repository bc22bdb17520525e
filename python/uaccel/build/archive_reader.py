"""Reads and checks the metadata of a Model Library Format archive, and tells which devices its project needs."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from uaccel.board import Board, QemuRun, RtlRun
from uaccel.board.accelerator_devices import CXX, FILE, DeviceBuild, board_devices_source, rack_source
from uaccel.errors import UaccelError, escape_terminal, need
from uaccel.model import ModelFile
from uaccel.util import incoming
from uaccel.util.favour import Favour
from uaccel.util.files import data_dir, parse_json
from uaccel.util.form import (
    FLAG,
    INDEX,
    NUMBER,
    OBJECT,
    SHAPE,
    TEXT,
    WHOLE,
    Maybe,
    Named,
    Value,
    complaint,
    digits,
    optional,
)

# The form of an archive's ``metadata.json``, as far as uaccel reads it.

_SIZES: Final = Named({"size": WHOLE})
_MAIN: Final = {
    **dict.fromkeys(("workspace_size_bytes", "constants_size_bytes", "io_size_bytes"), WHOLE),
    **dict.fromkeys(("inputs", "outputs"), _SIZES),
}
_RANGE: Final = Value(
    "a least and a largest number", lambda value: isinstance(value, list) and list(map(type, value)) == [int, int]
)
_TENSOR: Final = {"shape": SHAPE, "dtype": TEXT, "range?": _RANGE}
_POOL: Final = {"name": TEXT, "bytes": WHOLE}
_COVERED: Final = {
    **dict.fromkeys(("name", "op", "reason", "tensor"), TEXT),
    "operator": INDEX,
    "macs": WHOLE,
    "shape": SHAPE,
}
_LAYER: Final = {
    **dict.fromkeys(("name", "op", "engine", "reason", "refused", "tensor", "variant"), TEXT),
    **dict.fromkeys(("index", "macs"), WHOLE),
    "operator": INDEX,
    "covers": [_COVERED],
    "outputs": [_TENSOR],
    "commands?": [TEXT],
}
_MEANING: Final = {
    "layer": WHOLE,
    "tensors": [{"name": TEXT, "result": WHOLE}],
    "watched": [WHOLE],
    "with": [WHOLE],
    "tolerance": NUMBER,
    "golden": FLAG,
}
# Whoever reads a key complains if it is missing.
_OWN: Final = optional(
    board=TEXT,
    workspace_io=FLAG,
    fed=TEXT,
    favour=TEXT,
    model=optional(name=TEXT, file=Maybe(TEXT), file_sha256=Maybe(digits(64)), sha256=digits(64)),
    build=digits(16),
    inputs=Named(_TENSOR),
    outputs=Named(_TENSOR),
    arena={"lower_bound": WHOLE},
    pools=Maybe([_POOL]),
    constant_pools=Maybe([{**_POOL, "copied": FLAG}]),
    constants={"file": TEXT, "byte_order": TEXT},
    requires=[TEXT],
    device_constants=WHOLE,
    accelerators=[{"name": TEXT, "tolerance": NUMBER, "device?": FLAG, "alignment?": WHOLE}],
    layers=[_LAYER],
    meanings=[_MEANING],
    warnings=[TEXT],
    state={"bytes": WHOLE, "tensors": Named(_TENSOR), "bound?": [TEXT]},
)
_MODULE: Final = {"memory": {"functions": {"main": [_MAIN]}}}
FOREIGN: Final = {"modules?": Named(OBJECT, in_c=True)}
OWN: Final = {"modules?": Named(_MODULE, in_c=True), "uaccel": _OWN}


def wrong_with(document: dict[str, Any]) -> str:
    """The first thing that is wrong with metadata, and where; empty if nothing is. An archive of another compiler has
    no facts of uaccel's to check."""
    return complaint(document, OWN if "uaccel" in document else FOREIGN)


# Reading an archive without unpacking it: its metadata, and the model to compare firmware with.
#
# The Project API server unpacks and checks everything else when it makes a project.

METADATA: Final = "metadata.json"
ZIP: Final = b"PK\3\4"  # The first bytes of a zip.
VERSION: Final = 7  # The supported version of the Model Library Format.
LONGEST: Final = 1 << 26  # Bytes of metadata that are read, at most.
LONGEST_MODEL: Final = 1 << 28  # Bytes of a model that are read, at most.
MOST_MEMBERS: Final = 10_000


@dataclass(frozen=True)
class Metadata:
    """Holds ``metadata.json`` of an archive, as text and as data that has been checked against its form."""

    text: bytes
    data: dict[str, Any]

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> Metadata:
        """The metadata of an archive that was made here, by its files."""
        return cls(files[METADATA], parse_json(files[METADATA]))

    @property
    def model(self) -> str:
        """The model's name in C."""
        return next(iter(self.data.get("modules", {})), "unknown")

    @property
    def board(self) -> str | None:
        """The board that the model was compiled for."""
        return self._own.get("board")

    @property
    def workspace_io(self) -> bool:
        """Whether inputs and outputs lie in the arena."""
        return self._own.get("workspace_io") is True

    @property
    def favour(self) -> str:
        """What the compilation was optimised for; ``balanced`` where an archive of an older uaccel does not say."""
        return str(self._own.get("favour", Favour.balanced.value))

    @property
    def bound(self) -> list[str]:
        """Outputs of the model's file that are inputs of the next inference, as words ``OUT=IN``."""
        return list(self._own.get("state", {}).get("bound", []))

    @property
    def requires(self) -> list[str]:
        """The CPU features that its kernels need beyond the base architecture."""
        return list(self._own.get("requires", []))

    @property
    def _own(self) -> dict[str, Any]:
        """uaccel's facts; an archive of microTVM has none."""
        own: dict[str, Any] = self.data.get("uaccel", {})
        return own

    @property
    def main(self) -> dict[str, Any]:
        """The memory that the run function takes."""
        main: dict[str, Any] = self.at("modules", self.model, "memory", "functions", "main", 0)
        return main

    def at(self, *keys: str | int) -> Any:
        """The value at a path of keys; an archive that lacks it is not uaccel's."""
        value: Any = self.data
        try:
            for key in keys:
                value = value[key]
        except (KeyError, IndexError, TypeError):
            path = ".".join(map(str, keys))
            raise UaccelError(f"{METADATA} of the archive has no {path}; compile the model with this uaccel") from None
        return value


def read_metadata(archive: Path) -> Metadata:
    """The metadata of an archive; a file of another format is refused. Other members are not looked at."""
    kind = "a folder" if archive.is_dir() else "a zip" if _begin(archive) == ZIP else ""
    if kind:
        wanted = "projects are made of the tar that 'uaccel compile -o X.tar' writes"
        raise UaccelError(f"archive {archive} is {kind}; {wanted}")
    data = read_member(archive, METADATA, LONGEST)
    if data is None:
        raise UaccelError(f"archive {archive} has no {METADATA}; wanted an archive that 'uaccel compile' wrote")
    return _parse(archive, data)


def read_model(archive: Path, metadata: Metadata) -> ModelFile:
    """The model that the archive was made of, with the shapes and weights that its own file may have left out. It must
    have the digest that the metadata states."""
    name, digest = metadata.at("uaccel", "model", "file"), metadata.at("uaccel", "model").get("file_sha256")
    data = read_member(archive, name, LONGEST_MODEL) if name is not None else None
    if data is None:
        raise UaccelError(f"archive {archive} does not hold its model; compile the model with this uaccel")
    if hashlib.sha256(data).hexdigest() != digest:
        raise UaccelError(f"archive {archive}: {name} is not the model that its code was made of; compile it anew")
    return ModelFile(PurePosixPath(name).suffix, data)


def _begin(file: Path) -> bytes:
    try:
        with incoming.opened(file, incoming.ARCHIVE) as stream:
            return stream.read(len(ZIP))
    except OSError:
        return b""


def read_member(archive: Path, name: str, longest: int = LONGEST) -> bytes | None:
    """The content of one member; None where it is not there."""
    try:
        with incoming.opened(archive, incoming.ARCHIVE) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            return _find(archive, tar, name, longest)
    except OSError as error:
        raise UaccelError(f"cannot read archive {archive}: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise UaccelError(f"archive {archive} is no tar file or is damaged ({words}); make it anew") from error


def _find(archive: Path, tar: tarfile.TarFile, name: str, longest: int) -> bytes | None:
    for count, member in enumerate(tar):
        if member.name.removeprefix("./") == name and member.isreg() and not member.issparse():
            if not 0 <= member.size <= longest:
                raise UaccelError(f"archive {archive}: {name} has {member.size} bytes; wanted at most {longest}")
            stream = tar.extractfile(member)
            data = b"" if stream is None else stream.read()
            need(len(data) >= member.size, f"archive {archive} is truncated; make it anew", UaccelError)
            return data
        need(count < MOST_MEMBERS, f"archive {archive} has more than {MOST_MEMBERS} members", UaccelError)
    return None


def _parse(archive: Path, text: bytes) -> Metadata:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise UaccelError(f"archive {archive}: {METADATA} is not JSON: {error}") from error
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UaccelError(f"archive {archive}: {METADATA} has no version; wanted Model Library Format {VERSION}")
    if version != VERSION:
        remedy = "use a newer uaccel" if version > VERSION else "compile the model anew"
        raise UaccelError(f"archive {archive} is of Model Library Format {version}; wanted {VERSION}: {remedy}")
    wrong = wrong_with(data)
    if wrong:
        raise UaccelError(f"archive {archive}: in {METADATA} {escape_terminal(wrong)}; compile the model anew")
    return Metadata(text, data)


# Devices of a project's accelerators: their models, and the C that names them.

# The folder in a project that has one folder for each accelerator, with ``driver`` and ``device``.
FOLDER: Final = "accelerators"


@dataclass(frozen=True)
class DeviceModel:
    """Describes the model of a device; its sources lie in ``folder`` or below."""

    name: str
    folder: Path

    @property
    def sources(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in (".c", *CXX))

    @property
    def includes(self) -> list[Path]:
        return [self.folder, *(self.folder / name for name in self.build.includes)]

    @property
    def build(self) -> DeviceBuild:
        """Compiler flags, include folders and libraries that it needs."""
        file = self.folder / FILE
        return DeviceBuild.of(incoming.read_text(file)) if file.is_file() else DeviceBuild()


def project_devices(project: Path) -> list[DeviceModel]:
    """The devices of the accelerators that the project's model uses."""
    folders = sorted((project / FOLDER).glob("*/device"))
    return [DeviceModel(folder.parent.name, folder) for folder in folders if folder.is_dir()]


def project_unit(project: Path) -> Path | None:
    """The folder of the accelerator whose custom instructions the project's model uses; None without one that has
    RTL."""
    found = sorted(path.parent for path in (project / FOLDER).glob("*/unit") if (path.parent / "rtl").is_dir())
    return found[0] if found else None


def hal_folders(board: Board) -> list[Path]:
    """The folders of ``firmware/ports`` through which drivers reach their devices on this board."""
    if board.cpu.arch == "native":
        names = ["hal_common", "hal_plain", "hal_host", "device_rack", "device_library"]
    else:
        place = "hal_qemu" if any(isinstance(run, QemuRun) for run in board.runs) and runs_models(board) else "hal_mmio"
        cpu = "hal_plain" if board.cpu.arch == "rv32" else "hal_cortex_m"
        names = ["hal_common", cpu, "hal_board", place]
    return [data_dir("firmware") / "ports" / name for name in names]


def runs_models(board: Board) -> bool:
    """Whether models of devices can run beside the board: an emulator shares its RAM with them, a simulator its bus."""
    return any(isinstance(run, RtlRun) or (isinstance(run, QemuRun) and run.ram_origin) for run in board.runs)


def devices_source(board: Board, names: Sequence[str]) -> str:
    """The text of a project's ``board/devices.c``."""
    return rack_source(names) if board.cpu.arch == "native" else board_devices_source(board, names)
