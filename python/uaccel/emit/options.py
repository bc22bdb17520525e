"""What the caller may choose about the generated C, and the names that follow from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from uaccel.lower.program import Program
from uaccel.model import unique_names


@dataclass(frozen=True)
class EmitOptions:
    """``workspace_pool``: the name of the pool that the application passes in; empty for an array of our own.

    ``workspace_io``: inputs and outputs lie in the workspace, too; the application asks where.
    """

    workspace_pool: str = ""
    workspace_io: bool = False


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
    taken = ["WORKSPACE", f"{options.workspace_pool}_WORKSPACE_POOL".upper()]
    taken += ["STATE"] if program.state else []
    words = unique_names([*taken, *(name.upper() for name in (*inputs, *outputs))])[len(taken) :]
    macros = tuple(f"TVMGEN_{program.name}_{word}_SIZE".upper() for word in words)
    return Names(program.name, _members(inputs), _members(outputs), macros[: len(inputs)], macros[len(inputs) :])


def c_name(text: str) -> str:
    """microTVM's rule: each byte that is no letter and no digit becomes an underscore."""
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else "_" for byte in text.encode())


# Of C99 to C23 and of C++, since the header is for both; and macros that are defined nearly everywhere.
RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
    unsigned using virtual void volatile wchar_t while xor xor_eq _Alignas _Alignof _Atomic _BitInt _Bool
    _Complex _Generic _Imaginary _Noreturn _Pragma _Static_assert _Thread_local EOF INFINITY NAN NULL errno
    linux stderr stdin stdout unix""".split()  # noqa: SIM905 - a page of quotes reads worse
)
_LIMITS = re.compile(r"U?INT\w*_(C|MAX|MIN)|(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MAX|MIN)")
_NO_START = re.compile(r"\d|__|$")  # two underscores: the compiler's own macros, as __LINE__


def is_reserved(name: str) -> bool:
    """Whether C, C++ or their headers give the name a meaning of their own."""
    return name in RESERVED or _LIMITS.fullmatch(name) is not None


def _members(names: Iterable[str]) -> tuple[str, ...]:
    safe = (f"{name}_" if is_reserved(name) else name for name in names)
    return tuple(unique_names(f"tensor{name}" if _NO_START.match(name) else name for name in safe))
