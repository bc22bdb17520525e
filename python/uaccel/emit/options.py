"""What the caller may choose about the generated C, and the names that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from uaccel.lower.program import Program
from uaccel.model import c_identifier, unique_names


@dataclass(frozen=True)
class EmitOptions:
    """``workspace_pool``: the name of the pool that the application passes in; empty for an array of our own."""

    workspace_pool: str = ""


@dataclass(frozen=True)
class Names:
    """The C names of one generated model."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return f"tvmgen_{self.model}"

    @property
    def macro(self) -> str:
        return self.prefix.upper()

    @property
    def header(self) -> str:
        return f"{self.prefix}.h"


def names_of(program: Program) -> Names:
    """Struct members are the tensors' names in the model file, made C identifiers and unique."""
    return Names(
        program.name,
        _members(s.name for s in program.signature.inputs),
        _members(s.name for s in program.signature.outputs),
    )


C_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while""".split()  # noqa: SIM905 - a page of quotes reads worse
)


def _members(names: Iterable[str]) -> tuple[str, ...]:
    identifiers = [c_identifier(name) for name in names]
    safe = [f"{name}_" if name in C_KEYWORDS else name for name in identifiers]
    return tuple(unique_names(safe))
