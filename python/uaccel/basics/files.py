"""Writing files so that a failure leaves nothing half-written."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from uaccel.errors import UaccelError


def require_writable(path: Path, option: str) -> None:
    """Complain about a place that cannot be written before the work that leads to it; ``option`` names it."""
    folder = path.parent
    if not folder.is_dir():
        problem = f"{folder} is no folder" if folder.exists() else f"there is no folder {folder}"
    elif path.is_dir():
        problem = "it is a folder"
    elif path.exists() and not path.is_file():
        problem = "it is a device or a pipe, which cannot be replaced"
    elif not os.access(folder, os.W_OK):
        problem = f"folder {folder} may not be written"
    else:
        return
    raise UaccelError(f"cannot write {path}: {problem}; choose another place with {option}")


def write_atomically(path: Path, write: Callable[[IO[bytes]], None], option: str) -> None:
    """Write beside the target and move over it: a reader sees the old file or the new one, never a part."""
    require_writable(path, option)
    try:
        target = path.resolve()  # a link stays a link
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:32]}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                write(stream)
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UaccelError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def require_new_folder(path: Path, option: str) -> None:
    """Complain about a folder that holds something, or cannot be made, before the work that leads to it."""
    if path.is_dir() and any(path.iterdir()):
        problem = "the folder holds files already"
    elif path.exists() and not path.is_dir():
        problem = "it is a file"
    elif not path.exists() and not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
    elif not os.access(path if path.is_dir() else path.parent, os.W_OK):
        problem = f"folder {path if path.is_dir() else path.parent} may not be written"
    else:
        return
    raise UaccelError(f"cannot write folder {path}: {problem}; choose a new one with {option}")


def write_folder(path: Path, files: Mapping[str, bytes], option: str) -> None:
    """All of the files or none: they are written beside the folder, which then takes its place."""
    require_new_folder(path, option)
    try:
        target = path.resolve()
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:32]}.") as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            for name, content in files.items():
                place = made / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            made.replace(target)
    except OSError as error:
        raise UaccelError(
            f"cannot write folder {path}: {error.strerror or error}; choose another place with {option}"
        ) from error


def write_zip(stream: IO[bytes], files: Mapping[str, bytes]) -> None:
    """The same bytes for the same files: in order of their names, without a date."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, files[name])
