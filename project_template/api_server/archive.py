"""Reading a Model Library Format archive, which anybody may have made: what is not as it should be is refused.

Everything is checked before anything is written, and nothing is taken from the archive but names and contents.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ServerError
from .files import opened

VERSION = 7
MOST_MEMBERS = 10_000
LONGEST_MEMBER = 1 << 30
LONGEST_ARCHIVE = 1 << 32
LONGEST_METADATA = 1 << 26
LONGEST_NAME = 240
BLOCK = tarfile.BLOCKSIZE

KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


class Archive(NamedTuple):
    """Contents by path, with '/' between folders; and ``metadata.json`` read."""

    path: Path
    files: dict[str, bytes]
    metadata: dict[str, Any]


def read_archive(path: Path) -> Archive:
    """The whole archive; a :class:`ServerError` of one line where it is broken, hostile or of another format."""
    try:
        with opened(path, LONGEST_ARCHIVE) as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            files = read_files(path, stream, size)
    except OSError as error:
        raise ServerError(f"cannot read archive {path}: {error.strerror or error}") from error
    return Archive(path, files, read_metadata(path, files))


def read_files(path: Path, stream: Any, size: int) -> dict[str, bytes]:
    members = Members(path, size)
    try:
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                members.add(member)
            check_end(path, stream, tar.offset, size)
            return {name: content(tar, member) for name, member in members.files.items()}
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise ServerError(f"archive {path} is no tar file or is damaged ({words}); make it anew") from error


class Members:
    """The members so far: every one is checked as it comes."""

    def __init__(self, path: Path, size: int) -> None:
        self.files: dict[str, tarfile.TarInfo] = {}
        self._folders = {""}
        self._path = path
        self._size = size
        self._count = 0

    def add(self, member: tarfile.TarInfo) -> None:
        where = f"archive {self._path}: member {member.name!r}"
        self._count += 1
        if self._count > MOST_MEMBERS:
            raise ServerError(f"archive {self._path} has more than {MOST_MEMBERS} members")
        check_kind(where, member)
        name = safe_name(where, member.name)
        if member.isfile() and member.offset_data + member.size > self._size:
            raise ServerError(f"archive {self._path} is truncated: {member.name!r} goes beyond its end; make it anew")
        if name in self.files or (member.isfile() and name in self._folders):
            raise ServerError(f"{where} stands there twice")
        above = parents(name)
        for folder in above:
            if folder in self.files:
                raise ServerError(f"{where} is inside {folder!r}, which is a file")
        self._folders.update(above)
        if member.isfile():
            self.files[name] = member
        else:
            self._folders.add(name)


def check_kind(where: str, member: tarfile.TarInfo) -> None:
    kind = "a sparse file" if member.issparse() else KINDS.get(member.type)
    if kind or not (member.isfile() or member.isdir()):
        raise ServerError(f"{where} is {kind or 'of no known kind'}; wanted files and folders alone")
    if not 0 <= member.size <= LONGEST_MEMBER:
        raise ServerError(f"{where} has {member.size} bytes; wanted at most {LONGEST_MEMBER}")


def safe_name(where: str, name: str) -> str:
    """Without ``./`` in front; empty for the archive's root."""
    parts = [part for part in name.split("/") if part not in (".", "")]
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name or not name.isprintable():
        raise ServerError(f"{where} would not stay in the project; wanted a plain relative path")
    if any(len(part.encode("utf-8", "surrogateescape")) > LONGEST_NAME for part in parts) or len(name) > 1024:
        raise ServerError(f"{where[:120]}... has too long a name")
    return "/".join(parts)


def parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def check_end(path: Path, stream: Any, offset: int, size: int) -> None:
    """A tar ends with two blocks of zeros. Python's reader also stops where it finds damage, or nothing."""
    stream.seek(offset)
    end = stream.read(2 * BLOCK)
    if any(end):
        raise ServerError(f"archive {path} is damaged at byte {offset} of {size}; make it anew")
    if len(end) < 2 * BLOCK:
        raise ServerError(f"archive {path} is truncated at byte {size}: it has no end; make it anew")


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    return stream.read() if stream is not None else b""


def read_metadata(path: Path, files: dict[str, bytes]) -> dict[str, Any]:
    data = files.get("metadata.json")
    if data is None:
        raise ServerError(f"archive {path} has no metadata.json; wanted an archive that 'uaccel compile' wrote")
    if len(data) > LONGEST_METADATA:
        raise ServerError(f"archive {path}: metadata.json has {len(data)} bytes; wanted at most {LONGEST_METADATA}")
    try:
        metadata = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ServerError(f"archive {path}: metadata.json is not JSON: {error}") from error
    version = metadata.get("version") if isinstance(metadata, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ServerError(f"archive {path}: metadata.json has no version; wanted Model Library Format {VERSION}")
    if version != VERSION:
        age = "later" if version > VERSION else "earlier"
        words = f"archive {path} is of Model Library Format {version}, a version {age} than {VERSION}, which is wanted"
        raise ServerError(f"{words}: use a newer uaccel" if version > VERSION else f"{words}: compile the model anew")
    return dict(metadata)
