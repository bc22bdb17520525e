"""Opens files that come from elsewhere, the one way in: regular files alone, never more bytes than a limit, never for
ever. ``tests/package/test_readers.py`` holds that nothing else opens them.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from uaccel.errors import UaccelError

# Bytes that a kind of file may have. What is larger is no such file, and would take the memory of this computer.
TEXT: Final = 1 << 26  # Sources, TOML, tables, JSON of projects.
MODEL: Final = 1 << 30  # Also arrays, images, firmware, results.
ARCHIVE: Final = 1 << 32

SECONDS: Final = 60.0  # For a file, and as many again for each gigabyte: disks of networks may stand still.
_PIECE: Final = 1 << 20
_FLAGS: Final = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnreadableError(UaccelError, OSError):
    """Says why a file cannot be read. Who knows what was wanted catches it as the OSError that it is, and adds that to
    ``strerror``; elsewhere it is a line of its own."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"cannot read {path}: {reason}; give a file that can be read")
        self.strerror = reason


@contextmanager
def reading(error: type[UaccelError], what: object, advice: str = "", broken: str = "") -> Iterator[None]:
    """Makes one line of what goes wrong in the block: why ``what`` cannot be read, or, for a ValueError, that it is
    ``broken``. ``advice`` comes behind it."""
    behind = f"; {advice}" if advice else ""
    try:
        yield
    except OSError as failure:
        raise error(f"cannot read {what}: {failure.strerror or failure}{behind}") from failure
    except ValueError as failure:
        if not broken:
            raise
        raise error(f"{what} is {broken}: {failure}{behind}") from failure


def opened(path: Path | str, most: int = MODEL) -> io.BufferedReader:
    """Open a regular file for a reader that takes a stream; its bytes end at the limit, though the file may grow."""
    return io.BufferedReader(_Bounded(path, most), _PIECE)


def read_bytes(path: Path | str, most: int = MODEL) -> bytes:
    """The whole file."""
    with _Bounded(path, most) as file:
        data = file.readall()
        if len(data) == most and file.grows():
            _refuse_size(path, most + 1, most)
        return data


def read_text(path: Path | str, most: int = TEXT, errors: str = "strict") -> str:
    """The whole file as UTF-8, with ends of lines as Python has them; UnicodeDecodeError, a ValueError, for others."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path, most)), encoding="utf-8", errors=errors).read()


def copy(source: Path | str, target: Path | str) -> None:
    """Copy a file with its permissions; for ``shutil.copytree`` too."""
    with opened(source, ARCHIVE) as stream, Path(target).open("wb") as made:
        shutil.copyfileobj(stream, made)
    shutil.copymode(source, target)


def copy_folder(source: Path, target: Path, *left_out: str) -> None:
    """Copy a folder into one that may be there, without entries of these names."""
    try:
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns(*left_out), copy_function=copy, dirs_exist_ok=True
        )
    except shutil.Error as error:
        place, _, reason = error.args[0][0]
        raise UaccelError(f"cannot copy {place}: {reason}; remove it from {source}") from error


def require_files(folder: Path) -> None:
    """Refuse a folder of programs that other programs, such as compilers, would read for ever: of pipes and the like.
    What is hidden, and what builds left behind, does not count."""
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        for path in (Path(above, name) for name in names if not name.startswith(".")):
            if path.exists():  # a link to nowhere stops nobody
                _require_file(path, path.stat(), {".py": TEXT, ".tar": ARCHIVE}.get(path.suffix, MODEL))


class _Bounded(io.RawIOBase):
    """Reads a regular file up to a limit of bytes and of time."""

    def __init__(self, path: Path | str, most: int) -> None:
        self._path, self._most, self._at = path, most, 0
        self._number = -1
        self._end = time.monotonic() + SECONDS * (1 + most / (1 << 30))
        try:
            _require_file(path, Path(path).stat(), most)  # before it is opened, which a device may take for a command
            self._number = os.open(path, os.O_RDONLY | _FLAGS)
            _require_file(path, os.fstat(self._number), most)  # nobody can put another file here any more
        except (OSError, ValueError) as error:
            self.close()
            if isinstance(error, UnreadableError):
                raise
            # ValueError: Python's word for a NUL in a name, and for a surrogate
            reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
            raise UnreadableError(path, reason or str(error)) from error

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
            self._number = -1
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = os.lseek(self._number, offset, whence)
        return self._at

    def tell(self) -> int:
        return self._at

    def fileno(self) -> int:
        """Keeps the number from libraries that would read beyond the limit."""
        raise io.UnsupportedOperation("fileno")

    def readinto(self, buffer: Any) -> int:
        data = self._read(min(len(buffer), self._most - self._at))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        pieces = []
        while piece := self._read(min(_PIECE, self._most - self._at)):
            pieces.append(piece)
        return b"".join(pieces)

    def grows(self) -> bool:
        """Whether there is more, beyond the limit."""
        return os.read(self._number, 1) != b""

    def _read(self, count: int) -> bytes:
        if time.monotonic() > self._end:
            raise UnreadableError(self._path, "reading it takes too long")
        try:
            data = os.read(self._number, max(count, 0))
        except OSError as error:
            raise UnreadableError(self._path, error.strerror or str(error)) from error
        self._at += len(data)
        return data


def _require_file(path: Path | str, found: os.stat_result, most: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise UnreadableError(path, "Is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError(path, f"it is {_KINDS.get(stat.S_IFMT(found.st_mode), 'a device')} and no regular file")
    if found.st_size > most:
        _refuse_size(path, found.st_size, most)


def _refuse_size(path: Path | str, size: int, most: int) -> NoReturn:
    raise UnreadableError(path, f"it has {size:,} bytes, and at most {most:,} are read")
