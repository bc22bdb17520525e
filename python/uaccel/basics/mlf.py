"""The Model Library Format archive as a file: its folders, and a tar of it that is the same for the same files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Final

from uaccel.basics.files import write_atomically, write_folder, write_zip

CODE: Final = "codegen/host"
PROJECT: Final = "templates/project"
ACCELERATORS: Final = "project/accelerators"
"""What a firmware project takes over as it stands, by path in it: what its board needs."""
FOLDERS: Final = (
    f"{CODE}/src",
    f"{CODE}/include",
    f"{CODE}/lib",
    "executor-config/aot",
    "parameters",
    "src",
    "templates",
)
"""They are there even when nothing is in them."""


def write_tar(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Nobody's files, without a date; folders first."""
    inner = (*(PurePosixPath(folder) / "file" for folder in FOLDERS), *map(PurePosixPath, files))
    folders = {str(parent) for path in inner for parent in path.parents} - {"."}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted(folders):
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in sorted(files):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))


def read_tar(stream: IO[bytes]) -> dict[str, bytes]:
    """The files of what :func:`write_tar` wrote; for archives of others there is ``project.archive_reader``."""
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        members = {entry.name.removeprefix("./"): tar.extractfile(entry) for entry in tar if entry.isfile()}
        return {name: content.read() for name, content in members.items() if content is not None}


def write_archive(path: Path, files: Mapping[str, bytes], option: str = "-o", *, folder: bool = False) -> None:
    """The archive as its name says: a folder, a zip or a tar; ``option`` is where a user chooses its place."""
    if folder:
        write_folder(path, files, option)
    elif path.suffix.lower() == ".zip":
        write_atomically(path, lambda stream: write_zip(stream, files), option)
    else:
        write_atomically(path, lambda stream: write_tar(stream, files), option)
