"""What the model of a device takes to be built, beyond the C and C++ in its folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FILE: Final = "build.txt"
"""Beside the sources in an archive: what CMake reads of it (project_template/cmake/accelerators.cmake)."""
CXX: Final = (".cc", ".cpp", ".cxx")
HEADERS: Final = (".h", ".hh", ".hpp")
_FORMS: Final = {
    "flags": (r"-(D\w+(=\w+)?|O[0-3sg]|std=[a-z0-9+]+|[fmW][a-z0-9-]+)", "options such as -O3, -DNAME=1 or -std=c++20"),
    "includes": (r"\w[\w-]*(/\w[\w-]*)*", "folders below device/"),
    "libraries": (r"\w[\w+.-]*", "names such as 'fftw3', without 'lib' and without '-l'"),
}


@dataclass(frozen=True)
class DeviceBuild:
    """``flags`` of the compilers, ``includes``: folders below ``device/``, ``libraries`` by their names."""

    flags: Sequence[str] = ()
    includes: Sequence[str] = ()
    libraries: Sequence[str] = ()

    @property
    def text(self) -> str:
        """A line for each; nothing where there is nothing to say."""
        rows = [("flag", self.flags), ("include", self.includes), ("library", self.libraries)]
        return "".join(f"{what} {value}\n" for what, values in rows for value in values)

    @classmethod
    def of(cls, text: str) -> DeviceBuild:
        """From :attr:`text`."""
        rows = [line.partition(" ") for line in text.splitlines()]
        found = {
            what: tuple(value for kind, _, value in rows if kind == what) for what in ("flag", "include", "library")
        }
        return cls(found["flag"], found["include"], found["library"])

    def complaint(self) -> str | None:
        """What is wrong with a field: a shell and CMake read them, and an archive may come from anywhere."""
        for name, (form, wanted) in _FORMS.items():
            values = getattr(self, name)
            if isinstance(values, str) or not all(isinstance(v, str) and re.fullmatch(form, v, re.A) for v in values):
                return f"device_build.{name} is {values!r}; wanted a list of {wanted}"
        return None
