"""Choices and names of generated code, and where it comes from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from uaccel.lower.placement import Place
from uaccel.lower.program import Program
from uaccel.memory import ANY_SIZE, Pool
from uaccel.model import unique_names
from uaccel.util.c_text import block_comment
from uaccel.util.text import is_reserved
from uaccel.version import __version__

# What the caller may choose about the generated C, and the names that follow from it.


@dataclass(frozen=True)
class EmitOptions:
    """``pools``: what the workspace is divided among, the preferred one first; none for one array of our own. The
    application passes them in, but for ``own_pools``, which are arrays of our own.

    ``workspace_io``: inputs and outputs lie in the workspace, too; the application asks where. ``ram``: the bytes that
    inputs, outputs, state and workspace may take together; None for any. ``feed``: the application hands over an
    input some rows at a time. ``constant_pools``: what constants are divided among, as the user named them.
    """

    pools: tuple[Pool, ...] = ()
    workspace_io: bool = False
    own_pools: bool = False
    ram: int | None = None
    feed: bool = False
    constant_pools: tuple[Pool, ...] = ()

    @property
    def given_pools(self) -> tuple[str, ...]:
        """Names of those that the application passes in."""
        return () if self.own_pools else tuple(pool.name for pool in self.pools)

    @property
    def words(self) -> list[str]:
        """What to type for them."""
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
    """The C names of one generated model: members of the structures, and the macros of the tensors' sizes."""

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
        """The array of a workspace that also holds inputs and outputs: then it is no secret of the executor's."""
        return f"{self.prefix}_workspace"

    @property
    def header(self) -> str:
        return f"{self.prefix}.h"


def names_of(program: Program, options: EmitOptions) -> Names:
    """From the tensors' names in the model file, by microTVM's rules where these give valid and unique C."""
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


_NO_START = re.compile(r"\d|__|$")  # two underscores: the compiler's own macros, as __LINE__


def _macros_of_drivers(program: Program) -> set[str]:
    """Their headers come between the structures of the tensors and the code that uses these."""
    headers = (path for engine in program.engines for _, path in engine.files if path.suffix == ".h")
    define = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
    return {name for path in headers for name in define.findall(path.read_text(encoding="utf-8", errors="replace"))}


def _members(names: Iterable[str], macros: Collection[str]) -> tuple[str, ...]:
    safe = (f"{name}_" if is_reserved(name) or name in macros else name for name in names)
    return tuple(unique_names(f"tensor{name}" if _NO_START.match(name) else name for name in safe))


# Who made a generated file, from what, and how to make it again; no clock, so that the bytes repeat.


def regenerate_command(
    model_file: str, board: str, name: str, options: EmitOptions, engines: Sequence[str] = ()
) -> str:
    """What to type beside the model file for the same bytes."""
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


# How the executor says where something lies in the workspace.


def address(place: Place, options: EmitOptions) -> str:
    """Of what lies in the workspace."""
    return f"AT({place.pool}, {place.offset})" if len(options.pools) > 1 else f"AT({place.offset})"
