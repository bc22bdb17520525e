"""Opens bundles of models (``.task``, as MediaPipe ships them): zip files of .tflite files, data and further bundles.

A path names a model inside as ``FILE.task:MODEL.tflite``, and ``FILE.task:INNER.task:MODEL.tflite`` where bundles are
in bundles. Nothing is unpacked to the disk, and what a bundle claims to hold is bounded before it is read.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from uaccel.errors import ModelError, need
from uaccel.util import incoming
from uaccel.util.text import did_you_mean

SUFFIX: Final = ".task"
MODELS: Final = (".tflite", ".lite")
MOST_FILES: Final = 1000  # In a bundle.
DEEPEST: Final = 3  # Bundles in bundles.
LARGEST: Final = 1 << 29  # Bytes of a file in a bundle, and of all inner bundles together.
_COLON: Final = f"{SUFFIX}:"


def is_inside(path: Path) -> bool:
    """Says whether a path is a bundle, or names a file in one; a file that exists is what it is."""
    return path.suffix.lower() == SUFFIX or (_COLON in str(path).lower() and not path.exists())


def outer(path: Path) -> Path:
    """Returns the file on the disk."""
    return Path(_divided(path)[0]) if is_inside(path) else path


def stem(path: Path) -> str:
    """Returns the name of a model without the bundle's and without suffix."""
    return Path(_divided(path)[-1]).stem if is_inside(path) else path.stem


def chosen(path: Path) -> Path:
    """Returns the path of a model in a bundle, which need not be named where there is one alone."""
    if not is_inside(path) or path.suffix.lower() != SUFFIX:
        return path
    with _bundle(path) as (archive, where):
        found = _models(archive, where, DEEPEST, [LARGEST])
    if len(found) == 1:
        return Path(f"{path}:{found[0]}")
    if not found:
        raise ModelError(f"{path} holds no {MODELS[0]} file: {_listed(archive.namelist())}; wanted a bundle of models")
    raise ModelError(f"{path} holds {len(found)} models: {_listed(found)}; name one, as {path}:{found[0]}")


def read(path: Path, most: int) -> bytes:
    """Returns the bytes of a model in a bundle."""
    path = chosen(path)
    *above, name = _divided(path)
    with _bundle(Path(":".join(above))) as (archive, where):
        return _member(archive, where, name, most)


def digest(path: Path) -> str:
    """Returns the digest of a model in a bundle."""
    return hashlib.sha256(read(path, LARGEST)).hexdigest()


def _divided(path: Path) -> list[str]:
    """Divides ``FILE.task:INNER.task:MODEL.tflite`` behind each bundle."""
    parts, rest = [], str(path)
    while (at := rest.lower().find(_COLON)) >= 0:
        end = at + len(SUFFIX)
        parts.append(rest[:end])
        rest = rest[end + 1 :]
    return [*parts, rest]


@contextmanager
def _bundle(path: Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """Opens a bundle, which may be in others; gives it with its name for errors."""
    file, *inner = _divided(path)
    need(len(inner) <= DEEPEST, f"{path} names {len(inner)} bundles in bundles; at most {DEEPEST} are opened")
    with incoming.reading(ModelError, file, "check the path"):
        stream: IO[bytes] = incoming.opened(file)
    with stream:
        archive, where = _opened(stream, file), file
        for name in inner:
            data, where = _member(archive, where, name, LARGEST), f"{where}:{name}"
            archive = _opened(io.BytesIO(data), where)
        yield archive, where


def _opened(stream: IO[bytes], where: str) -> zipfile.ZipFile:
    with _one_line(where):
        archive = zipfile.ZipFile(stream)
    if len(archive.infolist()) > MOST_FILES:
        raise ModelError(f"{where} holds {len(archive.infolist())} files; at most {MOST_FILES} are looked at")
    return archive


@contextmanager
def _one_line(where: str) -> Iterator[None]:
    """Makes one error of all that zipfile and the decompressors raise where bytes make no sense."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ModelError(f"{where} is no bundle (a zip of models), or is damaged: {reason}; copy it again") from error


def _member(archive: zipfile.ZipFile, where: str, name: str, most: int) -> bytes:
    known = archive.namelist()
    if name not in known:
        models = [entry for entry in known if entry.lower().endswith((*MODELS, SUFFIX))]
        near = did_you_mean(name, models)
        raise ModelError(f"{where} has no file {name!r}{near}; it holds {_listed(models)}")
    claimed = archive.getinfo(name).file_size
    need(claimed <= most, f"{where}: {name} has {claimed:,} bytes, and at most {most:,} are read")
    with _one_line(where), archive.open(name) as content:
        return content.read(claimed)


def _models(archive: zipfile.ZipFile, where: str, depth: int, left: list[int]) -> list[str]:
    """Lists the models in a bundle and in those within it; ``left``: how many bytes of these may still be read."""
    found = []
    for name in archive.namelist():
        if name.lower().endswith(MODELS):
            found.append(name)
        elif name.lower().endswith(SUFFIX) and depth:
            data = _member(archive, where, name, left[0])
            left[0] -= len(data)
            place = f"{where}:{name}"
            found += [f"{name}:{one}" for one in _models(_opened(io.BytesIO(data), place), place, depth - 1, left)]
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (", ".join(names[:10]) or "nothing") + more
