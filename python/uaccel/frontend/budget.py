"""What reading somebody else's model may cost, so that a small file cannot take the computer for long.

The figures are far above what firmware has room for. Of the time there is more with ``UACCEL_IMPORT_SECONDS``.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uaccel.errors import ModelError
from uaccel.frontend.limits import asked

MOST_NODES: Final = 10_000
"""Of a model, those of a function counted each time that it is called."""
LARGEST_FILE: Final = 1 << 29
"""Bytes, with those of weights beside the file."""
MOST_BYTES: Final = 1 << 28
"""Of what the file does not hold and import makes: constants that are computed, copies of functions."""
MOST_RANK: Final = 32
MOST_SECONDS: Final = 45.0
TIME_VARIABLE: Final = "UACCEL_IMPORT_SECONDS"


def read_file(path: Path, most: int = LARGEST_FILE) -> bytes:
    """All of a model file of so many bytes."""
    try:
        if not path.is_file():
            path.stat()  # says why, where there is nothing
            raise ModelError(f"{path} is a device or a pipe, wanted a file")
        size = path.stat().st_size
        if size > most:
            raise ModelError(f"{path} has {size} bytes; at most {most} are read")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model {path}: {error.strerror or error}") from error


class Budget:
    """Of one import; what goes beyond is a ModelError."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._nodes = 0
        self._bytes = 0
        self._seconds = _seconds_allowed()
        self._end = time.monotonic() + self._seconds

    def nodes(self, count: int) -> None:
        """So many nodes more are walked."""
        self._nodes += count
        if self._nodes > MOST_NODES:
            raise ModelError(
                f"{self._path} has more than {MOST_NODES} nodes, those of a function counted at each call of it; "
                "cut the model, or compile its parts"
            )
        self.time()

    def spare(self, count: int) -> None:
        """So many bytes are in the file, and may be read once."""
        self._bytes -= count

    def bytes(self, count: int) -> None:
        """So many bytes more are made."""
        self._bytes += count
        if self._bytes > MOST_BYTES:
            raise ModelError(
                f"import of {self._path} would make more than {MOST_BYTES} bytes of constants that are not in "
                f"the file; "
                "firmware has no room for them"
            )

    def array(self, shape: Iterable[int], itemsize: int) -> None:
        """An array of this shape is about to be made."""
        self.bytes(math.prod(shape) * itemsize)

    def time(self) -> None:
        if time.monotonic() > self._end:
            raise ModelError(
                f"importing {self._path} takes more than {self._seconds:g} s; "
                f"the variable {TIME_VARIABLE} gives it more, if you trust the file"
            )


def _seconds_allowed() -> float:
    if asked.seconds is not None:
        return asked.seconds
    text = os.environ.get(TIME_VARIABLE, "")
    try:
        seconds = float(text) if text else MOST_SECONDS
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ModelError(f"{TIME_VARIABLE} is {text[:40]!r}; wanted a number of seconds")
    return seconds
