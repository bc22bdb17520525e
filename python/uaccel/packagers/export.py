"""What formats are given: generated code, a sample with the outputs that the model means, and what the board says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from uaccel.basics.device_build import CXX
from uaccel.board import Board
from uaccel.emit.generate import Generated
from uaccel.emit.headers import INCLUDE, closed
from uaccel.emit.options import Names
from uaccel.errors import AcceleratorError
from uaccel.lower.program import Engine, Program
from uaccel.model import Array
from uaccel.version import __version__

VERSION: Final = ".".join([*re.findall(r"\d+", __version__), "0", "0"][:3])
"""Of what is exported, as every manifest takes it: three numbers."""


@dataclass(frozen=True)
class Sample:
    """Inputs, and what the model makes of them. ``tolerance``: in steps of integers; of floats relative."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    tolerance: float = 0


@dataclass(frozen=True)
class Export:
    """``command`` makes the same again."""

    generated: Generated
    sample: Sample
    board: Board
    command: str

    @property
    def program(self) -> Program:
        return self.generated.program

    @property
    def names(self) -> Names:
        return self.generated.names

    @property
    def name(self) -> str:
        """Of the library: ``tvmgen_<model>``."""
        return self.names.prefix

    @property
    def title(self) -> str:
        return f"{self.program.name}, a neural network in C"

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Those with a device: drivers that compute by themselves need nothing but to be compiled."""
        return self.program.devices

    @cached_property
    def sources(self) -> dict[str, str]:
        """What an application links: the model, and the drivers of its accelerators."""
        return self.generated.sources | {name: text for name, text in self._drivers.items() if name.endswith(".c")}

    @cached_property
    def private_headers(self) -> dict[str, str]:
        """What these include beside the public headers."""
        drivers = {name: text for name, text in self._drivers.items() if not name.endswith(".c")}
        found = self.generated.private_headers | self.generated.firmware_headers | drivers
        wanted = [name for text in self._drivers.values() for name in INCLUDE.findall(text)]
        return found | closed(name for name in wanted if name.startswith("uaccel_") and name not in found)

    @property
    def public_headers(self) -> dict[str, str]:
        """What an application includes."""
        return self.generated.public_headers

    @property
    def headers(self) -> dict[str, str]:
        return self.public_headers | self.private_headers

    @cached_property
    def _drivers(self) -> dict[str, str]:
        """By file name: their folders are on one path of includes."""
        found: dict[str, str] = {}
        for engine in self.program.engines:
            for name, text in (folder_of(engine, "driver") | folder_of(engine, "unit")).items():
                if name in found or name in self.generated.firmware_headers:
                    raise AcceleratorError(
                        f"accelerator {engine.name}: another file of this export is called {name}, too; "
                        "give the driver's file a name of its own"
                    )
                if name.endswith(CXX):
                    raise AcceleratorError(
                        f"accelerator {engine.name}: its driver {name} is C++, and exports are C; write it in C, "
                        "or make a project with 'uaccel create'"
                    )
                found[name] = text
        return found


def folder_of(engine: Engine, folder: str) -> dict[str, str]:
    """C files of an accelerator's folder, by their place in it."""
    files: list[tuple[str, Path]] = [(name, path) for name, path in engine.files if name.startswith(f"{folder}/")]
    return {name.removeprefix(f"{folder}/"): path.read_text(encoding="utf-8") for name, path in files}


Packager = Callable[[Export], dict[str, str]]
"""Path in the folder -> text."""


def below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    """The files, in a folder."""
    return {f"{folder}/{name}": text for name, text in files.items()}
