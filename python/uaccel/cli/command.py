"""Commands as classes: the fields are the options, and commands that share options share a base class."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Protocol, get_type_hints

import typer


class Command(Protocol):
    """A dataclass whose fields are annotated like a Typer function's parameters."""

    def run(self) -> None: ...


def add_command(app: typer.Typer, name: str, short_help: str, command: type[Command]) -> None:
    """Options of the command itself come first, then those that it shares, and ``--json`` at last."""

    def function(**given: Any) -> None:
        command(**given).run()

    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    typed = [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]
    typed.sort(key=lambda parameter: (parameter.name == "as_json", parameter.name not in command.__annotations__))
    vars(function).update(__signature__=inspect.Signature(typed), __doc__=command.__doc__)
    app.command(name, short_help=short_help)(function)


def first_given(context: typer.Context, names: Iterable[str]) -> str | None:
    """The first of these options that somebody typed, as it is typed."""
    sources = ((name, context.get_parameter_source(name)) for name in names)
    given = (name for name, source in sources if source is not None and source.name != "DEFAULT")
    found = next(given, None)
    return None if found is None else f"--{found.replace('_', '-')}"
