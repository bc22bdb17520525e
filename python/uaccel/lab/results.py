"""Results as they come: one JSON object a line, so that what was done stays when the rest is cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from uaccel.basics.documents import parse_json
from uaccel.errors import InputError, UaccelError
from uaccel.lab.work import Result


class Results:
    """A file that results are added to; entered, it is open for that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Results:
        try:
            self._stream = self.path.open("ab")
            self._end_line()
        except OSError as error:
            raise UaccelError(f"cannot write {self.path}: {error.strerror}; choose another place with -o") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stream is not None
        self._stream.close()

    def add(self, result: Result) -> None:
        """It is on the disk before the next one begins."""
        assert self._stream is not None
        try:
            self._stream.write(json.dumps(result.to_json(), ensure_ascii=False).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise UaccelError(f"cannot write {self.path}: {error.strerror}; choose another place with -o") from error

    def read(self) -> dict[str, Result]:
        """By digest, the last of each; a last line that was cut off is none."""
        return {result.digest: result for result in read_results(self.path)} if self.path.exists() else {}

    def _end_line(self) -> None:
        """After a line that was cut off."""
        assert self._stream is not None
        if self._stream.tell():
            with self.path.open("rb") as stream:
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    self._stream.write(b"\n")


def read_results(path: Path) -> Iterable[Result]:
    """Of a file that a sweep wrote."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; wanted what 'uaccel sweep' writes") from error
    for number, line in enumerate(lines, 1):
        try:
            yield Result.from_json(parse_json(line))
        except (ValueError, KeyError, TypeError) as error:
            if number == 1 and len(lines) > 1:
                raise InputError(f"{path}:1 is no result; wanted what 'uaccel sweep' writes") from error
            continue  # cut off when its writer was killed
