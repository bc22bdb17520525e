"""Holds what a format exports: one model with its drivers, or several models that share an arena."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from uaccel.board import Board
from uaccel.board.accelerator_devices import CXX
from uaccel.codegen.generate import Generated
from uaccel.codegen.header import INCLUDE, include_closure
from uaccel.codegen.options import Names
from uaccel.errors import AcceleratorError, InternalError, ModelError
from uaccel.lower.program import Engine, Program
from uaccel.model import Array
from uaccel.util import incoming
from uaccel.util.c_text import block_comment
from uaccel.util.text import code_span
from uaccel.version import __version__

# The version of what is exported: three numbers, as every manifest takes them.
VERSION: Final = ".".join([*re.findall(r"\d+", __version__), "0", "0"][:3])


@dataclass(frozen=True)
class Sample:
    """Holds inputs and their expected outputs. ``tolerance`` counts steps of integers; for floats it is relative."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    tolerance: float = 0


class Library(ABC):
    """Is what a format gets: the files of a library, and what build files and the README say of it."""

    board: Board
    command: str  # What a user types to make it again.

    @property
    @abstractmethod
    def models(self) -> tuple[Export, ...]: ...

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the model, or of several together."""

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def described(self) -> str:
        """What a README calls it."""

    @property
    @abstractmethod
    def public_headers(self) -> dict[str, str]:
        """The headers that an application includes."""

    @property
    @abstractmethod
    def private_headers(self) -> dict[str, str]:
        """The headers that the sources include in addition to the public ones."""

    @property
    @abstractmethod
    def sources(self) -> dict[str, str]:
        """The sources that an application links: the models, and the drivers of their accelerators."""

    @property
    @abstractmethod
    def arena(self) -> int:
        """Bytes of the workspace."""

    @property
    def name(self) -> str:
        """The library's name."""
        return f"tvmgen_{self.label}"

    @property
    def macro(self) -> str:
        return self.name.upper()

    @property
    def header(self) -> str:
        """The header that gives an application all of it."""
        return f"{self.name}.h"

    @property
    def headers(self) -> dict[str, str]:
        return self.public_headers | self.private_headers

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The accelerators with a device; drivers that compute by themselves only need to be compiled."""
        return tuple({engine.name: engine for model in self.models for engine in model.program.devices}.values())

    @property
    def weight_bytes(self) -> int:
        return sum(model.generated.weight_bytes for model in self.models)

    @property
    def binaries(self) -> dict[str, bytes]:
        """The constants of large models, by file: assembler files among the sources include them."""
        return {name: data for model in self.models for name, data in model.generated.binaries.items()}

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the sources, by their names' ends."""
        return ("c", "S") if self.binaries else ("c",)


@dataclass(frozen=True)
class Export(Library):
    """Holds one model to be exported, and a sample for the example."""

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
    def models(self) -> tuple[Export, ...]:
        return (self,)

    @property
    def label(self) -> str:
        return self.program.name

    @property
    def title(self) -> str:
        return f"{self.program.name}, a neural network in C"

    @property
    def described(self) -> str:
        return f"network {code_span(self.program.model.name)}"

    @property
    def arena(self) -> int:
        return self.generated.placement.arena

    @cached_property
    def sources(self) -> dict[str, str]:
        return self.generated.sources | {name: text for name, text in self._drivers.items() if name.endswith(".c")}

    @cached_property
    def private_headers(self) -> dict[str, str]:
        drivers = {name: text for name, text in self._drivers.items() if not name.endswith(".c")}
        found = self.generated.private_headers | self.generated.firmware_headers | drivers
        wanted = [name for text in self._drivers.values() for name in INCLUDE.findall(text)]
        return found | include_closure(name for name in wanted if name.startswith("uaccel_") and name not in found)

    @property
    def public_headers(self) -> dict[str, str]:
        return self.generated.public_headers

    @cached_property
    def _drivers(self) -> dict[str, str]:
        """The drivers' files by their names alone, which must differ: all their folders are on one include path."""
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
    """The files of an accelerator's folder, by their path in it."""
    files: list[tuple[str, Path]] = [(name, path) for name, path in engine.files if name.startswith(f"{folder}/")]
    return {name.removeprefix(f"{folder}/"): incoming.read_text(path) for name, path in files}


# Several models in one library: each was generated with the same array as its arena, which the library defines.


def arena_of(label: str) -> str:
    """The array that the models of a library share. Their sources include the header of its name."""
    return f"tvmgen_{label}_arena"


def require_names(label: str, names: Iterable[str]) -> None:
    """Raises an error where two models, or a model and the library, have one name in C."""
    seen = {label}
    for name in names:
        if name in seen:
            whose = "the library and a model" if name == label else "two models"
            raise ModelError(f"{whose} are called {name} in C; rename a file, or name the library with --name")
        seen.add(name)


@dataclass(frozen=True)
class Several(Library):
    """Holds several models whose workspaces are one array: what a run leaves in it, the next may overwrite."""

    label_in_c: str
    parts: tuple[Export, ...]
    board: Board
    command: str

    @property
    def models(self) -> tuple[Export, ...]:
        return self.parts

    @property
    def label(self) -> str:
        return self.label_in_c

    @property
    def title(self) -> str:
        return f"{listed(model.program.name for model in self.parts)}, neural networks in C"

    @property
    def described(self) -> str:
        return f"networks {listed(code_span(model.program.model.name) for model in self.parts)}"

    @property
    def arena(self) -> int:
        return max(1, *(model.arena for model in self.parts))

    @cached_property
    def sources(self) -> dict[str, str]:
        array, alignment = arena_of(self.label), max(model.program.alignment for model in self.parts)
        own = f"""{self._about("The memory in which all of them compute.")}
#include "{array}.h"

UACCEL_WORKSPACE UACCEL_ALIGNED({alignment}) uint8_t {array}[{array.upper()}_SIZE];
"""
        return {f"{array}.c": own} | self._merged(lambda model: model.sources)

    @cached_property
    def private_headers(self) -> dict[str, str]:
        array, alignment = arena_of(self.label), max(model.program.alignment for model in self.parts)
        own = f"""{self._about("The memory in which all of them compute; private.")}
#ifndef {array.upper()}_H
#define {array.upper()}_H

#include <stdint.h>

#include "uaccel_kernel.h"

#define {array.upper()}_SIZE {self.arena}
extern UACCEL_ALIGNED({alignment}) uint8_t {array}[{array.upper()}_SIZE];

#endif
"""
        return {f"{array}.h": own} | self._merged(lambda model: model.private_headers)

    @cached_property
    def public_headers(self) -> dict[str, str]:
        includes = "".join(f'#include "{model.header}"\n' for model in self.parts)
        own = f"""{self._about("Their interfaces.")}
#ifndef {self.macro}_H
#define {self.macro}_H

/* Bytes of the arena, in which all of them compute: one inference at a time, of whichever model. Outputs, states and
 * constants are each model's own; UACCEL_WORKSPACE places the arena. */
#define {self.macro}_ARENA_SIZE {self.arena}

{includes}
#endif
"""
        return {self.header: own} | self._merged(lambda model: model.public_headers)

    def _about(self, what: str) -> str:
        return block_comment([f"{self.title}. {what}", "", f"Generated by uaccel {__version__}:", f"  {self.command}"])

    def _merged(self, files_of: Callable[[Export], Mapping[str, str]]) -> dict[str, str]:
        """The files of all models. Files that several have, such as kernels and drivers, are the same in each."""
        found: dict[str, str] = {}
        for model in self.parts:
            for name, text in files_of(model).items():
                if found.setdefault(name, text) != text:
                    raise InternalError(f"two models of an export have different files {name}")
        return found


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last
