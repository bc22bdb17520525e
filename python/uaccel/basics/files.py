"""Writing files so that a failure leaves nothing half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
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
