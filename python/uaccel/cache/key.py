"""What a result depends on, as one digest: files by their content, programs by what lies in PATH."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from uaccel.resources import data_dir

PACKAGES: Final = ("apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "torch", "ortools")
"""Whose versions may change what is compiled; those that are not installed count as such."""
_NO_SOURCES: Final = (".pyc", ".pyo", ".orig", ".swp")
_VARIABLES: Final = ("ASM", "ASMFLAGS", "CC", "CFLAGS", "CPATH", "CPPFLAGS", "CXX", "CXXFLAGS", "LDFLAGS")
_PREFIXES: Final = ("CMAKE_", "COMPILER_", "CPLUS_INCLUDE_", "C_INCLUDE_", "GCC_", "LIBRARY_", "UACCEL_IMPORT_")


class Key:
    """A digest that grows by named parts; equal parts in the same order give the same."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._digest = hashlib.sha256(kind.encode())

    def add(self, name: str, value: Any) -> Key:
        """``value``: plain data, as JSON can say it; bytes by their digest."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = {"sha256": hashlib.sha256(value).hexdigest()}
        self._digest.update(json.dumps([name, value], sort_keys=True, default=str).encode() + b"\n")
        return self

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def file_digest(path: Path) -> str:
    """Of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def folder_digest(folder: Path) -> str:
    """Of the content of all files below it that somebody may have written, and of their paths."""
    digest = hashlib.sha256()
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(files):
            if not name.endswith(_NO_SOURCES):
                path = Path(above) / name
                digest.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
                digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


@lru_cache(maxsize=1)
def own_sources() -> str:
    """Of uaccel itself, with boards, firmware, template and accelerators, and of the packages it compiles by."""
    digest = hashlib.sha256(folder_digest(Path(__file__).resolve().parent.parent).encode())
    for name in ("boards", "firmware", "project_template", "accelerators"):
        digest.update(folder_digest(data_dir(name)).encode())
    for package in PACKAGES:
        digest.update(f"{package} {_version(package)}\n".encode())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def programs_digest(names: Iterable[str]) -> list[Any]:
    """Which program each name means, by the file's place, size and time; and the variables that builds look at."""
    found: list[Any] = []
    for name in names:
        path = shutil.which(name)
        real = Path(path).resolve() if path is not None else None
        told = real.stat() if real is not None else None
        found.append([name, str(real), told.st_size if told else 0, told.st_mtime_ns if told else 0])
    every = sorted(os.environ.items())
    return [*found, *([name, value] for name, value in every if name in _VARIABLES or name.startswith(_PREFIXES))]
