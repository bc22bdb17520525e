"""States what a caller may choose about generated C, and derives its names, its heading comment and its addresses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from uaccel.lower.placement import Place
from uaccel.lower.program import Program
from uaccel.memory import ANY_SIZE, Pool
from uaccel.model import unique_names
from uaccel.util import incoming
from uaccel.util.c_text import block_comment
from uaccel.util.text import is_reserved
from uaccel.version import __version__

# Options, and the C names that follow from them and from the model.


@dataclass(frozen=True)
class EmitOptions:
    """Holds the choices about generated C.

    ``pools`` are the memories that the workspace is divided among, the preferred one first; without any, the executor
    has one array. The application passes pools in, unless ``own_pools`` says that they are the executor's arrays.

    ``workspace_io``: inputs and outputs lie in the workspace, too; the application asks where. ``ram``: the bytes that
    inputs, outputs, state and workspace may take together; None for any. ``feed``: the application hands over an
    input some rows at a time. ``constant_pools``: the memories for constants, as the user named them.
    """

    pools: tuple[Pool, ...] = ()
    workspace_io: bool = False
    own_pools: bool = False
    ram: int | None = None
    feed: bool = False
    constant_pools: tuple[Pool, ...] = ()

    @property
    def given_pools(self) -> tuple[str, ...]:
        """Names of the pools that the application passes in."""
        return () if self.own_pools else tuple(pool.name for pool in self.pools)

    @property
    def words(self) -> list[str]:
        """The command-line words that give these options."""
        words = [word for pool in self.pools if not self.own_pools for word in ("--workspace-pool", _stated(pool))]
        words += [word for pool in self.constant_pools for word in ("--constant-pool", _stated(pool))]
        words += ["--workspace-io"] if self.workspace_io else []
        words += ["--ram", str(self.ram)] if self.ram is not None else []
        return [*words, *(["--feed"] if self.feed else [])]

    def array(self, names: Names, pool: str) -> str:
        """The variable that the executor finds a pool by: an array of its own, or a pointer to the application's."""
        if not self.pools:
            return names.workspace if self.workspace_io else "workspace"
        if self.own_pools:
            return f"{names.prefix}_{pool}_workspace" if self.workspace_io else f"{pool}_workspace"
        return "workspace" if len(self.pools) == 1 else f"{pool}_workspace"


def _stated(pool: Pool) -> str:
    size = "" if pool.size is None else f"={pool.size}"
    if pool.fetch is None:
        return f"{pool.name}{size}"
    return f"{pool.name}{size}:fetch" + ("" if pool.fetch == ANY_SIZE else f"={pool.fetch}")


@dataclass(frozen=True)
class Names:
    """Holds the C names of one generated model: members of the structures, and macros of the tensors' sizes."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_sizes: tuple[str, ...]
    output_sizes: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return f"tvmgen_{self.model}"

    @property
    def macro(self) -> str:
        return self.prefix.upper()

    @property
    def workspace(self) -> str:
        """The array of a workspace that also holds inputs and outputs; it is public, so its name has the prefix."""
        return f"{self.prefix}_workspace"

    @property
    def header(self) -> str:
        return f"{self.prefix}.h"


def names_of(program: Program, options: EmitOptions) -> Names:
    """Derives C names from the tensors' names in the model file, by microTVM's rules where these give valid C.

    Macros that are already in use come first in the list that is made unique, so that tensors get out of their way.
    Members also avoid macros of the drivers' headers.
    """
    inputs = [c_name(spec.name) for spec in program.signature.inputs]
    outputs = [c_name(spec.name) for spec in program.signature.outputs]
    taken = ["WORKSPACE", *(f"{name}_WORKSPACE_POOL".upper() for name in options.given_pools)]
    taken += [f"{pool.name}_CONSTANT_POOL".upper() for pool in options.constant_pools]
    taken += ["STATE"] if program.state else []
    taken += ["FEED_ROW"] if options.feed else []
    words = unique_names([*taken, *(name.upper() for name in (*inputs, *outputs))])[len(taken) :]
    macros = tuple(f"TVMGEN_{program.name}_{word}_SIZE".upper() for word in words)
    taken_by_drivers = _macros_of_drivers(program)
    members = _members(inputs, taken_by_drivers), _members(outputs, taken_by_drivers)
    return Names(program.name, *members, macros[: len(inputs)], macros[len(inputs) :])


def c_name(text: str) -> str:
    """microTVM's rule: each byte that is no letter and no digit becomes an underscore."""
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else "_" for byte in text.encode("utf-8", "replace"))


_NO_START = re.compile(r"\d|__|$")  # two underscores begin the compiler's own macros, such as __LINE__


def _macros_of_drivers(program: Program) -> set[str]:
    """Macros that drivers' headers define. The executor includes these behind its own header, so a member of the same
    name would be replaced in the code that uses it, but not in its declaration."""
    headers = (path for engine in program.engines for _, path in engine.files if path.suffix == ".h")
    define = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
    return {name for path in headers for name in define.findall(incoming.read_text(path, errors="replace"))}


def _members(names: Iterable[str], macros: Collection[str]) -> tuple[str, ...]:
    safe = (f"{name}_" if is_reserved(name) or name in macros else name for name in names)
    return tuple(unique_names(f"tensor{name}" if _NO_START.match(name) else name for name in safe))


# Provenance: what made a generated file, from what, and how to make it again. No date, so that the bytes repeat.


def regenerate_command(
    model_file: str, board: str, name: str, options: EmitOptions, engines: Sequence[str] = ()
) -> str:
    """The command that, run beside the model file, gives the same bytes."""
    model_file = f"./{model_file}" if model_file.startswith("-") else model_file
    words = ["uaccel", "compile", model_file, "--board", board, "--name", name]
    return shlex.join([*words, *options.words, *engines])


def provenance(program: Program, what: str, command: str) -> str:
    model = program.model
    return block_comment(
        [
            what,
            "",
            f"Generated by uaccel {__version__}; do not edit, regenerate:",
            f"  {command}",
            f"Model {model.name} ({model.source_format}), SHA-256 {model.digest}",
        ]
    )


# Addresses in the workspace, as the executor writes them.


def address(place: Place, options: EmitOptions) -> str:
    """The C expression for a place in the workspace."""
    return f"AT({place.pool}, {place.offset})" if len(options.pools) > 1 else f"AT({place.offset})"
