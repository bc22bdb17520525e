"""States what a caller may choose about generated C, and derives its names, its heading comment and its addresses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from uaccel.errors import UaccelError
from uaccel.util import incoming
from uaccel.util.option import option, words_of
from uaccel.util.text import bytes_of, is_reserved
from uaccel.version import __version__

# Pools as one types them.

if TYPE_CHECKING:
    from uaccel.lower.placement import Place
    from uaccel.lower.program import Program
    from uaccel.memory import Pool

    Pools = tuple[Pool, ...]
else:
    Pools = tuple

ConstantsForm = Literal["auto", "c", "binary"]
WORKSPACE_POOL: Final = "--workspace-pool"
CONSTANT_POOL: Final = "--constant-pool"


def read_pools(words: Sequence[str], flag: str = WORKSPACE_POOL) -> Pools:
    """Reads ``NAME[=BYTES]`` words, for constants with ``:fetch[=BYTES]`` at the end.

    Names become words of C, and so are checked."""
    from uaccel.memory import Pool

    what = "a member of a C structure" if flag == WORKSPACE_POOL else "a word of C"
    pools: list[Pool] = []
    for word in words:
        place, ahead, fetch = word.partition(":fetch") if flag == CONSTANT_POOL else (word, "", "")
        name, given, size = place.partition("=")
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or is_reserved(name):
            raise UaccelError(
                f"{flag} {name!r} cannot name {what}; "
                "wanted a letter, then letters, digits and underscores, and no word of C"
            )
        if name.upper() in {pool.name.upper() for pool in pools}:
            raise UaccelError(f"{flag} {name} is given twice; name each pool once, the fastest first")
        if pools and pools[-1].size is None and flag == WORKSPACE_POOL:
            raise UaccelError(
                f"{flag} {name} comes after {pools[-1].name}, which has no size and takes the rest; "
                f"write {pools[-1].name}=BYTES"
            )
        told = f"{flag} {word}"
        fetched = _fetched(told, fetch) if ahead else None
        pools.append(Pool(name, _bytes(told, size) if given else None, fetch=fetched))
    return tuple(pools)


def _fetched(word: str, size: str) -> int:
    """Reads ``:fetch[=BYTES]``; without a size, all constants of a layer are fetched."""
    from uaccel.memory import ANY_SIZE

    if size and not size.startswith("="):
        raise UaccelError(f"{word}: wanted ':fetch' or ':fetch=BYTES' at the end, as in qspi:fetch=32K")
    return _bytes(word, size[1:]) if size else ANY_SIZE


def _bytes(word: str, size: str) -> int:
    found = bytes_of(size)
    if not found:
        raise UaccelError(f"{word}: {size!r} is no size; wanted bytes such as 4096, 64K or 16M")
    return found


def _stated(pools: Pools) -> Iterable[str]:
    from uaccel.memory import ANY_SIZE

    for pool in pools:
        size = "" if pool.size is None else f"={pool.size}"
        fetch = "" if pool.fetch == ANY_SIZE else f"={pool.fetch}"
        yield f"{pool.name}{size}" + ("" if pool.fetch is None else f":fetch{fetch}")


# Options, and the C names that follow from them and from the model.


@dataclass(frozen=True)
class EmitOptions:
    """Holds the choices about generated C.

    ``pools`` are the memories that the workspace is divided among, the preferred one first; without any, the executor
    has one array. The application passes pools in, unless ``own_pools`` says that they are the executor's arrays.

    ``arena``: the array of a library that is the workspace of several models, in place of one of the executor's.

    ``workspace_io``: inputs and outputs lie in the workspace, too; the application asks where. ``ram``: the bytes that
    inputs, outputs, state and workspace may take together; None for any. ``feed``: the application hands over an
    input some rows at a time. ``constant_pools``: the memories for constants, as the user named them; ``constants``:
    the form of the file that holds them.
    """

    PANEL = "What to save, and where it lies"
    pools: Pools = option(
        (),
        "The application passes the arena in, as pool NAME. May be repeated, the fastest first: tensors that are used "
        "most go into the first that has room; without BYTES a pool takes the rest.",
        WORKSPACE_POOL,
        metavar="NAME[=BYTES]",
        read=read_pools,
        write=_stated,
        rare=True,
    )
    constant_pools: Pools = option(
        (),
        "Constants lie in the board's memory NAME. May be repeated, the fastest first: what is read most often goes "
        "into the first that has room; without BYTES a pool takes what the memory has free. With ':fetch' they are "
        "copied into the arena while the layer before computes, up to so many bytes for a layer.",
        CONSTANT_POOL,
        metavar="NAME[=BYTES][:fetch[=BYTES]]",
        read=read_pools,
        write=_stated,
        rare=True,
    )
    workspace_io: bool = option(
        False,
        "Inputs and outputs lie in the arena, where they may share bytes with other tensors. 'run' does so with "
        "firmware that it makes and loads itself; 'compile' leaves them to the caller.",
        "--workspace-io/--no-workspace-io",
        rare=True,
    )
    constants: ConstantsForm = option(
        "auto",
        "How constants are written: as C, or as a binary file for the assembler, which is quick to write and to "
        "compile; 'auto' is C below 16 MiB.",
        rare=True,
    )
    own_pools: bool = False
    arena: str = ""
    ram: int | None = option(
        None, "As fast as fits: inputs, outputs, state and workspace in so many bytes.", metavar="BYTES", least=0
    )
    whole_layers: bool = option(
        False, "Compute every layer as a whole that need not run by rows: a bit faster, more RAM.", rare=True
    )
    require_fast: bool = option(
        False, "Fail where the CPU's best kernels decline a layer, or nothing but printed C computes it.", rare=True
    )
    feed: bool = option(
        False, "The application hands over an input (the first that can come so) some rows at a time.", rare=True
    )

    @property
    def given_pools(self) -> tuple[str, ...]:
        """Names of the pools that the application passes in."""
        return () if self.own_pools else tuple(pool.name for pool in self.pools)

    @property
    def words(self) -> list[str]:
        """The command-line words that give these options."""
        return words_of(replace(self, pools=()) if self.own_pools else self)

    def array(self, names: Names, pool: str) -> str:
        """The variable that the executor finds a pool by: an array of its own, or a pointer to the application's."""
        if not self.pools and self.arena:
            return self.arena
        if not self.pools:
            return names.workspace if self.workspace_io else "workspace"
        if self.own_pools:
            return f"{names.prefix}_{pool}_workspace" if self.workspace_io else f"{pool}_workspace"
        return "workspace" if len(self.pools) == 1 else f"{pool}_workspace"


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
    from uaccel.model import unique_names

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
    from uaccel.model import unique_names

    safe = (f"{name}_" if is_reserved(name) or name in macros else name for name in names)
    return tuple(unique_names(f"tensor{name}" if _NO_START.match(name) else name for name in safe))


# Provenance: what made a generated file, from what, and how to make it again. No date, so that the bytes repeat.


def regenerate_command(model_file: str, board: str, name: str, words: Iterable[str]) -> str:
    """The command that, run beside the model file, gives the same bytes; ``words`` are its further options."""
    model_file = f"./{model_file}" if model_file.startswith("-") else model_file
    return shlex.join(["uaccel", "compile", model_file, "--board", board, "--name", name, *words])


def provenance(program: Program, what: str, command: str) -> str:
    from uaccel.util.c_text import block_comment

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
