"""Loops over commands: what a schedule is. It can be written as C, or run here to see each command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uaccel.accelerator.tensor.expression import Value, evaluate


@dataclass(frozen=True)
class Let:
    """A name for a value; ``variable``: one that is set again later."""

    name: str
    value: Value
    variable: bool = False


@dataclass(frozen=True)
class Assign:
    """Another value for a variable; ``why`` is for the reader."""

    name: str
    value: Value
    why: str


@dataclass(frozen=True)
class Loop:
    """``name`` from 0 to below ``stop``."""

    name: str
    stop: Value
    step: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class When:
    condition: Value
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Command:
    """An intrinsic with its arguments in order; text stands for a pointer or a memory."""

    intrinsic: str
    arguments: Mapping[str, Value | str]


Statement = Let | Assign | Loop | When | Command


@dataclass(frozen=True)
class Issued:
    """A command that is given to the machine, with its numbers."""

    intrinsic: str
    numbers: Mapping[str, int]
    names: Mapping[str, str]


def run(statements: Sequence[Statement], variables: dict[str, int] | None = None) -> Iterator[Issued]:
    """The commands in the order in which they are given."""
    known: dict[str, int] = {} if variables is None else variables
    for statement in statements:
        if isinstance(statement, Command):
            items = statement.arguments.items()
            numbers = {name: evaluate(value, known) for name, value in items if not isinstance(value, str)}
            yield Issued(statement.intrinsic, numbers, {n: value for n, value in items if isinstance(value, str)})
        elif isinstance(statement, Loop):
            for value in range(0, evaluate(statement.stop, known), statement.step):
                known[statement.name] = value
                yield from run(statement.body, known)
        elif isinstance(statement, When):
            if evaluate(statement.condition, known):
                yield from run(statement.body, known)
        else:
            known[statement.name] = evaluate(statement.value, known)
